"""What a trace hands out where a run gives a value: it may go into text, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NoReturn, Protocol

from .graph import Where
from .ops import Input, Value


class Owner(Protocol):
    """The trace that a stand-in belongs to."""

    def spell(self, parts: Sequence[str | Hole]) -> str:
        """Give a real str that the trace recognises when it is appended."""
        ...

    def stop(self, holes: Sequence[Hole], reason: str) -> NoReturn:
        """End the trace here: Python needs the value."""
        ...


@dataclass(frozen=True, slots=True)
class Hole:
    """A value that is not known yet; `where` is the line that read it, None for an input."""

    name: str
    op: Value | Input
    owner: Owner = field(repr=False, compare=False)
    where: Where | None = None


class StandIn:
    """Text with holes.

    Not a str by nature: C code looks straight into a str (`re.search(p, x)`, `x in "abc"`,
    `json.dumps(x)`) and would take the stand-in's spelling for the value. What such code
    says to a stand-in is TypeError, and the trace reports that as a break. `+` gives another
    stand-in; formatting (an f-string, `str()`, `%`, `format`) has to give a real str, whose
    way to the state the trace follows.
    """

    __slots__ = ("_owner", "_parts")

    def __init__(self, owner: Owner, parts: tuple[str | Hole, ...]) -> None:
        self._owner = owner
        self._parts = parts

    def __str__(self) -> str:
        return self._owner.spell(self._parts)

    def __format__(self, spec: str) -> str:
        if spec:
            stop(self, f"the format {spec!r} needs the value")
        return self._owner.spell(self._parts)

    def __rmod__(self, template: str) -> str:
        return template % (self._owner.spell(self._parts),)

    def __add__(self, other: object) -> StandIn:
        right = _text_parts(other)
        return NotImplemented if right is None else StandIn(self._owner, self._parts + right)

    def __radd__(self, other: object) -> StandIn:
        left = _text_parts(other)
        return NotImplemented if left is None else StandIn(self._owner, left + self._parts)

    def __getattr__(self, name: str) -> object:
        stop(self, f".{name} needs the value")
        raise AttributeError(name)

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Answer isinstance(): a value is a str, an open argument could be anything."""
        if any(isinstance(part, Hole) and isinstance(part.op, Input) for part in self._parts):
            stop(self, "a test of its type needs the value")
        return str


class ParsedStandIn(StandIn):
    """The value of a schema, which is not text: no use of it can go on without it."""

    __slots__ = ()

    def __str__(self) -> str:
        stop(self, "str() of a parsed value needs the value; s.ref gives its text")
        raise AssertionError("stop() raises for a stand-in")

    def __format__(self, spec: str) -> str:
        return str(self)

    def __rmod__(self, template: str) -> str:
        return str(self)

    def __add__(self, other: object) -> StandIn:
        stop(self, "+ needs the value")
        raise AssertionError("stop() raises for a stand-in")

    __radd__ = __add__

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Answer isinstance(): a value of a schema has any type."""
        stop(self, "a test of its type needs the value")
        raise AssertionError("stop() raises for a stand-in")


def stop(value: object, reason: str) -> None:
    """End the trace if `value` is a stand-in; else do nothing."""
    if isinstance(value, StandIn):
        holes = tuple(part for part in value._parts if isinstance(part, Hole))
        value._owner.stop(holes, reason)


def _text_parts(value: object) -> tuple[str | Hole, ...] | None:
    if isinstance(value, StandIn):
        return value._parts
    return (str.__str__(value),) if isinstance(value, str) else None


# Uses that need the value, and how a break's reason calls them. Only what a str has, and
# numbers: callable(), isawaitable() and the like look at a type's methods.
_NEEDS = {
    "==": ("__eq__", "__ne__"),
    "a comparison": ("__lt__", "__le__", "__gt__", "__ge__"),
    "a truth test": ("__bool__",),
    "`in`": ("__contains__",),
    "len()": ("__len__",),
    "iteration": ("__iter__", "__reversed__"),
    "indexing": ("__getitem__",),
    "hash() (a key, or an item of a set)": ("__hash__",),
    "repr()": ("__repr__",),
    "a number": ("__int__", "__float__", "__complex__", "__index__", "__round__"),
    "arithmetic": (
        *("__mul__", "__rmul__", "__mod__", "__sub__", "__rsub__", "__truediv__", "__rtruediv__"),
        *("__floordiv__", "__rfloordiv__", "__pow__", "__rpow__", "__neg__", "__pos__", "__abs__"),
        *("__and__", "__or__", "__xor__"),
    ),
    "a copy": ("__copy__", "__deepcopy__", "__reduce_ex__"),
}


def _refusal(what: str) -> Callable[..., object]:
    def refuse(self: StandIn, *_: object, **__: object) -> None:
        stop(self, f"{what} needs the value")

    return refuse


for _what, _names in _NEEDS.items():
    for _name in _names:
        setattr(StandIn, _name, _refusal(_what))
