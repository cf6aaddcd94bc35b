"""What an author gives as a schema or a grammar, checked and as text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NoReturn, TypeGuard, TypeVar, cast, get_args

from .errors import InvalidArgument
from .hints import describes_values, schema_of_hint
from .ops import GrammarFormat, GrammarText, JsonSchema, PropertyOrder, SchemaDocument
from .options import check_encodes, flag, text, whole, wrong
from .standin import stop

ORDERS: tuple[PropertyOrder, ...] = get_args(PropertyOrder)
FORMATS: tuple[GrammarFormat, ...] = get_args(GrammarFormat)

T = TypeVar("T")

# A line that begins with a rule's name and `::=` is EBNF; Lark has only `:` there.
_EBNF = re.compile(r"^[ \t]*<?[\w.-]+>?\s*::=", re.MULTILINE)


def schema_of(
    schema: object,
    strict: object = None,
    whitespace: object = None,
    order: object = None,
    registry: object = None,
) -> JsonSchema:
    """Give the checked schema of a JSON Schema, a class or a type.

    Raises: InvalidArgument that says what works.
    """
    if isinstance(schema, JsonSchema):  # it came with a graph
        _check_source(schema.source)
        strict, whitespace, order = schema.strict, schema.whitespace, schema.order
        registry = schema.registry
    known: PropertyOrder | None = _one_of(ORDERS, order)
    if order is not None and known is None:
        raise wrong("order", order, f"one of {', '.join(ORDERS)}")
    hint = schema.hint if isinstance(schema, JsonSchema) else None
    source = schema.source if isinstance(schema, JsonSchema) else ""
    if not isinstance(schema, JsonSchema):
        source, hint = _read(schema)
    return JsonSchema(
        source=source,
        strict=flag("strict", strict) or False,
        whitespace=whole("whitespace", whitespace, 0, "0, or the most blanks at a place") or 0,
        order=known or "listed",
        registry=_registry(registry),
        hint=hint,
    )


def grammar_of(grammar: object) -> GrammarText:
    """Give the checked grammar of a text, or of what has `kind` and `source`: plait.Grammar.

    Raises: InvalidArgument.
    """
    stop(grammar, "the option grammar needs the value")
    if isinstance(grammar, str):
        source = text("grammar", grammar)
        return GrammarText("ebnf" if _EBNF.search(source) else "lark", source)
    kind = grammar.format if isinstance(grammar, GrammarText) else getattr(grammar, "kind", None)
    known: GrammarFormat | None = _one_of(FORMATS, kind)
    if known is None:
        allowed = "a text in Lark's syntax, EBNF or GBNF, or a Grammar(lark=...) or (ebnf=...)"
        raise wrong("grammar", grammar, allowed)
    return GrammarText(known, text("grammar", getattr(grammar, "source", None)))


def _one_of(options: tuple[T, ...], value: object) -> T | None:
    return next((option for option in options if option == value), None)


def _read(schema: object, field: str = "schema") -> tuple[str, object]:
    """Give a schema as JSON, and the type that its value becomes (None: what JSON gives)."""
    stop(schema, f"the option {field} needs the value")
    if isinstance(schema, bool):
        return json.dumps(schema), None
    if isinstance(schema, Mapping):
        return _dumped(cast("Mapping[Any, object]", schema), field), None
    if isinstance(schema, str):
        allowed = "a dict, not text (json.loads gives it), or a class or type"
        raise wrong(field, schema, allowed)
    if describes_values(schema):
        return _dumped(schema_of_hint(schema), field), schema
    allowed = (
        "a JSON Schema as a dict, a pydantic model class, a dataclass, a TypedDict, or a type made "
        "of str, int, float, bool, None, Literal, Enum, Optional, list, tuple and dict"
    )
    raise wrong(field, schema, allowed)


def _registry(registry: object) -> tuple[SchemaDocument, ...]:
    """Give the schemas that a reference may name, by URI."""
    stop(registry, "the option registry needs the value")
    if registry is None:
        return ()
    if isinstance(registry, tuple):  # it came with a graph
        documents = cast("tuple[SchemaDocument, ...]", registry)
        for document in documents:
            _check_source(document.source, f"registry[{document.uri!r}]")
        return documents
    if not isinstance(registry, Mapping):
        raise wrong("registry", registry, "a dict of JSON Schemas by URI")
    found: list[SchemaDocument] = []
    for uri, schema in cast("Mapping[object, object]", registry).items():
        if not isinstance(uri, str):
            raise wrong("registry", registry, "a dict whose keys are URIs")
        found.append(SchemaDocument(text("registry", uri), _read(schema, f"registry[{uri!r}]")[0]))
    return tuple(found)


def _dumped(schema: Mapping[Any, object], field: str) -> str:
    try:
        _check_keys(schema)
        source = json.dumps(schema, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"{field}: it is not JSON: {error}") from None
    except RecursionError:
        raise InvalidArgument(f"{field}: it is nested too deeply, or holds itself") from None
    check_encodes(source, field)
    return source


def _check_keys(value: object) -> None:
    """Refuse keys that are not texts: json.dumps would write `1` as `"1"`."""
    if isinstance(value, Mapping):
        for key, inner in cast("Mapping[object, object]", value).items():
            if not isinstance(key, str):
                raise TypeError(f"the key {key!r} is not a str")
            _check_keys(inner)
    elif _is_list(value):
        for inner in value:
            _check_keys(inner)


def _is_list(value: object) -> TypeGuard[list[object] | tuple[object, ...]]:
    return isinstance(value, list | tuple)


def _check_source(source: str, field: str = "schema") -> None:
    text(field, source)
    try:
        value: object = json.loads(source, parse_constant=_refuse_constant)
    except ValueError as error:
        raise InvalidArgument(f"{field}: it is not JSON: {error}") from None
    except RecursionError:
        raise InvalidArgument(f"{field}: it is nested too deeply") from None
    if not isinstance(value, dict | bool):
        raise InvalidArgument(f"{field}: a JSON Schema is an object, true or false")


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
