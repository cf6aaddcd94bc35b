"""What a node gave: its value and what it captured, each read or with what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ..lang.errors import Invalid, Truncated
from ..lang.graph import Node
from ..lang.words import one_line, spell
from .backend import Done

_WIDTH = 80  # characters of a bad value that a message shows


@dataclass(frozen=True, slots=True)
class Parsed:
    """A value, or what is wrong with it."""

    value: object = None
    fault: Truncated | Invalid | None = None

    def get(self) -> object:
        """Give the value. Raises: Truncated, Invalid; each time an error of its own."""
        match self.fault:
            case None:
                return self.value
            case Truncated() | Invalid() as fault:
                copy = type(fault)(
                    str(fault),
                    text=fault.text,
                    reason=fault.reason,
                    node=fault.node,
                    where=fault.where,
                )
                raise copy from fault.__cause__


@dataclass(frozen=True, slots=True)
class Values:
    """What a node gave: its own value, and the captures by name."""

    own: Parsed
    captures: Mapping[str, Parsed] = field(default_factory=dict)
    texts: Mapping[str, str | None] = field(default_factory=dict)  # of the captures

    def get(self, capture: str | None) -> object:
        """Give the value, or a capture. Raises: Truncated, Invalid."""
        return (self.own if capture is None else self.captures[capture]).get()

    def text(self, capture: str) -> str:
        """Give the text of a capture, "" if it has none. Raises: Truncated, Invalid."""
        if capture not in self.texts:
            self.captures[capture].get()
        return self.texts[capture] or ""

    def __iter__(self) -> Iterator[Parsed]:
        yield self.own
        yield from self.captures.values()


def fault_of(
    node: Node,
    done: Done,
    reason: str,
    cause: Exception | None = None,
    *,
    is_whole: bool,
    what: str = "the value",
    can_go_on: bool = False,
) -> Truncated | Invalid:
    """Say what is wrong with `what` of a gen's output, or what has cut it if it is not whole.

    `can_go_on`: the text is whole as it is, but a longer one would be as well.
    """
    at = "" if node.where is None else f"{node.where}: "
    shown = done.text if len(done.text) <= _WIDTH else f"{done.text[:_WIDTH]}..."
    kind: type[Truncated | Invalid]
    if done.meta.finish_reason == "length" and not is_whole:
        kind = Truncated
        limit = f"max_tokens or the context after {done.meta.usage.output_tokens} tokens"
        reason, remedy = f"cut by {limit}", "; give it more max_tokens"
        if can_go_on:
            reason = f"the text is whole but could go on, and was ended by {limit}"
            remedy = "; give a stop string"
    else:
        kind, remedy = Invalid, ""
        if done.meta.stop_reason is not None and not is_whole:
            reason = f"cut by the stop string {done.meta.stop_reason!r}"
    branch = f" in branch {node.branch}" if node.branch else ""
    says = "may go on" if can_go_on else _SAYS[kind]
    message = f"{at}{spell(node.op)}{branch}: {what} {says}: {reason}{remedy}: {shown}"
    fault = kind(one_line(message), text=done.text, reason=reason, node=node.id, where=node.where)
    fault.__cause__ = cause
    return fault


_SAYS: dict[type[Truncated | Invalid], str] = {
    Truncated: "is not whole",
    Invalid: "is not valid",
}
