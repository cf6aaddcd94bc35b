"""What a result tells of its branches."""

from __future__ import annotations

import plait


@plait.function
def nested(s: plait.State) -> None:
    """Two levels of branches, the same local name in each."""
    for outer in s.fork(2):
        outer += "a" + plait.gen("x", temperature=0)
        for inner in outer.fork(2):
            inner += "b" + plait.gen("x", temperature=0)


def test_outputs_are_named_by_the_path_of_their_branch() -> None:
    backend = plait.scripted(lambda text: f"<{text}>")
    outputs = nested.run(backend=backend, seed=0).outputs()
    backend.close()
    assert {(out.branch, out.value) for out in outputs} == {
        *{(f"0.{i}", "<a>") for i in range(2)},
        *{(f"0.{i}/0.{j}", "<a<a>b>") for i in range(2) for j in range(2)},
    }
