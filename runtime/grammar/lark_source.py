"""Read the text of a Lark grammar with lark's own builder, and refuse what lark cannot bear.

Lark reads imports from this machine's files, follows templates and products of options
without end, and says little of declared terminals in wrong places. Nothing can interrupt it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, NoReturn

from ..errors import RequestError
from .lark_parts import check_declared, is_defined_twice
from .lark_sizes import check_rules, check_terminals

if TYPE_CHECKING:
    from lark import Tree
    from lark.load_grammar import Grammar

LIBRARIES = ("common", "lark", "python", "unicode")


def read_source(source: str, parts: Collection[str]) -> Grammar:
    """Give the grammar as `lark.Lark` takes it.

    Raises: RequestError (bad_grammar, grammar_budget); what lark raises.
    """
    from lark.load_grammar import GrammarBuilder, _parse_grammar

    class Builder(GrammarBuilder):
        """Lark's own, without this machine's files."""

        def do_import(
            self,
            dotted_path: tuple[str, ...],
            base_path: str | None,
            aliases: dict[str, str],
            base_mangle: object = None,
        ) -> None:
            _check_import(dotted_path, is_relative=base_path is not None, aliases=aliases)
            super().do_import(dotted_path, None, aliases, base_mangle)  # type: ignore[arg-type]

        def _define(
            self,
            name: str,
            is_term: bool,
            exp: Tree[object] | None,
            params: Collection[str] = (),
            options: object = None,
            *,
            override: bool = False,
        ) -> None:
            if exp is None and not is_term:
                _refuse(f"%declare {name}: it stands for a terminal, whose name is in capitals")
            known = self._definitions.get(name)
            if name in parts and known is not None and (exp is None) != (known.tree is None):
                _refuse(is_defined_twice(source, name))
            super()._define(name, is_term, exp, params, options, override=override)  # type: ignore[no-untyped-call]

    written: Tree[object] = _parse_grammar(source, "<string>")  # type: ignore[no-untyped-call]
    _check_declared_uses(written)
    check_terminals(written)
    builder = Builder()
    builder.load_grammar(source, "<string>")
    declared = {name for name, each in builder._definitions.items() if each.tree is None}
    check_declared(source, declared, parts)
    grammar = builder.build()
    check_rules(grammar)
    return grammar


def _check_import(path: tuple[str, ...], is_relative: bool, aliases: Mapping[str, str]) -> None:
    """Allow what comes with lark only: a request must not read this machine's files."""
    shown = "." * is_relative + ".".join(path)
    where = f"line {getattr(path[0], 'line', '?')}: %import {shown}"
    if is_relative or len(path) != 1 or path[0] not in LIBRARIES:
        _refuse(f"{where}: only {', '.join(LIBRARIES)} can be imported")
    for name, alias in aliases.items():
        if name.isupper() != alias.isupper():
            kind = "a terminal, whose name" if name.isupper() else "a rule, whose name"
            letters = "capitals" if name.isupper() else "small letters"
            _refuse(f"{where}.{name} -> {alias}: it is {kind} is in {letters}")


def _check_declared_uses(written: Tree[object]) -> None:
    """Refuse a declared terminal where lark needs its definition: it fails without a word."""
    from lark.grammar import Terminal

    symbols = (symbol for each in written.find_data("declare") for symbol in each.children)
    declared = {symbol.name for symbol in symbols if isinstance(symbol, Terminal)}
    for each in written.find_pred(lambda tree: tree.data in ("term", "ignore")):
        is_term = each.data == "term"
        for value in each.find_data("value"):
            used = value.children[0]
            if isinstance(used, Terminal) and used.name in declared:
                where = f"terminal {each.children[0]}" if is_term else "%ignore"
                reason = f"{used.name} is declared: it may be named in rules only"
                _refuse(f"{where}: {reason}, neither in terminals nor in %ignore")


def _refuse(reason: str) -> NoReturn:
    raise RequestError("bad_grammar", f"lark: {reason}")
