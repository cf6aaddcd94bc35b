"""What can be appended to a state: text, and expressions made of text and operations."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NoReturn, TypeAlias, cast

from .errors import InvalidArgument, RoleError
from .ops import Gen, Role, RoleBegin, RoleEnd, Select, Source
from .options import check_encodes
from .standin import Hole, ParsedStandIn, StandIn, stop
from .tape import Tape
from .where import place
from .words import spell


@dataclass(frozen=True, slots=True)
class Link:
    """A use of a value, without waiting for it."""

    source: Source
    name: str
    tape: Tape = field(repr=False, compare=False)


Part: TypeAlias = str | Gen | Select | RoleBegin | RoleEnd | Link | Hole


@dataclass(frozen=True, slots=True)
class Expr:
    """Text and operations in a row. Building one runs nothing; `s += expr` records it.

    With `num_samples` it is recorded in so many branches, see `samples.py`.
    """

    parts: tuple[Part, ...]
    num_samples: int | None = None

    def __add__(self, other: str | Expr) -> Expr:
        return _joined(self, expr_of(other))

    def __radd__(self, other: str | Expr) -> Expr:
        return _joined(expr_of(other), self)

    def __str__(self) -> NoReturn:
        raise TypeError(
            f"{place()}an expression has no text before it has run; instead of putting it into "
            f'a string, write: s += "ask " + {_spelling(self)}'
        )

    def __format__(self, spec: str) -> NoReturn:
        str(self)
        raise AssertionError("str() of an expression raises")


class Ref(Expr):
    """The value of a gen or select, or a capture, kept in the graph: using it waits for nothing.

    Good in any branch of the same run: `s += "you said " + s.ref("x")`.
    """

    __slots__ = ()

    def __init__(self, source: Source, name: str, tape: Tape) -> None:
        Expr.__init__(self, (Link(source, name, tape),))

    @property
    def node(self) -> int:
        """Give the id of the node that makes the value."""
        link = self.parts[0]
        assert isinstance(link, Link)
        return link.source.node


def turn(role: Role, content: object) -> Expr:
    """Give `content` as one whole turn of `role`.

    Raises: RoleError if the content has a turn inside it.
    """
    inner = expr_of(content)
    if any(isinstance(part, RoleBegin) for part in inner.parts):
        raise RoleError(
            f"{place()}{role}(...): a turn cannot stand inside a turn; append one after the other"
        )
    return Expr((RoleBegin(role), *inner.parts, RoleEnd(role)), inner.num_samples)


def expr_of(value: object) -> Expr:
    """Give something appended as an expression. Raises: InvalidArgument, as `parts_of` does."""
    # type() and not isinstance(): a stand-in answers that for its value.
    is_expr = issubclass(type(value), Expr)
    return cast(Expr, value) if is_expr else Expr(parts_of(value))


def _joined(left: Expr, right: Expr) -> Expr:
    counts = {count for count in (left.num_samples, right.num_samples) if count is not None}
    if len(counts) > 1:
        raise InvalidArgument(
            f"{place()}n={left.num_samples} and n={right.num_samples} in one expression: its "
            "samples are branches that hold all of it; append one after the other"
        )
    return Expr(left.parts + right.parts, *counts)


def parts_of(value: object) -> tuple[Part, ...]:
    """Give the parts of something appended: str, expression, or a trace's stand-in.

    Raises: InvalidArgument for anything else, saying what to write instead.
    """
    if isinstance(value, StandIn):
        if type(value) is ParsedStandIn:
            stop(value, "appending a parsed value needs it; s.ref gives its text")
        return value._parts
    if isinstance(value, Expr):
        return value.parts
    if isinstance(value, str):
        text = str.__str__(value)  # a subclass, such as an enum's, by its content
        if not text.isascii():
            _check_encodes(text)
        return (text,)
    raise InvalidArgument(f"{place()}cannot append {_described(value)}")


def _check_encodes(text: str) -> None:
    try:
        check_encodes(text, "the text")
    except InvalidArgument as error:
        raise InvalidArgument(f"{place()}{error}") from error.__cause__


def _described(value: object) -> str:
    kind = type(value).__name__
    if value is None:
        return "None; append text or an expression (does a function lack its `return`?)"
    if isinstance(value, bool | int | float):
        return f"{value!r} ({kind}); pass str({value!r})"
    if isinstance(value, bytes | bytearray):
        return f"{kind}; decode it first: value.decode()"
    if isinstance(value, list | tuple):
        return f"a {kind}; append its items one by one, or join them to one str"
    if isinstance(value, dict):
        return "a dict; append s.ref(name), which is the text that the model wrote, or json.dumps"
    return f"a {kind}; pass a str, or an expression such as gen(...)"


def _spelling(expr: Expr) -> str:
    """Show roughly how the author wrote the first operation of `expr`."""
    for part in expr.parts:
        match part:
            case Gen():
                return spell(part)
            case Select(name=name):
                return "select(...)" if name is None else f"{spell(part)[:-1]}, ...)"
            case Link(name=name):
                return f's.ref("{name}")'
            case RoleBegin(role=role):
                return f"{role}(...)"
            case _:
                continue
    return "expression"
