"""The pool of regular languages: every one is made here, simplified and made once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence

from .budget import Budget
from .charset import CharSet, CharSets
from .expr import ANY, Ranges
from .language import UNBOUNDED, Kind, Language, Machine, context_of, is_nullable


class Languages:
    """Makes languages; equal expressions become one object. Not thread-safe.

    Who uses it sets `budget` first: each new language costs one state of it.
    """

    def __init__(self, budget: Budget, spellable: Ranges = ANY.ranges) -> None:
        self.budget = budget
        self.sets = CharSets()
        self.spellable = self.sets.get(spellable)  # written by the vocabulary
        self._made: dict[Hashable, Language] = {}
        self.memo: dict[Hashable, Language] = {}  # of who builds the same ones often
        self._concats: dict[tuple[Language, Language], Language] = {}
        self.nothing = self._new("nothing", ())
        self.empty = self._new("empty", ())
        self.empty.is_nullable = True
        self.nothing.is_plain = False
        self.any = self.chars(self.sets.get(ANY.ranges))
        self.anything = self.repeat(self.any, 0, None)

    def __len__(self) -> int:
        return len(self._made) + len(self._concats) + len(self.sets)

    def chars(self, chars: CharSet) -> Language:
        """One character of a set."""
        if not chars:
            return self.nothing
        found = self._new("chars", (), chars)
        found.chars, found.weight = chars, 1
        found.is_plain = bool(self.sets.intersect(chars, self.spellable))
        return found

    def word(self, text: str) -> Language:
        """Exactly `text`."""
        found = self.empty
        for char in reversed(text):
            code = ord(char)
            found = self.concat(self.chars(self.sets.get(((code, code),))), found)
        return found

    def concat(self, first: Language, then: Language) -> Language:
        """A text of `first`, then one of `then`. Right-nested."""
        if first is self.nothing or then is self.nothing:
            return self.nothing
        if first is self.empty:
            return then
        if then is self.empty or (first is self.anything and then is self.anything):
            return first
        chain: list[Language] = []  # ends of `first` to be put before `then`
        while first.kind == "concat" and (first, then) not in self._concats:
            chain.append(first)
            first = first.parts[1]
        found = self._concats.get((first, then)) or self._pair(first, then)
        for end in reversed(chain):
            found = self._concats[end, then] = self._pair(end.parts[0], found)
        return found

    def _pair(self, first: Language, then: Language) -> Language:
        """Put `first`, which is no concat, before `then`; equal repeats in a row become one."""
        head, rest = _split(then, self.empty)
        if first.kind == head.kind == "repeat" and head.parts[0] is first.parts[0]:
            high = None if first.high is None or head.high is None else first.high + head.high
            return self._pair(self.repeat(head.parts[0], first.low + head.low, high), rest)
        if then is self.empty or (first is self.anything and then is self.anything):
            return first
        found = self._new("concat", (first, then))
        found.is_nullable = first.is_nullable and then.is_nullable
        found.weight = min(UNBOUNDED, first.weight + then.weight)
        return found

    def sequence(self, parts: Sequence[Language]) -> Language:
        """The parts one after the other."""
        found = self.empty
        for part in reversed(parts):
            found = self.concat(part, found)
        return found

    def repeat(self, item: Language, low: int, high: int | None) -> Language:
        """`low` to `high` texts of `item`."""
        if high == 0 or item is self.empty or (item is self.nothing and low == 0):
            return self.empty
        if item is self.nothing or (low, high) == (1, 1):
            return item
        if item.is_nullable and not item.has_behind:
            low = 0
        if item.kind == "repeat" and item.low <= 1 and not item.has_behind:
            # The counts that k rounds of the item can give touch those of k + 1 rounds.
            most = None if high is None or item.high is None else high * item.high
            return self.repeat(item.parts[0], low * item.low, most)
        found = self._new("repeat", (item,), (low, high))
        found.low, found.high = low, high
        found.is_counted = item.is_counted or low > 1 or high is not None
        found.is_nullable = low == 0 or item.is_nullable
        found.weight = min(UNBOUNDED, (low + 1) * item.weight)
        return found

    def union(self, options: Iterable[Language]) -> Language:
        """A text of any of the options."""
        flat: dict[Language, None] = {}
        for option in options:
            parts = option.parts if option.kind == "union" else (option,)
            flat.update(dict.fromkeys(parts))
        flat.pop(self.nothing, None)
        if self.anything in flat:
            return self.anything
        if len(flat) > 1:
            flat = self._joined(flat)
        if len(flat) == 1:
            return next(iter(flat))
        if not flat:
            return self.nothing
        parts = tuple(sorted(flat, key=_number))
        found = self._new("union", parts)
        found.is_nullable = any(part.is_nullable for part in parts)
        found.weight = max(part.weight for part in parts)
        return found

    def both(self, parts: Iterable[Language]) -> Language:
        """A text of all of the parts."""
        flat: dict[Language, None] = {}
        for part in parts:
            flat.update(dict.fromkeys(part.parts if part.kind == "both" else (part,)))
        flat.pop(self.anything, None)
        if self.nothing in flat or any(p.kind == "not" and p.parts[0] in flat for p in flat):
            return self.nothing
        flat = self._narrowed(flat)
        if not flat:
            return self.anything
        if len(flat) == 1:
            return next(iter(flat))
        kept = tuple(sorted(flat, key=_number))
        if self.empty in flat and not any(part.has_behind for part in kept):
            return self.empty if all(part.is_nullable for part in kept) else self.nothing
        found = self._new("both", kept)
        found.is_nullable = all(part.is_nullable for part in kept)
        found.is_plain, found.weight = False, UNBOUNDED
        return found

    def negate(self, item: Language) -> Language:
        """All texts that are not in `item`."""
        if item is self.nothing:
            return self.anything
        if item is self.anything:
            return self.nothing
        if item.kind == "not":
            return item.parts[0]
        found = self._new("not", (item,))
        found.is_nullable = not item.is_nullable
        found.is_plain, found.weight = False, UNBOUNDED
        return found

    def behind(self, place: int, is_negated: bool) -> Language:
        """The empty text, where the history numbered `place` matches (or does not)."""
        found = self._new("behind", (), (place, is_negated))
        found.payload, found.has_behind = (place, is_negated), True
        found.is_plain, found.weight = False, UNBOUNDED
        return found

    def tracked(self, body: Language, histories: Sequence[Language]) -> Language:
        """`body`, whose looks behind ask whether the text so far is in a history."""
        if not body.has_behind or not histories:
            return body
        is_last = is_nullable(body, context_of(histories))  # first: it may run out of budget
        found = self._new("tracked", (body, *histories))
        found.is_nullable, found.has_behind = is_last, False
        found.is_plain, found.weight = False, UNBOUNDED
        return found

    def loop(self, key: Hashable, unfold: Callable[[], Language]) -> Language:
        """A repeat whose rounds look around, given one round at a time by `unfold`."""
        found = self._new("loop", (), key)
        found.payload, found.has_behind = unfold, True
        found.is_plain, found.weight = False, UNBOUNDED
        return found

    def machine(self, machine: Machine) -> Language:
        """The texts of an automaton given by code."""
        found = self._new("machine", (), machine)
        found.payload, found.is_nullable = machine, machine.is_accepting
        found.weight = UNBOUNDED
        found.is_plain = self._can_spell(machine.alphabet)
        return found

    def _can_spell(self, alphabet: Ranges | None) -> bool:
        if alphabet is None:
            return False
        return not self.sets.subtract(self.sets.get(alphabet), self.spellable)

    def _new(self, kind: Kind, parts: tuple[Language, ...], extra: Hashable = None) -> Language:
        key = (kind, parts, extra)
        found = self._made.get(key)
        if found is None:
            self.budget.spend(1, "the constraint")
            found = self._made[key] = Language(kind, len(self._made))
            found.parts = parts
            for part in parts:
                found.has_behind |= part.has_behind
                found.is_plain &= part.is_plain
                found.is_counted |= part.is_counted
        return found

    def _joined(self, options: dict[Language, None]) -> dict[Language, None]:
        """Join the options of a union that differ in one set or in one counter."""
        sets = [o.chars for o in options if o.chars is not None]
        if len(sets) > 1:
            rest = [o for o in options if o.chars is None]
            options = dict.fromkeys([*rest, self.chars(self.sets.union(sets))])
        options = self._joined_counters(options)
        if self.empty in options and any(
            o.is_nullable and not o.has_behind for o in options if o is not self.empty
        ):
            del options[self.empty]
        return options

    def _joined_counters(self, options: dict[Language, None]) -> dict[Language, None]:
        """x{0,3} or x{2,9} is x{0,9}, also before a common rest."""
        groups: dict[tuple[Language, Language], list[Language]] = {}
        kept: dict[Language, None] = {}
        for option in options:
            head, rest = _split(option, self.empty)
            if head.kind == "repeat":
                groups.setdefault((head.parts[0], rest), []).append(head)
            else:
                kept[option] = None
        for (item, rest), heads in groups.items():
            for low, high in _merge_bounds([(head.low, head.high) for head in heads]):
                kept[self.concat(self.repeat(item, low, high), rest)] = None
        return kept

    def _narrowed(self, parts: dict[Language, None]) -> dict[Language, None]:
        """Join sets, and lengths, of an intersection."""
        sets = [p for p in parts if p.chars is not None]
        lengths = [p for p in parts if p.kind == "repeat" and p.parts[0] is self.any]
        if len(sets) < 2 and len(lengths) < 2:
            return parts
        kept = {p: None for p in parts if p not in sets and p not in lengths}
        if sets:
            chars = self.sets.all
            for part in sets:
                assert part.chars is not None
                chars = self.sets.intersect(chars, part.chars)
            kept[self.chars(chars)] = None
        if lengths:
            low = max(part.low for part in lengths)
            highs = [part.high for part in lengths if part.high is not None]
            is_possible = not highs or low <= min(highs)
            length = self.repeat(self.any, low, min(highs, default=None))
            kept[length if is_possible else self.nothing] = None
        if self.nothing in kept:
            return {self.nothing: None}
        return kept


def _number(language: Language) -> int:
    return language.number


def _split(language: Language, empty: Language) -> tuple[Language, Language]:
    if language.kind == "concat":
        return language.parts[0], language.parts[1]
    return language, empty


def _merge_bounds(bounds: list[tuple[int, int | None]]) -> list[tuple[int, int | None]]:
    merged: list[tuple[int, int | None]] = []
    for low, high in sorted(bounds, key=lambda b: b[0]):
        last = merged[-1] if merged else None
        if last is None or (last[1] is not None and low > last[1] + 1):
            merged.append((low, high))
        elif last[1] is not None and (high is None or high > last[1]):
            merged[-1] = (last[0], high)
    return merged
