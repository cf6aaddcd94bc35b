"""What lark's contextual lexer takes in a parser state, as terminals that exclude each other.

The lexer tries its terminals in order; the first that matches anything wins, and takes
what `re` takes. So a text of a terminal is one that no earlier terminal begins to match,
and that could not be longer. A text that a regex took may be a keyword all the same.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

from ..errors import RequestError
from . import lark_load
from .charset import CharSet
from .derive import Derivatives
from .language import Language
from .lark_load import LarkGrammar, Lexer
from .lark_looks import Unclear
from .lark_rivals import Rivals
from .lark_terminal import Match, Matches
from .node import Node
from .piece import Guarded, Piece
from .pool import Pool
from .regex import parse
from .terminal import LocalState

# A terminal's name, or None if the text is ignored, and the text.
Lexed: TypeAlias = tuple["str | None", Node]


class LarkLexing:
    """Gives the terminals of each lexer of one grammar. Not thread-safe."""

    def __init__(self, grammar: LarkGrammar, pool: Pool) -> None:
        self._grammar = grammar
        self._pool = pool
        self._languages = pool.languages
        self._derivatives = Derivatives(pool.languages, pool.languages.spellable)
        matches = Matches(pool.languages, self._derivatives)
        self._matches = {t.name: _find(t, matches) for t in grammar.terminals.values()}
        self._rivals = Rivals(pool.languages, self._derivatives, self._firsts())
        self._is_apart: set[tuple[str, str]] = set()
        self._lexed: dict[int, tuple[Lexed, ...]] = {}
        self._begun: dict[Language, Language] = {}
        self._is_keyword: dict[tuple[str, str], bool] = {}
        for terminal in grammar.terminals.values():
            self._check_live(terminal)

    def lexed(self, lexer: Lexer) -> tuple[Lexed, ...]:
        """Give what may come next by itself, whatever follows."""
        found = self._lexed.get(lexer.number)
        if found is None:
            found = self._lexed[lexer.number] = tuple(self._lex(lexer))
        return found

    def _firsts(self) -> CharSet:
        """Give the characters that may begin what is lexed next; all, if a part may."""
        sets, terminals = self._languages.sets, self._grammar.terminals
        names = {name for actions in self._grammar.actions.values() for name in actions.shifts}
        if any(name.isupper() and name not in terminals for name in names):
            return sets.all
        rows = [self._derivatives.row(match.token) for match in self._matches.values()]
        return sets.union([chars for row in rows for chars, _ in row])

    def _check_live(self, terminal: lark_load.Terminal) -> None:
        if not self._derivatives.is_live(self._matches[terminal.name].token):
            message = f"lark: terminal {terminal.shown}: no text matches it, or no token spells one"
            raise RequestError("bad_grammar", message)

    def _lex(self, lexer: Lexer) -> list[Lexed]:
        keywords, tried = self._sort(lexer.names)
        found: list[Lexed] = []
        for place, name in enumerate(tried):
            rivals = [rival for rival in tried[:place] if self._can_meet(rival, name)]
            for rival in rivals:
                self._check_apart(rival, name)
            part, unless = self._exclude(name, rivals)
            whole = self._matches[name].token
            if name in self._grammar.ignored:
                found.extend(self._terminal(None, part, whole, unless))
                continue
            for keyword in keywords.get(name, ()):
                word = self._matches[keyword].token
                taken = self._languages.both((part, word))
                part = self._languages.both((part, self._languages.negate(word)))
                found.extend(self._terminal(keyword, taken, whole, unless))
            found.extend(self._terminal(name, part, whole, unless))
        return found

    def _sort(self, names: Sequence[str]) -> tuple[dict[str, list[str]], list[str]]:
        """Give the keywords that each regex may take, and what the lexer tries, in order.

        As lark's `_create_unless` does.
        """
        terminals = [self._grammar.terminals[name] for name in names]
        words = [t for t in terminals if t.is_text]
        keywords: dict[str, list[str]] = {}
        embedded: set[str] = set()
        for regex in terminals:
            if regex.is_text:
                continue
            taken = [word for word in words if self._takes(regex, word)]
            keywords[regex.name] = [word.name for word in taken]
            embedded.update(word.name for word in taken if word.flags <= regex.flags)
        return keywords, [name for name in names if name not in embedded]

    def _takes(self, regex: lark_load.Terminal, word: lark_load.Terminal) -> bool:
        key = regex.name, word.name
        if key not in self._is_keyword:
            match = re.match(regex.regex, word.text)
            is_taken = match is not None and match.group() == word.text
            self._is_keyword[key] = is_taken and regex.priority == word.priority
        return self._is_keyword[key]

    def _can_meet(self, rival: str, name: str) -> bool:
        """Say whether a text can begin with both terminals."""
        if _are_apart(self._grammar.terminals[rival], self._grammar.terminals[name]):
            return False
        rivals = self._beginning(self._matches[rival].sure, self._matches[rival].open)
        own = self._beginning(self._matches[name].token, None)
        return self._derivatives.is_live(self._languages.both((rivals, own)))

    def _check_apart(self, rival: str, name: str) -> None:
        """Refuse a look that leaves a text to a later terminal only by what follows it."""
        if (rival, name) in self._is_apart:
            return
        if self._rivals.is_open(self._matches[rival], self._matches[name]):
            shown, other = (self._grammar.terminals[each].shown for each in (rival, name))
            reason = f"a look that fails on what follows, where {other} takes the same beginning,"
            message = f"lark: terminal {shown}: {reason} is not supported in a constraint"
            raise RequestError("bad_grammar", message)
        self._is_apart.add((rival, name))

    def _beginning(self, language: Language, other: Language | None) -> Language:
        if other is not None:
            language = self._languages.union((language, other))
        found = self._begun.get(language)
        if found is None:
            found = self._begun[language] = self._begins(language)
        return found

    def _begins(self, language: Language) -> Language:
        return self._languages.concat(language, self._languages.anything)

    def _exclude(self, name: str, rivals: Sequence[str]) -> tuple[Language, Language]:
        """Give the texts of a terminal that no rival takes, and how no text may begin."""
        languages, own = self._languages, self._matches[name]
        part = own.token
        longer = languages.concat(own.token, languages.repeat(languages.any, 1, None))
        unless: list[Language] = []
        for rival in rivals:
            match = self._matches[rival]
            unless.append(match.sure)
            if match.open is not None:
                part = languages.both((part, languages.negate(match.open)))
                others = (match.open, languages.negate(own.token), longer)
                unless.append(languages.both(others))
        return part, languages.union(unless)

    def _terminal(
        self, name: str | None, part: Language, whole: Language, unless: Language
    ) -> list[Lexed]:
        """Give the node of some of a terminal's texts; none if there is no such text."""
        languages, locals_ = self._languages, self._pool.locals
        guards: tuple[LocalState, ...] = ()
        possible = part
        if unless is not languages.nothing:
            guards = (locals_.start(unless, "plain"),)
            possible = languages.both((part, languages.negate(self._begins(unless))))
        if not self._derivatives.is_live(possible):
            return []
        if part is not whole or isinstance(whole.payload, Guarded):
            part = languages.machine(Piece(part, whole, languages, self._derivatives))
        start = locals_.start(part, "plain", is_greedy=True)
        return [(name, self._pool.nodes.terminal(start, guards))]


def _are_apart(one: lark_load.Terminal, other: lark_load.Terminal) -> bool:
    """Say quickly of two words that surely no text begins with both: keywords are many."""
    if not (one.is_text and other.is_text and one.text.isascii() and other.text.isascii()):
        return False
    short, long = sorted((one.text.lower(), other.text.lower()), key=len)
    return not long.startswith(short)


def _find(terminal: lark_load.Terminal, matches: Matches) -> Match:
    try:
        return matches.find(parse(terminal.regex))
    except Unclear as e:
        message = f"lark: terminal {terminal.shown}: {e} is not supported in a constraint"
        raise RequestError("bad_grammar", message) from e
    except RequestError as e:
        raise RequestError(e.code, f"lark: terminal {terminal.shown}: {e}") from e
