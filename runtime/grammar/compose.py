"""From a constraint to its node, the grammars that it names as parts included."""

from __future__ import annotations

from ..errors import RequestError
from .ebnf import build_ebnf
from .lark_parser import build_lark
from .mark import Marker
from .node import Node, PartNode
from .pool import Pool
from .schema.build import build_schema
from .spec import GrammarSpec
from .texts import build_choices, build_regex

MAX_DEPTH = 32  # of parts in parts


def build(spec: GrammarSpec, pool: Pool, marker: Marker | None = None) -> Node:
    """Make the node of what `spec` asks for; `marker` marks parts, and more by name.

    Without one nothing is marked.

    Raises: RequestError: bad_grammar naming the part, with place and reason; grammar_budget.
    """
    return _build(spec, pool, marker or Marker(pool.nodes, None), 0)


def _build(spec: GrammarSpec, pool: Pool, marker: Marker, depth: int) -> Node:
    if spec.parts and spec.kind not in ("lark", "ebnf"):
        message = f"{spec.kind}: it names no parts; only a grammar in Lark or EBNF does"
        raise RequestError("bad_grammar", message)
    match spec.kind:
        case "choices":
            return build_choices(spec.source, pool)
        case "regex":
            try:
                return build_regex(_text(spec), pool)
            except RecursionError as e:
                message = "grammar too large: the regex is nested too deeply"
                raise RequestError("grammar_budget", message) from e
        case "json_schema":
            return build_schema(_text(spec), pool, spec.schema_options)
        case "lark" | "ebnf":
            source = _text(spec)
            parts = {n: _part(n, part, pool, marker, depth) for n, part in spec.parts}
            build_text = build_lark if spec.kind == "lark" else build_ebnf
            return build_text(source, pool, parts=parts, marker=marker)


def _part(name: str, spec: GrammarSpec, pool: Pool, marker: Marker, depth: int) -> PartNode:
    if depth >= MAX_DEPTH:
        message = f"grammar too large: more than {MAX_DEPTH} grammars inside each other"
        raise RequestError("grammar_budget", message)
    inside = marker.inside(name, frozenset(part for part, _ in spec.parts))
    try:
        node = _build(spec, pool, inside, depth + 1)
    except RequestError as e:
        raise RequestError(e.code, f"part {name}: {e}") from e
    start = pool.pushdown.closure(pool.pushdown.push(node, None))
    if not start.configs and not start.is_accepting:
        message = f"part {name}: no text matches it, or no token spells one"
        raise RequestError("bad_grammar", message)
    return PartNode(name, node, start.is_accepting)


def _text(spec: GrammarSpec) -> str:
    if len(spec.source) != 1 or not is_text(spec.source[0]):
        message = f"{spec.kind} must be one text, not {spec.source!r}"
        raise RequestError("bad_grammar", message)
    return spec.source[0]


def is_text(source: object) -> bool:
    """Say whether a source is a text, as its type claims: it may have come from anywhere."""
    return isinstance(source, str)
