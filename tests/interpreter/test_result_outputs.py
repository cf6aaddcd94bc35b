"""What a result tells of its branches."""

from __future__ import annotations

import plait
from plait.lang.serialize import dumps, loads


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


@plait.function
def half_silent(s: plait.State) -> list[str]:
    """Five branches, of which one sets a name."""
    s += "q"
    forks = s.fork(5)
    forks[1] += plait.gen("x", temperature=0)
    return forks.join()["x"]


WITH_PLACES = [None, "<q>", None, None, None]


def test_a_list_has_a_place_for_branches_that_recorded_nothing() -> None:
    backend = plait.scripted(lambda text: f"<{text}>")
    result = half_silent.run(backend=backend)
    again = plait.run_graph(loads(dumps(result.graph)), backend=backend)
    backend.close()
    assert result.value == WITH_PLACES
    assert list(result["x"]) == WITH_PLACES
    assert list(again["x"]) == WITH_PLACES
