"""From a JSON Schema to the node of its values."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import cast

from ...errors import RequestError
from ..derive import Derivatives
from ..node import Node
from ..pool import Pool
from .check import check_schema
from .documents import Documents, Json
from .facts import ANY_VALUE, Goal
from .layout import Layout
from .possible import Possible
from .reader import Reader
from .shapes import Folder
from .values import Grammar


@dataclass(frozen=True, slots=True)
class SchemaOptions:
    """How values are written, and what a schema may refer to.

    `max_blanks`: blanks at each place where JSON allows them; 0 is compact. `registry`: the
    schemas that a `$ref` may name, by URI. `is_strict`: refuse what is only validated at the end.
    `is_any_order`: properties may come in any order; else as the schema lists them.
    """

    max_blanks: int = 0
    is_any_order: bool = False
    registry: tuple[tuple[str, str], ...] = ()  # (URI, schema as JSON)
    is_strict: bool = False


def build_schema(source: str, pool: Pool, options: SchemaOptions | None = None) -> Node:
    """Make the node of the JSON texts whose values match a schema.

    Raises: RequestError: bad_grammar with the place and the reason; grammar_budget.
    """
    grammar = schema_grammar(source, pool, options or SchemaOptions())
    goal = root_goal(grammar)
    if not grammar.possible.goal(goal):
        raise RequestError("bad_grammar", "schema: no value matches it")
    return grammar.value(goal)


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


def root_goal(grammar: Grammar) -> Goal:
    """Give the goal of the whole value."""
    root = grammar.reader.documents.root
    return ANY_VALUE if root.value is True else frozenset(((root, True),))


def _load(text: str, field: str) -> Json:
    try:
        return cast("Json", json.loads(text))
    except ValueError as e:
        raise RequestError("bad_grammar", f"{field}: not JSON: {e}") from e
    except RecursionError as e:
        raise RequestError(
            "grammar_budget", f"grammar too large: {field} is nested too deeply"
        ) from e
