"""What follows a language's next character, and whether any text is in it at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import cast

from .charset import CharSet
from .language import Language, Machine, Row, context_of, is_nullable, unfold
from .languages import Languages

NO_ROW: Row = ()


class Derivatives:
    """Takes the languages of a pool apart, character by character. Not thread-safe.

    `alphabet` are the characters that can be written.

    `context` holds a bit for each history that the text so far is in; it matters only to
    languages with looks behind, and only inside a `tracked` one.
    """

    def __init__(self, languages: Languages, alphabet: CharSet) -> None:
        self._languages = languages
        self._alphabet = alphabet
        self._live: dict[Language, bool] = {languages.nothing: False}
        self._sets = languages.sets
        self._open: set[Language] = set()  # loops whose row is being made
        self._num_cut = 0  # times that a loop met itself there

    def row(self, language: Language, context: int = 0) -> Row:
        """Give what may come next and what follows it; sets apart, nothing left out."""
        if not language.has_behind:
            context = 0
        found = language.rows.get(context)
        if found is None:
            self._languages.budget.spend(1, "the constraint")
            num_cut = self._num_cut
            found = self._row(language, context)
            if not self._open or self._num_cut == num_cut:
                language.rows[context] = found
        return found

    def is_live(self, language: Language) -> bool:
        """Say whether any text is in it. Searches where the expression does not tell.

        The answer is kept, as are those for all that was passed on the way.
        """
        found = True if language.is_plain else self._live.get(language)
        if found is None:
            found = self._search(language)
        return found

    def _search(self, start: Language) -> bool:
        """Walk depth first until a text is found or all ways are dead."""
        seen = {start}
        path = [(start, iter(self.row(start)))]
        is_found = is_nullable(start)
        while path and not is_found:
            for chars, target in path[-1][1]:
                known = True if target.is_plain else self._live.get(target)
                if known is False or target in seen or not self._can_spell(chars):
                    continue
                is_found = bool(known) or is_nullable(target)
                seen.add(target)
                path.append((target, iter(self.row(target))))
                break
            else:
                path.pop()
        self._live.update((language, is_found) for language in (_first(path) if is_found else seen))
        return is_found

    def _can_spell(self, chars: CharSet) -> bool:
        return bool(self._languages.sets.intersect(chars, self._alphabet))

    def _row(self, language: Language, context: int) -> Row:
        languages, parts = self._languages, language.parts
        match language.kind:
            case "nothing" | "empty" | "behind":
                return NO_ROW
            case "chars":
                assert language.chars is not None
                return ((language.chars, languages.empty),)
            case "concat":
                row = self._then(self.row(parts[0], context), parts[1])
                if is_nullable(parts[0], context):
                    row = self._union(row, self.row(parts[1], context))
                return row
            case "repeat":
                low, high = max(language.low - 1, 0), language.high
                rest = languages.repeat(parts[0], low, None if high is None else high - 1)
                return self._then(self.row(parts[0], context), rest)
            case "union":
                row = NO_ROW
                for part in parts:
                    row = self._union(row, self.row(part, context))
                return row
            case "both":
                row = self.row(parts[0], context)
                for part in parts[1:]:
                    row = self._both(row, self.row(part, context))
                return row
            case "not":
                return self._not(self.row(parts[0], context))
            case "machine":
                machine = cast("Machine", language.payload)
                steps = ((self._sets.get(r), languages.machine(m)) for r, m in machine.steps())
                return tuple(steps)
            case "loop":
                return self._loop(language, context)
            case "tracked":
                return self._tracked(language)

    def _loop(self, loop: Language, context: int) -> Row:
        """Give the row of a loop; a round that takes no character adds nothing to it."""
        if loop in self._open:
            self._num_cut += 1
            return NO_ROW
        self._open.add(loop)
        try:
            return self.row(unfold(loop), context)
        finally:
            self._open.remove(loop)

    def _tracked(self, language: Language) -> Row:
        body, *histories = language.parts
        found: list[tuple[CharSet, Language]] = []
        for chars, after in self.row(body, context_of(language.parts[1:])):
            pieces: list[tuple[CharSet, tuple[Language, ...]]] = [(chars, ())]
            for history in histories if after.has_behind else ():
                row = self._filled(self.row(history))
                pieces = [
                    (both, (*kept, target))
                    for piece, kept in pieces
                    for next_chars, target in row
                    if (both := self._sets.intersect(piece, next_chars))
                ]
            found.extend((c, self._languages.tracked(after, kept)) for c, kept in pieces)
        return self._merged(found)

    def _then(self, row: Row, rest: Language) -> Row:
        if rest is self._languages.empty:
            return row
        return self._merged((c, self._languages.concat(after, rest)) for c, after in row)

    def _union(self, a: Row, b: Row) -> Row:
        if not a or not b:
            return a or b
        return self._combine(a, b, lambda x, y: self._languages.union((x, y)), keeps_rest=True)

    def _both(self, a: Row, b: Row) -> Row:
        return self._combine(a, b, lambda x, y: self._languages.both((x, y)), keeps_rest=False)

    def _combine(
        self, a: Row, b: Row, join: Callable[[Language, Language], Language], keeps_rest: bool
    ) -> Row:
        sets = self._sets
        found: list[tuple[CharSet, Language]] = []
        rests = list(b)
        for chars, after in a:
            left = chars
            for place, (others, other_after) in enumerate(rests):
                common = sets.intersect(left, others)
                if not common:
                    continue
                found.append((common, join(after, other_after)))
                left = sets.subtract(left, common)
                rests[place] = (sets.subtract(others, common), other_after)
                if not left:
                    break
            if keeps_rest and left:
                found.append((left, after))
        if keeps_rest:
            found.extend((chars, after) for chars, after in rests if chars)
        return self._merged(found)

    def _filled(self, row: Row) -> Row:
        """Add what a row leaves out, as leading to nothing."""
        rest = self._sets.all
        for chars, _ in row:
            rest = self._sets.subtract(rest, chars)
        return (*row, (rest, self._languages.nothing)) if rest else row

    def _not(self, row: Row) -> Row:
        negate = self._languages.negate
        return self._merged((chars, negate(after)) for chars, after in self._filled(row))

    def _merged(self, row: object) -> Row:
        """Join the sets that lead to the same language; drop what leads to nothing."""
        groups: dict[Language, list[CharSet]] = {}
        for chars, after in cast("Row", row):
            if after is not self._languages.nothing:
                groups.setdefault(after, []).append(chars)
        return tuple(
            (sets[0] if len(sets) == 1 else self._sets.union(sets), after)
            for after, sets in groups.items()
        )


def _first(path: list[tuple[Language, Iterator[tuple[CharSet, Language]]]]) -> list[Language]:
    return [language for language, _ in path]
