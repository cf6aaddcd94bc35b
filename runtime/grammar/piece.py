"""A part of a language that is to be followed as the whole is: some texts of a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .derive import Derivatives
from .expr import Ranges
from .language import Language, is_nullable
from .languages import Languages


class Guarded:
    """A Machine whose text so far counts only where none of `pending` begins what follows."""

    __slots__ = ("pending",)

    def __init__(self, pending: tuple[Language, ...]) -> None:
        self.pending = pending

    @property
    def alphabet(self) -> Ranges | None:
        """Say that nothing is known of it."""
        return None


@dataclass(frozen=True, slots=True)
class Piece:
    """A Machine for the texts of `part`, which is inside `whole`.

    A lexer takes all that the whole terminal can take, also where only some of its texts
    count: "if" of a name is over only where no longer name begins with it.
    """

    part: Language
    whole: Language
    languages: Languages
    derivatives: Derivatives

    @property
    def alphabet(self) -> Ranges | None:
        """Say that nothing is known of it."""
        return None

    @property
    def is_accepting(self) -> bool:
        """True where the text is in the part."""
        return is_nullable(self.part)

    @property
    def guard(self) -> Language:
        """The texts that may not begin what follows: those that belong to it, or break it."""
        machine = self.whole.payload
        pending = machine.pending if isinstance(machine, Guarded) else ()
        return self.languages.union((self.whole, *pending))

    def steps(self) -> tuple[tuple[Ranges, Piece], ...]:
        """Give what the part may go on with, and what the whole is then."""
        return tuple(self._steps())

    def _steps(self) -> Iterator[tuple[Ranges, Piece]]:
        languages, row = self.languages, self.derivatives.row
        for chars, part in row(self.part):
            for others, whole in row(self.whole):
                common = languages.sets.intersect(chars, others)
                if common:
                    yield common.ranges, Piece(part, whole, languages, self.derivatives)
