"""What `plait run --stream` prints for a stream's events."""

from __future__ import annotations

import io

from plait.cli.display import StreamDisplay
from plait.interpreter.events import Event
from plait.lang.errors import NodeError


class Screen:
    """A display with what it has printed so far."""

    def __init__(self) -> None:
        self._out = io.StringIO()
        self.display = StreamDisplay(self._out)

    @property
    def text(self) -> str:
        return self._out.getvalue()

    def start(self, node: int, name: str | None = "x", branch: str = "") -> None:
        self.display.show(Event("start", branch, name, node))

    def say(self, node: int, text: str, name: str | None = "x", branch: str = "") -> None:
        self.display.show(Event("delta", branch, name, node, text=text))

    def end(self, node: int, value: str, name: str | None = "x", branch: str = "") -> None:
        self.display.show(Event("end", branch, name, node, value=value))

    def fail(self, node: int, origin: int, name: str = "x") -> None:
        error = NodeError(f"node {origin} broke", node=node, origin=origin)
        self.display.show(Event("error", "", name, node, error=error))


def test_a_variable_is_printed_as_it_grows() -> None:
    screen = Screen()
    screen.start(1)
    screen.say(1, "")
    screen.say(1, "one ")
    assert screen.text == "x: one "
    screen.say(1, "two")
    assert screen.text == "x: one two"
    screen.end(1, "one two")
    assert screen.text == "x: one two\n"


def test_a_select_is_printed_with_its_name() -> None:
    screen = Screen()
    screen.start(1, "mood")
    screen.end(1, "good", "mood")
    assert screen.text == "mood: good\n"


def test_a_gen_without_name_and_an_empty_value_have_a_line_too() -> None:
    screen = Screen()
    screen.end(1, "text", None)
    screen.end(2, "")
    assert screen.text == "gen: text\nx: \n"


def test_parallel_branches_speak_one_after_the_other() -> None:
    screen = Screen()
    screen.say(1, "a", branch="0.0")
    screen.say(2, "b", branch="0.1")
    screen.say(1, "A", branch="0.0")
    screen.say(2, "B", branch="0.1")
    assert screen.text == "0.0/x: aA"
    screen.end(1, "aA", branch="0.0")
    assert screen.text == "0.0/x: aA\n0.1/x: bB"
    screen.say(2, "!", branch="0.1")
    screen.end(2, "bB!", branch="0.1")
    assert screen.text == "0.0/x: aA\n0.1/x: bB!\n"


def test_one_that_ends_while_another_speaks_waits_for_its_turn() -> None:
    screen = Screen()
    screen.say(1, "a")
    screen.end(2, "done", "y")
    assert screen.text == "x: a"
    screen.end(1, "a")
    assert screen.text == "x: a\ny: done\n"


def test_a_failed_variable_ends_its_line_and_is_told_once() -> None:
    screen = Screen()
    screen.say(1, "half")
    screen.fail(1, origin=1)
    screen.fail(2, origin=1)
    screen.end(3, "other", "y")
    assert screen.text == "x: half\ny: other\n"
    assert screen.display.failures == ("node 1 broke",)


def test_close_prints_what_waited() -> None:
    screen = Screen()
    screen.say(1, "half")
    screen.say(2, "other", "y")
    screen.display.close()
    screen.display.close()
    assert screen.text == "x: half\ny: other\n"
