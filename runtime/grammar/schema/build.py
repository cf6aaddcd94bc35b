"""From a JSON Schema to the node of its values."""

from __future__ import annotations

import json
import math
from typing import NoReturn, cast

from ...errors import RequestError
from ..derive import Derivatives
from ..node import Node
from ..pool import Pool
from ..spec import SchemaOptions
from .check import check_schema
from .documents import Documents, Json
from .facts import ANY_VALUE, Goal
from .fold import Folder
from .layout import Layout
from .numbers import LIMITS
from .possible import Possible
from .reader import Reader
from .survey import survey
from .values import Grammar


def build_schema(source: str, pool: Pool, options: SchemaOptions | None = None) -> Node:
    """Make the node of the JSON texts whose values match a schema.

    Raises: RequestError: bad_grammar with the place and the reason; grammar_budget.
    """
    grammar = schema_grammar(source, pool, options or SchemaOptions())
    goal = root_goal(grammar)
    if not grammar.possible.goal(goal):
        raise RequestError("bad_grammar", f"schema: {_why_impossible(grammar)}")
    if options is not None and options.is_strict:
        _refuse_checked(grammar, goal)
    is_bare = options is not None and options.is_bare
    return grammar.bare_value(goal) if is_bare else grammar.value(goal)


def _why_impossible(grammar: Grammar) -> str:
    """Tell no value from none that is written: of numbers, not all are."""
    is_written = grammar.possible.shape
    for bounds in grammar.folder.bounds:
        if bounds.has_values() and not is_written(grammar.folder.number(bounds)):
            return f"no text matches it: a number in it would not be written with {LIMITS}"
    return "no value matches it"


def schema_grammar(source: str, pool: Pool, options: SchemaOptions) -> Grammar:
    """Read a schema: all that its nodes need."""
    registry = {uri: _load(text, f"registry[{uri!r}]") for uri, text in options.registry}
    documents = Documents(_load(source, "schema"), registry)
    reader = Reader(documents, pool)
    check_schema(reader)
    folder = Folder(reader, Derivatives(pool.languages, pool.languages.sets.all))
    possible = Possible(folder, pool.locals)
    reader.is_disjoint = possible.is_disjoint
    reader.texts = folder.texts
    layout = Layout(pool, options.max_blanks)
    return Grammar(pool, reader, folder, possible, layout, options.is_any_order)


def _refuse_checked(grammar: Grammar, goal: Goal) -> None:
    """Refuse a schema of which something is only validated at the end."""
    checked = survey(grammar, goal).checked
    for place, reason in checked[:1]:
        more = f" (and {len(checked) - 1} more)" if len(checked) > 1 else ""
        message = f"schema: {place}: {reason}, which strict=True refuses{more}"
        raise RequestError("bad_grammar", message)


def root_goal(grammar: Grammar) -> Goal:
    """Give the goal of the whole value."""
    root = grammar.reader.documents.root
    return ANY_VALUE if root.value is True else frozenset(((root, True),))


def _load(text: str, field: str) -> Json:
    try:
        value = json.loads(text, parse_constant=_refuse_number, parse_float=_finite)
        if "\\ud" in text.lower():  # maybe half of a pair, which has no UTF-8 form
            json.dumps(value, ensure_ascii=False).encode()
        return cast("Json", value)
    except ValueError as e:
        raise RequestError("bad_grammar", f"{field}: not JSON: {e}") from e
    except RecursionError as e:
        raise RequestError(
            "grammar_budget", f"grammar too large: {field} is nested too deeply"
        ) from e


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refuse_number(text)


def _refuse_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON that can be kept")
