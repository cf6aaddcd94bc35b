"""Regular languages over characters, by derivatives.

A language is an expression; the derivative by a character is the language of what may
follow it. Intersection, complement and counted repeats so cost nothing before somebody
walks there, and counters are numbers, not copies.
After: Brzozowski 1964; Owens, Reppy and Turon 2009.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, Protocol, TypeAlias, cast

from .charset import CharSet
from .expr import Ranges

Kind: TypeAlias = Literal[
    "nothing", "empty", "chars", "concat", "union", "both", "not", "repeat", "behind",
    "loop", "tracked", "machine",
]  # fmt: skip
UNBOUNDED = 1 << 60  # weight of what has no bound


class Machine(Protocol):
    """A deterministic automaton given by code; hashable, equal where it behaves alike."""

    def __hash__(self) -> int: ...

    @property
    def alphabet(self) -> Ranges | None:
        """Characters that, if they can be written, are enough for some text; None: not known."""
        ...

    @property
    def is_accepting(self) -> bool:
        """True where the text may end."""
        ...

    def steps(self) -> tuple[tuple[Ranges, Machine | None], ...]:
        """Give the sets of characters that lead on, apart from each other, and where to.

        None stands for any text.
        """
        ...


class Language:
    """One language. Made by `Languages`: equal expressions are one object.

    `parts` are its languages, or what the kind needs; `low` and `high` bound a repeat.
    """

    __slots__ = (
        "chars", "has_behind", "high", "is_counted", "is_nullable", "is_plain",
        "kind", "low", "nulls", "number", "parts", "payload", "rows", "weight",
    )  # fmt: skip

    def __init__(self, kind: Kind, number: int) -> None:
        self.kind: Kind = kind
        self.number = number
        self.parts: tuple[Language, ...] = ()
        self.payload: object = None  # of a loop, a machine, a behind
        self.chars: CharSet | None = None
        self.low = 0
        self.high: int | None = None
        self.has_behind = False  # what it is depends on the text before, or on a loop's round
        self.is_nullable = False  # where has_behind is False; else ask `is_nullable`
        self.is_plain = True  # no product or complement inside: it surely holds a text
        self.is_counted = False  # a repeat inside has a bound
        self.nulls: dict[int, bool] = {}  # by context, where has_behind is True
        self.weight = 0  # no shortest rest of a text in it is longer
        self.rows: dict[int, Row] = {}

    def __repr__(self) -> str:
        inside = self.chars or self.payload or ", ".join(map(repr, self.parts))
        bounds = f"{{{self.low},{self.high}}}" if self.kind in ("repeat", "loop") else ""
        return f"{self.kind}{bounds}({inside})"


# What the next character may be, and what follows it: sets apart from each other.
Row: TypeAlias = tuple[tuple[CharSet, Language], ...]


def is_nullable(language: Language, context: int = 0) -> bool:
    """Say whether the empty text is in it.

    `context` has a bit for each history that the text so far is in.
    """
    return _Nulls(context).of(language)


class _Nulls:
    """Looks for the empty text, a loop inside itself not counted; keeps what it finds."""

    def __init__(self, context: int) -> None:
        self._context = context
        self._open: set[Language] = set()
        self._num_cut = 0  # times that a loop met itself

    def of(self, language: Language) -> bool:
        """Say whether the empty text is in it."""
        if not language.has_behind:
            return language.is_nullable
        found = language.nulls.get(self._context)
        if found is None:
            num_cut = self._num_cut
            found = self._find(language)
            if not self._open or self._num_cut == num_cut:
                language.nulls[self._context] = found
        return found

    def _find(self, language: Language) -> bool:
        parts = language.parts
        match language.kind:
            case "behind":
                place, is_negated = cast("tuple[int, bool]", language.payload)
                return bool(self._context >> place & 1) != is_negated
            case "loop":
                return self._loop(language)
            case "not":
                return not self.of(parts[0])
            case "repeat":
                return language.low == 0 or self.of(parts[0])
            case "union":
                return any(map(self.of, parts))
            case _:
                return all(map(self.of, parts))

    def _loop(self, loop: Language) -> bool:
        if loop in self._open:  # a round that takes no character adds nothing
            self._num_cut += 1
            return False
        self._open.add(loop)
        try:
            return self.of(unfold(loop))
        finally:
            self._open.remove(loop)


def context_of(histories: Sequence[Language]) -> int:
    """Give the bits of the histories that the text so far is in."""
    return sum(is_nullable(history) << place for place, history in enumerate(histories))


def unfold(loop: Language) -> Language:
    """Give what a loop is: nothing more, or one round and the loop again."""
    return cast("Callable[[], Language]", loop.payload)()
