"""Texts of a stream on their way to it: together if they come close, and never behind an end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from plait.interpreter.backend import Backend, Delta, Done
from plait.interpreter.backends.remote import RemoteBackend
from plait.lang.graph import Node
from plait.lang.ops import Gen, Text
from plait.runtime.model.scripted import Script

from .bench import Bench
from .scripted_runs import Run, chain, scripted
from .test_remote_backend import Runtime

WHOLE = "Grüße, 👋"


@pytest.fixture
def bench() -> Bench:
    opened = Bench(is_streaming=True, is_pausing=True)
    opened.session.submit([Node(i, Gen(f"x{i}"), None) for i in range(2)])
    opened.lists.clear()
    return opened


def test_the_first_text_is_told_at_once(bench: Bench) -> None:
    bench.tell(0, "a")
    bench.run()
    assert bench.events == [Delta(0, "a")]


def test_texts_within_a_pause_are_told_together_when_it_ends(bench: Bench) -> None:
    bench.tell(0, "a")
    bench.tell(1, "x")
    bench.run()
    for text in "bcd":
        bench.tell(0, text)
        bench.tell(1, text)
    assert bench.posted == []
    bench.pass_pause()
    assert bench.lists[1:] == [[Delta(0, "bcd"), Delta(1, "bcd")]]


def test_the_first_text_of_another_node_waits_for_no_pause(bench: Bench) -> None:
    bench.tell(0, "a")
    bench.run()
    bench.tell(0, "b")
    bench.tell(1, "x")
    bench.run()
    assert bench.lists[1:] == [[Delta(0, "b"), Delta(1, "x")]]


def test_a_pause_follows_each_list_until_nothing_comes(bench: Bench) -> None:
    bench.tell(0, "a")
    bench.run()
    bench.tell(0, "b")
    bench.pass_pause()
    bench.pass_pause()
    assert bench.delayed == []
    bench.tell(0, "c")
    bench.run()
    assert bench.events == [Delta(0, "a"), Delta(0, "b"), Delta(0, "c")]


def test_an_end_waits_for_no_pause_and_takes_what_waits_along(bench: Bench) -> None:
    bench.tell(0, "a")
    bench.tell(1, "w")
    bench.run()
    bench.tell(1, "x")
    bench.tell(0, "b")
    assert bench.posted == []
    bench.answer(0, "c")
    bench.run()
    [_, last] = bench.lists
    assert [type(event) for event in last] == [Delta, Delta, Done]
    assert last[:2] == [Delta(1, "x"), Delta(0, "bc")]
    assert isinstance(last[2], Done)
    assert last[2].text == "abc"


def test_text_of_a_cancelled_node_is_told_no_more(bench: Bench) -> None:
    bench.tell(0, "a")
    bench.run()
    bench.tell(0, "b")
    bench.session.cancel([0])
    bench.lists.clear()
    bench.pass_pause()
    assert bench.events == []


@contextmanager
def remote(script: Script) -> Iterator[Backend]:
    """Give a backend on a worker that paces its texts, as `plait serve` does."""
    runtime = Runtime(script=script)
    try:
        backend = RemoteBackend(runtime.endpoint)
        yield backend
        backend.close()
    finally:
        runtime.stop()


@pytest.mark.parametrize("opened", [scripted, remote])
def test_each_text_is_told_while_the_model_still_writes(
    opened: Callable[[Script], AbstractContextManager[Backend]],
) -> None:
    """The model says a character only once all those before it have been heard."""
    runs: list[Run] = []

    def script(text: str) -> dict[str, float]:
        said = text[len("say: ") :]  # it is also asked about the prompt, or less
        runs[0].wait_for_text(1, said)
        return {WHOLE[len(said) :][:1]: 1.0}

    with opened(script) as backend:
        runs.append(Run(backend, is_streaming=True))
        done = runs[0].results(chain(Text("say: "), Gen("x")))[1]
    assert isinstance(done, Done), done
    assert done.text == WHOLE
    assert runs[0].texts(1) == [*WHOLE]
