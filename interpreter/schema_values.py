"""The value of a schema, of a gen or a part: its JSON read, validated, and made an instance."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NoReturn, cast

from ..lang.graph import Node
from ..lang.instances import load
from ..lang.ops import Constraint, GrammarText, JsonSchema, SchemaDocument
from .backend import Done
from .values import Parsed, fault_of

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

NUM_SCHEMAS = 256  # whose validators are kept
TOO_DEEP = "it is nested too deeply to be read and validated"


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a constraint: an error's code, and the reason in words."""

    code: str
    reason: str


def schemas_of(grammar: GrammarText) -> Iterator[tuple[tuple[str, ...], JsonSchema]]:
    """Give the schemas among a grammar's parts, at every depth, each with its path."""
    for part in grammar.parts:
        inner = part.constraint
        if inner.schema is not None:
            yield (part.name,), inner.schema
        elif inner.grammar is not None:
            for path, schema in schemas_of(inner.grammar):
                yield (part.name, *path), schema


def in_part(path: tuple[str, ...], reason: str) -> str:
    """Say of which part a reason is."""
    return f"part {'.'.join(path)}: {reason}"


def schema_fault(schema: JsonSchema) -> Fault | None:
    """Say what is wrong with a schema; None if nothing is."""
    return _checked(schema.source, schema.registry)[1]


def value_of(node: Node, schema: JsonSchema, done: Done) -> Parsed:
    """Read the value that a gen wrote."""
    if schema.is_bare:
        # What a limit has cut could go on: an output that could not would have ended itself.
        if done.meta.finish_reason == "length":
            return Parsed(fault=fault_of(node, done, "the value may go on", is_whole=False))
        is_whole = done.meta.stop_reason is None
        return part_value(node, schema, done, json_text(schema, done.text), is_whole=is_whole)
    # Only a number can be whole and still go on.
    is_whole = _is_whole(done.text)
    if done.meta.finish_reason == "length" and not is_whole:
        return Parsed(fault=fault_of(node, done, "the number may go on", is_whole=False))
    return part_value(node, schema, done, done.text, is_whole=is_whole)


def part_value(
    node: Node,
    schema: JsonSchema,
    done: Done,
    text: str,
    *,
    is_whole: bool = True,
    what: str = "the value",
) -> Parsed:
    """Read a value out of the `text` that a part of a gen's output is; or all of it."""
    cause: Exception | None = None
    try:
        value: object = _read(text)
        reason = mismatch(schema, text, is_whole=is_whole)
        value = value if reason or schema.hint is None else load(schema.hint, value, text)
        if not reason:
            return Parsed(value)
    except RecursionError as error:
        cause, reason = error, TOO_DEEP
    except ValueError as error:  # pydantic's ValidationError is one, too
        cause, reason = error, str(error)
    except Exception as error:  # the author's class refuses the value in its own way
        cause, reason = error, f"{type(error).__name__}: {error}"
    return Parsed(fault=fault_of(node, done, reason, cause, is_whole=is_whole, what=what))


def json_text(schema: JsonSchema, text: str) -> str:
    """Give the JSON of a value that was written without quotes if it is a string."""
    # A part of it may be exact, and `1` no string: only a whole validation tells them apart.
    is_json = not text.startswith('"') and not mismatch(schema, text, is_whole=False)
    return text if is_json else json.dumps(text, ensure_ascii=False)


def _is_whole(text: str) -> bool:
    """Say whether it is JSON to which nothing can be added."""
    try:
        _read(text)
    except (ValueError, RecursionError):
        return False
    return text.endswith(("}", "]", '"', "e", "l"))


def _read(text: str) -> object:
    return cast(object, json.loads(text, object_pairs_hook=_once, parse_constant=_refuse))


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise ValueError(f"the property {twice!r} is there twice")
    return found


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def mismatch(schema: JsonSchema, text: str, *, is_whole: bool = True) -> str:
    """Say how a value, given as JSON, fails its schema, and where; nothing if it matches.

    `is_whole`: a mask has allowed all of the text; what it guarantees is not validated again.
    """
    validator, fault = _checked(schema.source, schema.registry)
    if validator is None:
        return "" if fault is None else fault.reason
    # As decimals: 0.3 is a multiple of 0.1, which doubles do not know.
    try:
        value = json.loads(text, parse_float=Decimal, object_pairs_hook=_once)
        if is_whole and _is_exact(schema):
            return ""
        mistake = next(iter(validator.iter_errors(value)), None)
    except RecursionError:
        return TOO_DEEP
    except re.error:  # a pattern that Python cannot have: the mask has kept to it
        return ""
    except ValueError as error:
        return str(error)
    return "" if mistake is None else f"{mistake.json_path}: {mistake.message}"


def _is_exact(schema: JsonSchema) -> bool:
    # Here, because they need the runtime, which `import plait` does without.
    from ..runtime.grammar.explain import is_exact
    from .lowering import grammar_spec

    return is_exact(grammar_spec(Constraint(schema=schema)))


@functools.lru_cache(NUM_SCHEMAS)
def _checked(
    source: str, documents: tuple[SchemaDocument, ...]
) -> tuple[Validator | None, Fault | None]:
    """Give the validator of a schema, or what is wrong with it."""
    from jsonschema.exceptions import SchemaError
    from jsonschema_specifications import REGISTRY
    from referencing.jsonschema import specification_with

    from .patterns import with_patterns

    field = "schema"
    try:
        dialect, schema = _exact(source)
        if isinstance(schema, dict):
            schema.pop("$schema", None)  # else a reference to all of it goes to another class
        registry = REGISTRY
        for document in documents:
            field = f"registry[{document.uri!r}]"
            its_dialect, contents = _exact(document.source)
            specification = specification_with(its_dialect.ID_OF(its_dialect.META_SCHEMA))
            registry = registry.with_resource(document.uri, specification.create_resource(contents))
        validator = with_patterns(dialect)
        return validator(schema, registry=registry, format_checker=dialect.FORMAT_CHECKER), None
    except SchemaError as error:
        place = "/".join(("#", *map(str, error.absolute_path)))
        return None, Fault("bad_grammar", f"{field}: {place}: {error.message}")
    except RecursionError:
        return None, Fault("grammar_budget", "grammar too large: the schema is nested too deeply")


def _exact(source: str) -> tuple[Any, Any]:
    """Give the dialect of a schema, and it with decimals and with patterns that Python reads."""
    from ..runtime.grammar.schema.python_pattern import replace_patterns

    dialect = _dialect(json.loads(source))
    exact = json.loads(source, parse_float=Decimal)
    replace_patterns(exact)
    return dialect, exact


def _dialect(schema: object) -> Any:
    """Give the dialect that a schema names, else the newest that it is a schema of.

    Raises: SchemaError if it is none.
    """
    from jsonschema import Draft4Validator, Draft7Validator, Draft202012Validator, FormatChecker
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import validator_for

    no_formats = FormatChecker(())  # they would hold ECMA's patterns against Python's
    named: Any = validator_for(cast("Any", schema), default=Draft202012Validator)
    if isinstance(schema, dict) and "$schema" not in schema:
        newest_first: tuple[Any, ...] = (Draft202012Validator, Draft7Validator, Draft4Validator)
        for older in newest_first:
            try:
                older.check_schema(schema, format_checker=no_formats)
                return older
            except SchemaError:
                continue
    named.check_schema(schema, format_checker=no_formats)
    return named
