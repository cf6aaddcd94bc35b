"""What follows a language's next character, and whether any text is in it at all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias, cast

from .chars import union
from .charset import CharSet
from .expr import Ranges
from .language import Language, Machine, Row, context_of, is_nullable, unfold
from .languages import Languages

NO_ROW: Row = ()
FEW = 32  # sets in a union: past them, one pass over all their ranges is faster

Pieces: TypeAlias = dict[CharSet, list[Language]]  # what may follow each set; these may overlap


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
                return self._concat(language, context)
            case "repeat":
                low, high = max(language.low - 1, 0), language.high
                rest = languages.repeat(parts[0], low, None if high is None else high - 1)
                return self._then(self.row(parts[0], context), rest)
            case "union":
                return self._union([self.row(part, context) for part in parts])
            case "both":
                row = self.row(parts[0], context)
                for part in parts[1:]:
                    row = self._both(row, self.row(part, context))
                return row
            case "not":
                return self._not(self.row(parts[0], context))
            case "machine":
                machine = cast("Machine", language.payload)
                return tuple(
                    (self._sets.get(r), languages.anything if m is None else languages.machine(m))
                    for r, m in machine.steps()
                )
            case "loop":
                return self._loop(language, context)
            case "tracked":
                return self._tracked(language)

    def _concat(self, language: Language, context: int) -> Row:
        """Give the row of a concat: that of its first part, and of all that may come first."""
        chain = [language]
        while is_nullable(chain[-1].parts[0], context):
            rest = chain[-1].parts[1]
            if rest.kind != "concat" or (0 if not rest.has_behind else context) in rest.rows:
                break
            chain.append(rest)
        row = NO_ROW
        for end in reversed(chain):  # the longest last: each may use what was made before
            head, rest = end.parts
            row = self._then(self.row(head, context), rest)
            if is_nullable(head, context):
                row = self._union([row, self.row(rest, context)])
            if end is not language and not self._open:
                end.rows[context if end.has_behind else 0] = row
        return row

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

    def _union(self, rows: list[Row]) -> Row:
        """Join rows; characters at which the same options go on stay together."""
        rows = [row for row in rows if row]
        if len(rows) < 2:
            return rows[0] if rows else NO_ROW
        pieces: dict[CharSet, list[Language]] = {}
        for row in rows:
            for chars, after in row:
                pieces.setdefault(chars, []).append(after)
        join = self._languages.union
        split = self._overlaps if len(pieces) <= FEW else self._sweep
        return self._merged((chars, join(after)) for chars, after in split(pieces))

    def _overlaps(self, pieces: Pieces) -> Iterable[tuple[CharSet, list[Language]]]:
        """Split sets where they overlap, each with all languages that follow it."""
        sets = self._sets
        found: list[tuple[CharSet, list[Language]]] = []
        for chars, after in pieces.items():
            left = chars
            split: list[tuple[CharSet, list[Language]]] = []
            for others, known in found:
                common = sets.intersect(left, others)
                if common:
                    split.append((common, [*known, *after]))
                    left = sets.subtract(left, common)
                    others = sets.subtract(others, common)
                if others:
                    split.append((others, known))
            found = split
            if left:
                found.append((left, after))
        return found

    def _sweep(self, pieces: Pieces) -> Iterable[tuple[CharSet, list[Language]]]:
        """Split sets where they overlap, in one pass over all their ranges."""
        for sets, ranges in sweep(pieces).items():
            yield self._sets.get(ranges), [after for chars in sets for after in pieces[chars]]

    def _both(self, a: Row, b: Row) -> Row:
        both, intersect = self._languages.both, self._sets.intersect
        return self._merged(
            (common, both((after, other_after)))
            for chars, after in a
            for others, other_after in b
            if (common := intersect(chars, others))
        )

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


def sweep(sets: Iterable[CharSet]) -> dict[tuple[CharSet, ...], Ranges]:
    """Give the characters that are in the same of the sets. O(n log n) for n ranges."""
    changes: dict[int, list[CharSet]] = {}
    for chars in sets:
        for low, high in chars.ranges:
            changes.setdefault(low, []).append(chars)
            changes.setdefault(high + 1, []).append(chars)
    found: dict[tuple[CharSet, ...], list[tuple[int, int]]] = {}
    active: dict[CharSet, None] = {}
    start = 0
    for place in sorted(changes):
        if active:
            found.setdefault(tuple(active), []).append((start, place - 1))
        for chars in changes[place]:
            if chars in active:
                del active[chars]
            else:
                active[chars] = None
        start = place
    return {active: union(ranges) for active, ranges in found.items()}


def _first(path: list[tuple[Language, Iterator[tuple[CharSet, Language]]]]) -> list[Language]:
    return [language for language, _ in path]
