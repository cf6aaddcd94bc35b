r"""ECMA's patterns as Python's: the same texts, for whoever validates with Python's `re`.

`\d`, `\w`, `\s`, `$` and the dot mean something else there, and `\p{L}` nothing at all.
"""

from __future__ import annotations

import functools
import re

from ...errors import RequestError
from ..budget import Budget
from ..expr import Anchor, Both, Chars, Concat, Expr, Look, Not, Repeat, Union
from ..plain import byte_vocabulary
from ..pool import Pool
from ..sample import matches
from ..state import State
from ..texts import build_regex
from .documents import Json, Object, subschemas
from .ecma import parse_ecma

TIMEOUT_S = 1.0
MAX_STATES = 20_000
NUM_PATTERNS = 64  # whose automata are kept
_START, _END = r"\A(?:", r")\Z"
_LOOKS = {(True, False): "?=", (True, True): "?!", (False, False): "?<=", (False, True): "?<!"}


def python_pattern(source: str) -> str | None:
    """Give the regex with which `re.search` finds what ECMA-262 finds with `source`.

    None if there is no such regex, as for a lookbehind of no fixed length.
    """
    try:
        pattern = f"{_START}{_spelled(parse_ecma(source))}{_END}"
        re.compile(pattern)
    except (RequestError, RecursionError, OverflowError, re.error):
        return None
    return pattern


def finds(pattern: str, text: str) -> bool | None:
    """Say whether a regex of `python_pattern` finds something, without backtracking.

    None if it is none, or takes too long to say.
    """
    if not (pattern.startswith(_START) and pattern.endswith(_END)):
        return None
    try:
        state, pool = _automaton(pattern)
        return matches(state, pool, text)
    except RequestError:
        return None


@functools.lru_cache(NUM_PATTERNS)
def _automaton(pattern: str) -> tuple[State, Pool]:
    pool = Pool(byte_vocabulary())
    with pool.using(Budget(TIMEOUT_S, MAX_STATES)):
        node = build_regex(pattern, pool)
        return pool.pushdown.closure(pool.pushdown.push(node, None)), pool


def replace_patterns(schema: Json) -> None:
    """Put Python's regexes into a schema, in place, wherever it has ECMA's."""
    pending = [schema]
    while pending:
        value = pending.pop()
        if not isinstance(value, dict):
            continue
        pending += [inner for _, inner in subschemas(value)]
        pattern = value.get("pattern")
        if isinstance(pattern, str):
            value["pattern"] = python_pattern(pattern) or pattern
        named = value.get("patternProperties")
        if isinstance(named, dict):
            value["patternProperties"] = _renamed(named)


def _renamed(named: Object) -> Object:
    return {python_pattern(source) or source: inner for source, inner in named.items()}


def _spelled(expr: Expr) -> str:
    match expr:
        case Chars(ranges):
            spans = "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in ranges)
            return f"[{spans}]" if spans else "(?!)"
        case Anchor(kind):
            return r"\A" if kind == "begin" else r"\Z"
        case Look(item, is_ahead, is_negated):
            return f"({_LOOKS[is_ahead, is_negated]}{_spelled(item)})"
        case Concat(parts):
            return "".join(map(_spelled, parts))
        case Union(options):
            return f"(?:{'|'.join(map(_spelled, options))})"
        case Repeat(item, low, high):
            return f"(?:{_spelled(item)}){{{low},{'' if high is None else high}}}"
        case Both() | Not():
            raise RequestError("bad_grammar", "no pattern has an intersection or a complement")
