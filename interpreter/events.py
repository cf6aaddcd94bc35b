"""What a stream tells: typed events of every gen and select, and who may listen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ..lang.errors import InvalidArgument, NodeError, UnknownVariable
from ..lang.graph import Node
from ..lang.ops import Gen, Select
from .backend import Delta, Done, Failed, NodeEvent, Started

EventKind: TypeAlias = Literal["start", "delta", "end", "error"]


@dataclass(frozen=True, slots=True)
class Event:
    """One step of one gen or select.

    `branch` is its path ("" for the body itself, "0.2" for branch 2 of fork 0), `variable`
    its name if it has one, `node` its id. A delta has new `text`; an end has the whole text as
    `value`, and what `s[name]` gives as `parsed`; an error has the `error`. After a start
    comes an end or an error, unless the whole run stops before. A node that never started may
    still give an error.
    """

    kind: EventKind
    branch: str
    variable: str | None
    node: int
    text: str = ""
    value: str | None = None
    parsed: Any = None
    error: NodeError | None = None


def event_of(
    node: Node, event: NodeEvent, error: NodeError | None, parsed: object = None
) -> Event | None:
    """Give the author's view of a backend's event; None for nodes that only add text.

    An end that has an `error`, such as a value that a limit has cut, is an error.
    """
    if not isinstance(node.op, Gen | Select):
        return None
    branch, name = node.branch, node.op.name
    match event:
        case Started():
            return Event("start", branch, name, node.id)
        case Delta(text=text):
            return Event("delta", branch, name, node.id, text=text)
        case Done(text=value) if error is None:
            return Event("end", branch, name, node.id, value=value, parsed=parsed)
        case Done() | Failed():
            return Event("error", branch, name, node.id, error=error)


class Claim:
    """Let one consumer have a stream, and refuse the second by name."""

    def __init__(self) -> None:
        self._is_taken = False

    def take(self) -> None:
        """Take the stream. Raises: InvalidArgument if somebody has it."""
        if self._is_taken:
            raise InvalidArgument(
                "this stream already has a consumer: start another one with f.stream(...), or "
                "keep what you need of each event"
            )
        self._is_taken = True


class TextFilter:
    """Pick the text of one variable out of a stream's events, each character once."""

    def __init__(self, name: str, branch: str) -> None:
        self._name = name
        self._branch = branch
        self._is_found = False
        self._sent: dict[int, int] = {}  # node -> characters given so far
        self._known: dict[str, None] = {}

    def push(self, event: Event) -> str:
        """Give the new text that `event` brings for the variable, "" if none."""
        if event.variable is not None:
            place = f" (branch {event.branch})" if event.branch else ""
            self._known[f"{event.variable}{place}"] = None
        if (event.variable, event.branch) != (self._name, self._branch):
            return ""
        self._is_found = True
        sent = self._sent.get(event.node, 0)
        # A select has no deltas, and a backend may leave them out: the end has the rest.
        text = event.text if event.value is None else event.value[sent:]
        self._sent[event.node] = sent + len(text)
        return text

    def finish(self) -> None:
        """Say that there are no more events. Raises: UnknownVariable if none was ours."""
        if self._is_found:
            return
        place = f' in branch "{self._branch}"' if self._branch else ""
        known = ", ".join(self._known) or "none"
        raise UnknownVariable(f'no variable "{self._name}"{place} in this stream; known: {known}')


def texts(events: Iterable[Event], chosen: TextFilter) -> Iterator[str]:
    """Give the text of one variable as it grows. Raises: UnknownVariable at the end."""
    for event in events:
        text = chosen.push(event)
        if text:
            yield text
    chosen.finish()
