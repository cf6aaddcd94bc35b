"""A driver that runs nodes at once, so that states are tested without a backend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from plait.lang.driver import Bodies
from plait.lang.errors import NodeError
from plait.lang.graph import Node
from plait.lang.inline import InlineGroup
from plait.lang.ops import Gen, RoleBegin, RoleEnd, Select, Source, Text, Value
from plait.lang.state import State
from plait.lang.tape import Tape


class FakeDriver:
    """Runs nodes at once when somebody waits; `say` gives a gen's text from its prompt."""

    def __init__(self, tape: Tape, say: Callable[[str], str]) -> None:
        self.tape = tape
        self.say = say
        self.texts: dict[int, str] = {}
        self.num_waits = 0
        self.cancelled: list[int] = []

    def value(self, source: Source) -> str:
        text = self.text(source.node)
        return text if source.capture is None else f"{source.capture} of {text}"

    def text(self, node: int) -> str:
        self.num_waits += 1
        self.run()
        return self.texts[node]

    def meta(self, node: int) -> object:
        return {"node": node}

    def wait(self, nodes: Sequence[int]) -> None:
        self.num_waits += 1
        try:
            self.run()
        except NodeError:
            self.cancel(nodes)
            raise

    def cancel(self, nodes: Sequence[int]) -> None:
        self.cancelled += nodes

    def start(self, bodies: Bodies, times: int, timeout: float | None) -> InlineGroup:
        return InlineGroup(bodies)

    def drive(self, result: object) -> object:
        return result

    def run(self) -> None:
        for node in self.tape.take():
            self.texts[node.id] = self.text_of(node)

    def text_of(self, node: Node) -> str:
        match node.op:
            case Text(text=text):
                return text
            case Value(source=Source(node=source, capture=None)):
                return self.texts[source]
            case Value(source=Source(node=source, capture=capture)):
                return f"{capture} of {self.texts[source]}"
            case RoleBegin(role=role):
                return f"<{role}>"
            case RoleEnd():
                return "</>"
            case Select(choices=choices):
                return choices[0]
            case Gen():
                return self.say(self.prompt(node))
            case _:
                raise AssertionError(node)

    def prompt(self, node: Node) -> str:
        text, prev = "", node.prev
        while prev is not None:
            text = self.texts[prev] + text
            prev = self.tape.node(prev).prev
        return text


def count(prompt: str) -> str:
    return f"[{len(prompt)}]"


@pytest.fixture
def start() -> Callable[..., tuple[State, Any]]:
    """Give a function that starts a run: its state and its driver.

    `start(say)`: say(prompt) is what a gen writes; without it, the length of its prompt.
    """

    def begin(say: Callable[[str], str] = count) -> tuple[State, Any]:
        tape = Tape()
        driver = FakeDriver(tape, say)
        return State(tape, driver), driver

    return begin
