"""What an author gives as a schema or a grammar, checked and as text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NoReturn, TypeAlias, TypeGuard, TypeVar, cast, get_args

from .errors import InvalidArgument
from .hints import describes_values, schema_of_hint
from .ops import (
    Constraint,
    GrammarFormat,
    GrammarPart,
    GrammarText,
    JsonSchema,
    PropertyOrder,
    SchemaDocument,
)
from .options import check_encodes, choices_of, flag, refuse_twice, text, whole, wrong
from .standin import stop

ORDERS: tuple[PropertyOrder, ...] = get_args(PropertyOrder)
FORMATS: tuple[GrammarFormat, ...] = get_args(GrammarFormat)
Kind: TypeAlias = Literal["regex", "choices", "schema", "grammar"]  # the fields of Constraint
KINDS: tuple[Kind, ...] = get_args(Kind)
# Of grammars in each other. The runtime has this bound as well (grammar/compose.py): it does not
# know the language, and does not trust its client; here the author's line is in the message.
MAX_DEPTH = 32

T = TypeVar("T")

# A line that begins with a rule's name and `::=` is EBNF; Lark has only `:` there.
_EBNF = re.compile(r"^[ \t]*<?[\w.-]+>?\s*::=", re.MULTILINE)


def constraint_of(
    *,
    regex: object = None,
    choices: object = None,
    schema: object = None,
    grammar: object = None,
    **schema_options: object,
) -> Constraint | None:
    """Give what one of these asks for; None if none is given.

    Raises: InvalidArgument, naming the field.
    """
    values: dict[Kind, object] = {
        "regex": regex,
        "choices": choices,
        "schema": schema,
        "grammar": grammar,
    }
    given: list[Kind] = [kind for kind in KINDS if values[kind] is not None]
    if len(given) > 1:
        raise InvalidArgument(
            f"{' and '.join(given)} are {'both' if len(given) == 2 else 'all'} given; "
            f"a gen takes at most one of them{_remedy(given, schema)}"
        )
    if not given:
        _refuse_options(schema_options)
        return None
    constraint = constraint_of_kind(given[0], values[given[0]], **schema_options)
    if constraint.schema is None or constraint.schema.hint is None:
        return constraint
    from .bare import is_bare  # it needs datetime, which `import plait` does without

    is_one = is_bare(constraint.schema.hint)
    return Constraint(schema=replace(constraint.schema, is_bare=is_one))


def constraint_of_kind(kind: Kind, value: object, **schema_options: object) -> Constraint:
    """Give the checked constraint of one kind. Raises: InvalidArgument, naming the field."""
    if kind != "schema":
        _refuse_options(schema_options, is_inside=hasattr(value, "constraint"))
    match kind:
        case "regex":
            return Constraint(regex=text("regex", value))
        case "choices":
            return Constraint(choices=choices_of(value))
        case "schema":
            return Constraint(schema=schema_of(value, **schema_options))
        case "grammar":
            return grammar_of(value)


def _remedy(given: Sequence[Kind], schema: object) -> str:
    is_pattern = given == ["regex", "schema"] and schema is str
    written = 'Annotated[str, {"pattern": "^...$"}]'
    return f": regex alone gives a str, and {written} one that is never cut" if is_pattern else ""


def checked_constraint(constraint: Constraint, depth: int = MAX_DEPTH) -> Constraint:
    """Check a constraint that came with a graph, or in a Grammar. Raises: InvalidArgument."""
    if constraint.grammar is not None:
        return Constraint(grammar=_checked_text(constraint.grammar, depth))
    kind: Kind = next(kind for kind in KINDS if getattr(constraint, kind) is not None)
    return constraint_of_kind(kind, getattr(constraint, kind))


def _refuse_options(schema_options: Mapping[str, object], *, is_inside: bool = False) -> None:
    """Refuse what belongs to a schema; `is_inside`: there may be one in a Grammar."""
    for name, value in schema_options.items():
        if value is not None:
            remedy = f"give it to the Grammar: Grammar(schema=..., {name}=...)"
            raise InvalidArgument(
                f"{name} says how a schema's value is written: {', '.join(schema_options)} belong "
                f"to a schema; {remedy if is_inside else 'give one, or leave it out'}"
            )


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
        is_bare=isinstance(schema, JsonSchema) and schema.is_bare,
        hint=hint,
    )


def grammar_of(grammar: object) -> Constraint:
    """Give the checked constraint of a text, or of what has a `constraint`: plait.Grammar.

    Raises: InvalidArgument.
    """
    stop(grammar, "the option grammar needs the value")
    if isinstance(grammar, str):
        source = text("grammar", grammar)
        return Constraint(grammar=GrammarText("ebnf" if _EBNF.search(source) else "lark", source))
    if isinstance(grammar, GrammarText):  # of a Grammar, or it came with a graph
        return Constraint(grammar=_checked_text(grammar, MAX_DEPTH))
    constraint = getattr(grammar, "constraint", None)
    if not isinstance(constraint, Constraint):
        allowed = "a text in Lark's syntax, EBNF or GBNF, or a Grammar(...)"
        raise wrong("grammar", grammar, allowed)
    return checked_constraint(constraint)


def parts_of(parts: object) -> tuple[GrammarPart, ...]:
    """Give the grammars that another one names. Raises: InvalidArgument, naming the part."""
    stop(parts, "the option parts needs the value")
    if not isinstance(parts, Mapping):
        raise wrong("parts", parts, "a dict of Grammars by name")
    found: list[GrammarPart] = []
    for name, part in cast("Mapping[object, object]", parts).items():
        stop(part, "a part needs the value")
        constraint = getattr(part, "constraint", None)
        if not isinstance(constraint, Constraint):
            example = "Grammar(choices=[...]), Grammar(schema=...), Grammar(lark=...)"
            raise wrong(f"parts[{name!r}]", part, f"a Grammar, such as {example}")
        found.append(GrammarPart(text("parts", name), constraint))
    return tuple(found)


def _checked_text(grammar: GrammarText, depth: int) -> GrammarText:
    known: GrammarFormat | None = _one_of(FORMATS, grammar.format)
    if known is None:
        raise wrong("format", grammar.format, f"one of {', '.join(FORMATS)}")
    if depth == 0:
        raise InvalidArgument(f"parts: more than {MAX_DEPTH} grammars in each other")
    refuse_twice("parts", [part.name for part in grammar.parts])
    parts = [_checked_part(part, depth - 1) for part in grammar.parts]
    return GrammarText(known, text("grammar", grammar.source), tuple(parts))


def _checked_part(part: GrammarPart, depth: int) -> GrammarPart:
    name = text("parts", part.name)
    try:
        return GrammarPart(name, checked_constraint(part.constraint, depth))
    except InvalidArgument as error:
        raise InvalidArgument(f"parts[{name!r}]: {error}") from None


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
        "of str, int, float, bool, None, date, Literal, Enum, Optional, list, tuple and dict"
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
            _check_uri(document.uri)
            _check_source(document.source, f"registry[{document.uri!r}]")
        return documents
    if not isinstance(registry, Mapping):
        raise wrong("registry", registry, "a dict of JSON Schemas by URI")
    found: list[SchemaDocument] = []
    for uri, schema in cast("Mapping[object, object]", registry).items():
        if not isinstance(uri, str):
            raise wrong("registry", registry, "a dict whose keys are URIs")
        _check_uri(text("registry", uri))
        found.append(SchemaDocument(text("registry", uri), _read(schema, f"registry[{uri!r}]")[0]))
    return tuple(found)


def _check_uri(uri: str) -> None:
    """Refuse what names no whole document."""
    name, _, fragment = uri.partition("#")
    if not name:
        message = "it is the URI of the schema itself; name the document as its $ref does"
        raise InvalidArgument(f"registry[{uri!r}]: {message}")
    if fragment:
        message = f"a URI of a whole document has no fragment; leave out {'#' + fragment!r}"
        raise InvalidArgument(f"registry[{uri!r}]: {message}")


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
