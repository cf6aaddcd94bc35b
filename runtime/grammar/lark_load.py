"""Read a Lark grammar with lark itself: its LALR(1) table, its lexers, its terminals."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, cast

from ..errors import RequestError
from .lark_parts import check_used
from .lark_source import read_source

if TYPE_CHECKING:
    from lark import Lark
    from lark.grammar import Rule, Symbol
    from lark.lexer import ContextualLexer, TerminalDef
    from lark.load_grammar import Grammar
    from lark.parsers.lalr_analysis import IntParseTable
    from lark.parsers.lalr_parser import LALR_Parser

MAX_LEN = 100_000  # characters; lark cannot be interrupted
MESSAGE_LEN = 600  # characters of lark's message that are shown
START = "start"  # the rule of whole texts
END = "$END"

Reduce: TypeAlias = tuple[int, str]  # pop so many states, go on as after this rule


@dataclass(frozen=True, slots=True)
class Terminal:
    """A terminal: a plain text, or a regex with its flags inside."""

    name: str
    shown: str  # as the grammar's author knows it
    is_text: bool
    text: str
    regex: str
    flags: frozenset[str]
    priority: int


@dataclass(frozen=True, slots=True)
class Lexer:
    """The terminals that are tried in a state, the preferred ones first; shared by states."""

    number: int
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Actions:
    """What the parser does in a state: where symbols lead, before which terminals it reduces."""

    shifts: dict[str, int]
    reduces: dict[Reduce, frozenset[str]]


@dataclass(frozen=True, slots=True)
class LarkGrammar:
    """All that is taken from lark: plain data."""

    terminals: dict[str, Terminal]
    ignored: frozenset[str]
    lexers: dict[int, Lexer]  # by state
    actions: dict[int, Actions]  # by state
    start_state: int
    end_state: int


def load(source: str, parts: Collection[str] = ()) -> LarkGrammar:
    """Load a grammar as `lark.Lark(source, parser="lalr")` does.

    `parts` are the terminals that it declares and others define.

    Raises: RequestError: bad_grammar with lark's reason, or if it is not LALR(1);
    grammar_budget if it is too long.
    """
    if len(source) > MAX_LEN:
        message = f"grammar too large: lark: longer than {MAX_LEN} characters"
        raise RequestError("grammar_budget", message)
    try:
        lark = _load(read_source(source, parts))
        check_used(source, _undefined(lark), parts)
        return _read(lark, parts)
    except RequestError:
        raise
    except RecursionError as e:
        message = "grammar too large: the Lark grammar is nested too deeply"
        raise RequestError("grammar_budget", message) from e
    except Exception as e:  # lark lets out KeyError and more on a bad grammar
        raise RequestError("bad_grammar", _message(e)) from e


def _load(grammar: Grammar) -> Lark:
    from lark import Lark
    from lark.parsers.lalr_parser import LALR_Parser

    class StrictParser(LALR_Parser):
        """Refuses all conflicts: those that lark resolves can make a text without an end."""

        def __init__(self, parser_conf: object, debug: bool = False, strict: bool = False) -> None:
            for rule in parser_conf.rules:  # type: ignore[attr-defined]
                rule.options.priority = None
            super().__init__(parser_conf, debug, strict=True)  # type: ignore[arg-type]

    plugins: dict[str, type] = {"LALR_Parser": StrictParser}
    return Lark(grammar, parser="lalr", lexer="contextual", start=START, _plugins=plugins)


def _message(error: Exception) -> str:
    shown = f"{error}".strip() or type(error).__name__
    if isinstance(error, KeyError):
        shown = f"undefined name {error}"
    if len(shown) > MESSAGE_LEN:
        shown = shown[:MESSAGE_LEN] + " ..."
    if "Shift/Reduce" in shown or "Reduce/Reduce" in shown:
        shown = shown.replace(" [strict-mode]", "").strip()
        return f"lark: the grammar must be LALR(1), but has a conflict (EBNF takes any): {shown}"
    return f"lark: {shown}"


def _undefined(lark: Lark) -> dict[str, None]:
    """Give the terminals in rules that have no definition, in their order."""
    defined = {str(terminal.name) for terminal in lark.terminals}
    symbols = (symbol for rule in lark.rules for symbol in rule.expansion)
    return dict.fromkeys(str(s.name) for s in symbols if s.is_term and s.name not in defined)


def _read(lark: Lark, parts: Collection[str]) -> LarkGrammar:
    front = lark.parser
    lalr: LALR_Parser = front.parser
    contextual = cast("ContextualLexer", front.lexer)
    table = cast("IntParseTable", lalr._parse_table)
    terminals = {str(t.name): _terminal(t) for t in lark.terminals}
    _check_groups(terminals.values())
    ignored = frozenset(map(str, lark.ignore_tokens))
    _check_rules(lark.rules, {*terminals, *parts}, ignored)
    kinds = {id(lexer): number for number, lexer in enumerate(contextual.lexers.values())}
    lexers = {
        state: Lexer(kinds[id(lexer)], tuple(str(t.name) for t in lexer.terminals))  # type: ignore[attr-defined]
        for state, lexer in contextual.lexers.items()
    }
    actions = {state: _actions(row) for state, row in table.states.items()}
    ends = table.start_states[START], table.end_states[START]
    return LarkGrammar(terminals, ignored, lexers, actions, *ends)


def _actions(row: dict[str, tuple[object, object]]) -> Actions:
    from lark.parsers.lalr_analysis import Shift

    shifts: dict[str, int] = {}
    reduces: dict[Reduce, set[str]] = {}
    for symbol, (action, argument) in row.items():
        if action is Shift:
            shifts[str(symbol)] = cast("int", argument)
        else:
            rule = cast("Rule", argument)
            reduce = len(rule.expansion), str(rule.origin.name)
            reduces.setdefault(reduce, set()).add(str(symbol))
    return Actions(shifts, {reduce: frozenset(names) for reduce, names in reduces.items()})


def _terminal(definition: TerminalDef) -> Terminal:
    pattern = definition.pattern
    return Terminal(
        name=str(definition.name),
        shown=definition.user_repr(),
        is_text=pattern.type == "str",
        text=pattern.value,
        regex=pattern.to_regexp(),
        flags=frozenset(pattern.flags),
        priority=definition.priority,
    )


def _check_groups(terminals: Iterable[Terminal]) -> None:
    """Refuse what lark finds out only as it parses: that the lexers' regexes are none."""
    seen: set[str] = set()
    for terminal in terminals:
        try:
            groups = re.compile(f"(?P<{terminal.name}>{terminal.regex})").groupindex
        except re.error as e:
            if "open group" in e.msg:  # lark's own one, around all: the backreference is the fault
                continue
            reason = f"{e.msg}; write /.../i" if "flags" in e.msg else e.msg
            raise RequestError("bad_grammar", f"lark: terminal {terminal.shown}: {reason}") from e
        if seen.intersection(groups):
            message = f"lark: terminal {terminal.shown}: a named group that is used twice"
            raise RequestError("bad_grammar", message)
        seen.update(groups)


def _check_rules(
    rules: Iterable[Rule], terminals: Collection[str], ignored: Collection[str]
) -> None:
    """Refuse rules that no text can match to its end."""
    rows = [(rule.origin.name, rule.expansion) for rule in rules]
    finite = _finite(rows, terminals)
    for name, _ in rows:
        if name not in finite and not name.startswith("__"):
            message = f"lark: rule {name}: no finite text matches it"
            raise RequestError("bad_grammar", message)
    if START not in _finite(rows, set(terminals).difference(ignored)):
        message = f"lark: rule {START}: no text matches it, as no rule sees what %ignore takes"
        raise RequestError("bad_grammar", message)


def _finite(rows: Sequence[tuple[str, Sequence[Symbol]]], terminals: Collection[str]) -> set[str]:
    """Give the symbols that come to an end."""
    finite = set(terminals)
    size = -1
    while len(finite) > size:
        size = len(finite)
        finite.update(name for name, row in rows if all(s.name in finite for s in row))
    return finite
