"""What a terminal of a Lark grammar matches, with the meaning that `re.match` gives it."""

from __future__ import annotations

from dataclasses import dataclass

from .build import build_language
from .derive import Derivatives
from .expr import Expr
from .language import Language
from .languages import Languages
from .lark_looks import Looks, Unclear
from .lark_scan import Mode, Scan, Scans

MAX_WAYS = 10_000  # of one terminal to go on, that are looked at ahead


@dataclass(frozen=True, slots=True)
class Match:
    """The texts of one terminal.

    `token`: what it takes: of a text, the longest beginning in here; its machine may be
    `Guarded`. `sure`: it matches what begins so. `open`: it matches these if nothing follows.
    """

    token: Language
    sure: Language
    open: Language | None


class Matches:
    """Finds what terminals match, over one pool of languages. Not thread-safe."""

    def __init__(self, languages: Languages, derivatives: Derivatives) -> None:
        self._languages = languages
        self._derivatives = derivatives

    def find(self, expr: Expr) -> Match:
        """Give what a regex matches.

        Raises: Unclear, with the reason; RequestError (grammar_budget).
        """
        has_looks = Looks(expr, self._languages).has_any
        scans, start = self._scan(expr, "token")
        is_whole = _explore(start, MAX_WAYS)
        if has_looks and not is_whole:
            raise Unclear(f"a look, in a regex that can go on in more than {MAX_WAYS} ways,")
        if is_whole and not has_looks and not scans.num_cut:
            language = build_language(expr, self._languages)  # all its texts are taken
        else:
            language = self._languages.machine(start)
        if not scans.num_open:
            return Match(language, language, None)
        return Match(language, self._other(expr, "sure"), self._other(expr, "open"))

    def _other(self, expr: Expr, mode: Mode) -> Language:
        _, start = self._scan(expr, mode)
        if not _explore(start, MAX_WAYS):
            raise Unclear(f"a look, in a regex that can go on in more than {MAX_WAYS} ways,")
        return self._languages.machine(start)

    def _scan(self, expr: Expr, mode: Mode) -> tuple[Scans, Scan]:
        scans = Scans(expr, mode, self._languages, self._derivatives)
        return scans, scans.start()


def _explore(start: Scan, limit: int) -> bool:
    """Pass all places; False if more than `limit` ways lead on from them."""
    seen = {start}
    pending = [start]
    num_ways = 0
    while pending and num_ways <= limit:
        scan = pending.pop()
        num_ways += 1 + len(scan.threads)
        for _, after in scan.steps():
            if after not in seen:
                seen.add(after)
                pending.append(after)
    return not pending
