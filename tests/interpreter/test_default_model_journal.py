"""A journal on the default model: a run that goes on has the tokens that it would have had."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import plait
from plait import State, assistant, function, gen, select, user
from plait.interpreter.backends.local import LocalBackend
from plait.runtime.config import EngineConfig
from plait.runtime.load.store import DEFAULT_MODEL, Store, default_home
from plait.runtime.model.registry import load_model

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def backend() -> Iterator[LocalBackend]:
    stored = Store(default_home()).find(DEFAULT_MODEL)
    if stored is None:
        pytest.skip(f"needs `plait pull {DEFAULT_MODEL}`")
    config = EngineConfig(kv_cache_tokens=4096, max_context=1024)
    backend = LocalBackend(load_model(stored.path, config), config)
    yield backend
    backend.close()


@function
def story(s: State) -> None:
    s += user("Tell a short story about a lighthouse.")
    s += assistant(gen("start", max_tokens=12, temperature=1.2))
    ends = s.fork(2)
    for end in ends:
        end += user("How does it end? Begin with W") + assistant(gen("end", max_tokens=10))
        end += user("Sad?") + assistant(select("sad", ["yes", "no"]))
    s += user("Title: T") + gen("title", regex="[A-Za-z ]{3,20}", max_tokens=8)


def test_a_run_goes_on_from_each_line_as_if_nothing_had_stopped_it(
    backend: LocalBackend, tmp_path: Path
) -> None:
    path = tmp_path / "story.journal"
    whole = story.run(seed=11, backend=backend)
    assert story.run(seed=11, backend=backend, journal=path).outputs() == whole.outputs()
    lines = path.read_bytes().splitlines(keepends=True)
    for num_lines in range(2, len(lines), 3):
        path.write_bytes(b"".join(lines[:num_lines]))
        again = story.run(backend=backend, journal=path)
        assert again.text() == whole.text()
        assert again.outputs() == whole.outputs()
    with plait.journal(str(path), is_replay=True) as kept:
        assert story.run(journal=kept).text() == whole.text()
