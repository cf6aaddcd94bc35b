"""Languages that look the same over a few characters: counters far from their ends cut.

So a text of at most 200 characters has one mask for all but its last few, not 200.
"""

from __future__ import annotations

from .derive import Derivatives
from .language import UNBOUNDED, Language, is_nullable
from .languages import Languages

MAX_EXPLORED = 128  # languages looked at to find how long a rest can be


class Twins:
    """Finds the twins of a pool's languages; not thread-safe.

    `derivatives` are those over all characters.
    """

    def __init__(self, languages: Languages, derivatives: Derivatives) -> None:
        self._languages = languages
        self._derivatives = derivatives
        self._rests: dict[Language, int] = {}
        self._found: dict[tuple[Language, int], Language] = {}

    def get(self, language: Language, horizon: int) -> Language:
        """Give the twin of `language` for texts of at most `horizon` characters.

        Each such text leads on from both, or from neither; it is itself if there is none.
        """
        if not language.is_counted:
            return language
        chain: list[Language] = []
        while (
            language.kind == "concat"
            and language.is_plain
            and (language, horizon) not in self._found
        ):
            chain.append(language)
            language = language.parts[1]
        found = self._found.get((language, horizon))
        if found is None:
            found = self._found[language, horizon] = self._find(language, horizon)
        for end in reversed(chain):
            found = self._languages.concat(self.get(end.parts[0], horizon), found)
            self._found[end, horizon] = found
        return found

    def rest_len(self, language: Language) -> int:
        """Give a bound: no shortest rest of a text in `language` is longer."""
        if language.is_plain:
            return language.weight
        found = self._rests.get(language)
        if found is None:
            ahead = self._explore(language)
            found = UNBOUNDED if len(ahead) > MAX_EXPLORED else _longest_rest(ahead)
            self._rests.update(dict.fromkeys(ahead, found))
        return found

    def _find(self, language: Language, horizon: int) -> Language:
        languages, parts = self._languages, language.parts
        match language.kind:
            case "repeat" if language.is_plain:
                low, high = min(language.low, horizon), language.high
                if high is not None and high > horizon:
                    high = None
                return languages.repeat(self.get(parts[0], horizon), low, high)
            case "union" if language.is_plain:
                return languages.union([self.get(part, horizon) for part in parts])
            case "both":
                return self._without_end(language, horizon)
            case _:
                return language

    def _without_end(self, both: Language, horizon: int) -> Language:
        """Take away the bound of a count of characters that meets another language.

        Where a text can go on at all, it can so within `rest_len` characters from the
        smallest count on: a bound further away than that forbids nothing.
        """
        languages = self._languages
        counts = [p for p in both.parts if _counts_chars(p)]
        if len(counts) != 1:
            return both
        (count,) = counts
        assert count.high is not None
        others = [part for part in both.parts if part is not count]
        far = max(count.low, horizon)
        if count.high <= far:
            return both
        endless = languages.both((languages.repeat(count.parts[0], 0, None), *others))
        if count.high < far + self.rest_len(endless):
            return both
        return languages.both((languages.repeat(count.parts[0], count.low, None), *others))

    def _explore(self, start: Language) -> dict[Language, set[Language]]:
        """Give what can follow, each with what follows it by a character that can be written.

        Stops after more than MAX_EXPLORED.
        """
        derivatives, spellable = self._derivatives, self._languages.spellable
        ahead: dict[Language, set[Language]] = {start: set()}
        pending = [start]
        while pending and len(ahead) <= MAX_EXPLORED:
            language = pending.pop()
            for chars, target in derivatives.row(language):
                if not derivatives.is_live(target):
                    continue
                if target not in ahead:
                    ahead[target] = set()
                    pending.append(target)
                if self._languages.sets.intersect(chars, spellable):
                    ahead[language].add(target)
        return ahead


def _counts_chars(language: Language) -> bool:
    if language.kind != "repeat" or language.high is None:
        return False
    return language.parts[0].kind == "chars"


def _longest_rest(ahead: dict[Language, set[Language]]) -> int:
    """Give the longest of the shortest ways to an end; UNBOUNDED if one has none."""
    before: dict[Language, list[Language]] = {}
    for language, targets in ahead.items():
        for target in targets:
            before.setdefault(target, []).append(language)
    reached = {language for language in ahead if is_nullable(language)}
    steps, border = 0, reached
    while True:
        border = {b for language in border for b in before.get(language, ())} - reached
        if not border:
            break
        reached, steps = reached | border, steps + 1
    return steps if len(reached) == len(ahead) else UNBOUNDED
