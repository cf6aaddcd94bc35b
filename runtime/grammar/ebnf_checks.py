"""What rules can come to: those that never end are refused, those that none can spell left out."""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import RequestError
from .ebnf_rules import Call, Count, Rules, Symbol, fixpoint
from .language import Language
from .node import PartNode
from .pool import Pool


def check_finite(rules: Rules, named: Iterable[str]) -> None:
    """Raise RequestError for one of the `named` rules that no finite text matches."""

    def is_finite(symbol: Symbol, names: set[str]) -> bool:
        match symbol:
            case Language():
                return symbol.kind != "nothing"
            case Call(name):
                return name in names
            case Count(item, low):
                return low == 0 or is_finite(item, names)
            case PartNode():
                return True

    finite = fixpoint(rules, is_finite)
    for name in named:
        if name not in finite:
            raise RequestError("bad_grammar", f"ebnf: rule {name}: no finite text matches it")


def spellable(rules: Rules, root: str, pool: Pool) -> Rules:
    """Leave out the options that no token can spell. Raises: RequestError if none is left."""

    def can_spell(symbol: Symbol, names: set[str]) -> bool:
        match symbol:
            case Language():
                return pool.locals.is_live(symbol, "plain")
            case Call(name):
                return name in names
            case Count(item, low):
                return low == 0 or can_spell(item, names)
            case PartNode():
                return True

    def kept(symbol: Symbol) -> Symbol:
        is_dead = isinstance(symbol, Count) and not can_spell(symbol.item, names)
        return pool.languages.empty if is_dead else symbol

    names = fixpoint(rules, can_spell)
    if root not in names:
        raise RequestError("bad_grammar", f"ebnf: rule {root}: no token spells a text of it")
    return {
        name: [tuple(map(kept, row)) for row in rows if all(can_spell(s, names) for s in row)]
        for name, rows in rules.items()
    }
