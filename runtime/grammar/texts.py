"""Regexes and lists of texts as nodes."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import RequestError
from .build import build_language
from .node import Node
from .pool import Pool
from .regex import parse
from .words import words


def build_regex(source: str, pool: Pool) -> Node:
    """Make the node of the texts that a Python regex matches as a whole.

    Raises: RequestError (bad_grammar) with place and reason, or if no text matches.
    """
    language = build_language(parse(source), pool.languages)
    if not pool.locals.is_live(language, "plain"):
        message = "regex: no text matches it, or no token spells one"
        raise RequestError("bad_grammar", message)
    return pool.nodes.terminal(pool.locals.start(language, "plain"))


def build_choices(choices: Sequence[str], pool: Pool, field: str = "choices") -> Node:
    """Make the node of the texts in a list.

    Raises: RequestError (bad_grammar), naming the choice, or if none can be spelt.
    """
    if not choices:
        raise RequestError("bad_grammar", f"{field}: the list is empty; give at least one text")
    for number, choice in enumerate(choices):
        _check(choice, f"{field}[{number}]")
    language = words(choices, pool.languages)
    if not pool.locals.is_live(language, "plain"):
        raise RequestError("bad_grammar", f"{field}: no token spells any of the texts")
    return pool.nodes.terminal(pool.locals.start(language, "plain"))


def _check(choice: object, item: str) -> None:
    if not isinstance(choice, str):
        message = f"{item} is {choice!r}: each choice must be a text"
        raise RequestError("bad_grammar", message)
    if any("\ud800" <= c <= "\udfff" for c in choice):
        message = f"{item} is {choice!r}: a lone surrogate has no UTF-8 form"
        raise RequestError("bad_grammar", message)
