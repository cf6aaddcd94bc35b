"""The text that `re.match` takes: of all that match, the one that backtracking finds first.

All ways to match are followed side by side, the preferred ones first, and a whole match
drops all after it; so the longest text at which this automaton accepts is what `re` takes.
Looks hold inside the text; of what follows it, a look may only say what it must not be.
After: Thompson; Pike's VM, as in RE2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

from .charset import CharSet
from .derive import Derivatives
from .expr import Anchor, Chars, Concat, Expr, Look, Ranges, Repeat, Union
from .language import Language, is_nullable
from .languages import Languages
from .lark_looks import Looks, Unclear
from .piece import Guarded

# What the automaton accepts: "token": the text that `re` takes. "sure": a text that begins
# with a match, whatever follows. "open": a text that matches if it ends here.
Mode: TypeAlias = Literal["token", "sure", "open"]
Ahead: TypeAlias = frozenset[tuple[Language, bool]]  # what the rest must begin with, or not
NO_LOOKS: Ahead = frozenset()


class Spot:
    """An expression still to be matched, and the spot after it; made once by its `Scans`."""

    __slots__ = ("after", "expr", "high", "low")

    def __init__(self, expr: Expr, after: Spot | None, low: int, high: int | None) -> None:
        self.expr, self.after = expr, after
        self.low, self.high = low, high  # of a repeat


Thread: TypeAlias = tuple[CharSet, "Spot | None", Ahead]  # these characters lead on
Spots: TypeAlias = "Sequence[tuple[Spot | None, Ahead]]"  # no spot: a whole match
# The threads, the looks of a match if there is one, the histories, the characters read.
Key: TypeAlias = "tuple[tuple[Thread, ...], Ahead | None, tuple[Language, ...], int]"


class Scan(Guarded):
    """A Machine: where the ways to match stand. Made by `Scans`: equal ones are one object."""

    __slots__ = ("_owner", "_steps", "behind", "is_accepting", "num_read", "threads")

    def __init__(self, owner: Scans, key: Key) -> None:
        self._owner = owner
        self._steps: tuple[tuple[Ranges, Scan], ...] | None = None
        self.threads, match, self.behind, self.num_read = key
        self.is_accepting = match is not None
        super().__init__(tuple(language for language, _ in match or ()))

    def steps(self) -> tuple[tuple[Ranges, Scan], ...]:
        """Give where each set of characters leads."""
        if self._steps is None:
            self._steps = self._owner.steps(self)
        return self._steps


class Scans:
    """Makes the automaton of one expression in one mode. Not thread-safe."""

    def __init__(
        self, expr: Expr, mode: Mode, languages: Languages, derivatives: Derivatives
    ) -> None:
        self._mode = mode
        self._expr = expr
        self._languages = languages
        self._sets = languages.sets
        self._derivatives = derivatives
        self._looks = Looks(expr, languages)
        self._spots: dict[tuple[int, int, int | None, Spot | None], Spot] = {}
        self._made: dict[Key, Scan] = {}
        self.num_cut = 0  # matches that dropped other ways
        self.num_open = 0  # matches that depend on what follows

    def start(self) -> Scan:
        """Give the automaton before the first character."""
        return self._close([(self._spot(self._expr, None), NO_LOOKS)], self._looks.histories, 0)

    def steps(self, scan: Scan) -> tuple[tuple[Ranges, Scan], ...]:
        """Give where each set of characters leads from `scan`."""
        groups: dict[Scan, list[CharSet]] = {}
        for atom in self._atoms(scan):
            after = self._step(scan, atom)
            if after.threads or after.is_accepting:
                groups.setdefault(after, []).append(atom)
        return tuple((self._sets.union(atoms).ranges, after) for after, atoms in groups.items())

    def _atoms(self, scan: Scan) -> list[CharSet]:
        """Split all characters into sets of which each way treats all alike."""
        borders: dict[CharSet, None] = {}
        for chars, _, ahead in scan.threads:
            borders[chars] = None
            for language, _ in ahead:
                borders.update((others, None) for others, _ in self._derivatives.row(language))
        for history in scan.behind:
            borders.update((others, None) for others, _ in self._derivatives.row(history))
        atoms = [self._sets.all]
        for chars in borders:
            halves = (
                half
                for atom in atoms
                for half in (self._sets.intersect(atom, chars), self._sets.subtract(atom, chars))
            )
            atoms = [half for half in halves if half]
        return atoms

    def _step(self, scan: Scan, atom: CharSet) -> Scan:
        behind = tuple(self._after(history, atom) for history in scan.behind)
        spots: list[tuple[Spot | None, Ahead]] = []
        for chars, spot, ahead in scan.threads:
            if not self._sets.intersect(atom, chars):
                continue
            left = self._step_looks(ahead, atom)
            if left is not None:
                spots.append((spot, left))
        return self._close(spots, behind, min(scan.num_read + 1, self._looks.width))

    def _step_looks(self, ahead: Ahead, atom: CharSet) -> Ahead | None:
        """Step what the rest must begin with; None once it does not."""
        left: list[tuple[Language, bool]] = []
        for language, is_negated in ahead:
            after = self._after(language, atom)
            if is_nullable(after):
                if is_negated:
                    return None
            elif self._derivatives.is_live(after):
                left.append((after, is_negated))
            elif not is_negated:
                return None
        return frozenset(left)

    def _after(self, language: Language, atom: CharSet) -> Language:
        for chars, after in self._derivatives.row(language):
            if self._sets.intersect(chars, atom):
                return after
        return self._languages.nothing

    def _close(self, spots: Spots, behind: tuple[Language, ...], num_read: int) -> Scan:
        """Follow all ways up to their next characters, in order."""
        threads: list[Thread] = []
        match: Ahead | None = None
        pending = list(reversed(spots))
        seen: set[tuple[Spot | None, Ahead]] = set()
        while pending:
            spot, ahead = pending.pop()
            if (spot, ahead) in seen:
                continue
            seen.add((spot, ahead))
            if spot is None:
                if self._is_match(ahead):
                    match = ahead
                if self._mode == "token" or not ahead:
                    self.num_cut += bool(pending)
                    break
                threads.append((self._sets.all, None, ahead))
            elif isinstance(spot.expr, Chars):
                threads.append((self._sets.get(spot.expr.ranges), spot.after, ahead))
            else:
                pending.extend(reversed(list(self._expand(spot, ahead, behind, num_read))))
        return self._make((tuple(threads), match, behind, num_read))

    def _is_match(self, ahead: Ahead) -> bool:
        """Say whether a whole match that has looks at what follows is accepted."""
        self.num_open += bool(ahead)
        if not all(is_negated for _, is_negated in ahead):
            raise Unclear("a lookahead that asks for what follows the terminal")
        return self._mode == "token" or (self._mode == "open") == bool(ahead)

    def _expand(
        self, spot: Spot, ahead: Ahead, behind: tuple[Language, ...], num: int
    ) -> Iterator[tuple[Spot | None, Ahead]]:
        """Give the ways on from a spot that reads no character itself, preferred ones first."""
        match spot.expr:
            case Concat(parts):
                after = spot.after
                for part in reversed(parts):
                    after = self._spot(part, after)
                yield after, ahead
            case Union(options):
                for option in options:
                    yield self._spot(option, spot.after), ahead
            case Repeat() as repeat:
                for after in self._rounds(repeat, spot):
                    yield after, ahead
            case Look(is_ahead=True) | Anchor("end" | "last_line" | "line_end") as look:
                language, is_negated = self._looks.ahead(look)
                if not is_nullable(language):
                    yield spot.after, ahead | {(language, is_negated)}
                elif not is_negated:
                    yield spot.after, ahead
            case Look() | Anchor() as look:
                if self._looks.holds_behind(look, behind, num):
                    yield spot.after, ahead
            case other:
                raise Unclear(f"{type(other).__name__}")

    def _rounds(self, repeat: Repeat, spot: Spot) -> list[Spot | None]:
        low, high = spot.low, spot.high
        if high == 0:
            return [spot.after]
        rest = self._repeat(repeat, max(low - 1, 0), None if high is None else high - 1, spot.after)
        ways = [self._spot(repeat.item, rest), spot.after]
        if low:
            return ways[:1]
        return ways[::-1] if repeat.is_lazy else ways

    def _spot(self, expr: Expr, after: Spot | None) -> Spot:
        if isinstance(expr, Repeat):
            return self._repeat(expr, expr.low, expr.high, after)
        return self._get(expr, 0, 0, after)

    def _repeat(self, expr: Repeat, low: int, high: int | None, after: Spot | None) -> Spot:
        return self._get(expr, low, high, after)

    def _get(self, expr: Expr, low: int, high: int | None, after: Spot | None) -> Spot:
        key = (id(expr), low, high, after)
        found = self._spots.get(key)
        if found is None:
            found = self._spots[key] = Spot(expr, after, low, high)
        return found

    def _make(self, key: Key) -> Scan:
        found = self._made.get(key)
        if found is None:
            self._languages.budget.spend(1, "a terminal")
            found = self._made[key] = Scan(self, key)
        return found
