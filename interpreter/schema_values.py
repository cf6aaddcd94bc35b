"""The value of a gen with a schema: its JSON read, validated, and made an instance."""

from __future__ import annotations

import functools
import json
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NoReturn, cast

from ..lang.errors import Invalid, Truncated
from ..lang.graph import Node
from ..lang.instances import load
from ..lang.ops import JsonSchema, SchemaDocument
from ..lang.words import one_line, spell
from .backend import Done

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

_WIDTH = 80  # characters of a bad value that a message shows
NUM_SCHEMAS = 256  # whose validators are kept


@dataclass(frozen=True, slots=True)
class Parsed:
    """A value, or what is wrong with it."""

    value: object = None
    fault: Truncated | Invalid | None = None

    def get(self) -> object:
        """Give the value. Raises: Truncated, Invalid; each time an error of its own."""
        match self.fault:
            case None:
                return self.value
            case Truncated() | Invalid() as fault:
                copy = type(fault)(
                    str(fault),
                    text=fault.text,
                    reason=fault.reason,
                    node=fault.node,
                    where=fault.where,
                )
                raise copy from fault.__cause__


def schema_fault(schema: JsonSchema) -> tuple[str, str] | None:
    """Say what is wrong with a schema, as code and reason; None if nothing is."""
    return _checked(schema.source, schema.registry)[1]


def value_of(node: Node, schema: JsonSchema, done: Done) -> Parsed:
    """Read the value that a gen wrote."""
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
        reason = mismatch(schema, text)
        value = value if reason or schema.hint is None else load(schema.hint, value, text)
        if not reason:
            return Parsed(value)
    except RecursionError as error:
        cause, reason = error, "it is nested too deeply to be read and validated"
    except ValueError as error:  # pydantic's ValidationError is one, too
        cause, reason = error, str(error)
    except Exception as error:  # the author's class refuses the value in its own way
        cause, reason = error, f"{type(error).__name__}: {error}"
    return Parsed(fault=fault_of(node, done, reason, cause, is_whole=is_whole, what=what))


def fault_of(
    node: Node,
    done: Done,
    reason: str,
    cause: Exception | None = None,
    *,
    is_whole: bool,
    what: str = "the value",
) -> Truncated | Invalid:
    """Say what is wrong with `what` of a gen's output, or what has cut it if it is not whole."""
    at = "" if node.where is None else f"{node.where}: "
    shown = done.text if len(done.text) <= _WIDTH else f"{done.text[:_WIDTH]}..."
    kind: type[Truncated | Invalid]
    if done.meta.finish_reason == "length" and not is_whole:
        kind = Truncated
        num_tokens = done.meta.usage.output_tokens
        reason = f"cut by max_tokens or the context after {num_tokens} tokens"
        remedy = "; give it more max_tokens"
    else:
        kind, remedy = Invalid, ""
        if done.meta.stop_reason is not None and not is_whole:
            reason = f"cut by the stop string {done.meta.stop_reason!r}"
    branch = f" in branch {node.branch}" if node.branch else ""
    message = f"{at}{spell(node.op)}{branch}: {what} is {_SAYS[kind]}: {reason}{remedy}: {shown}"
    fault = kind(one_line(message), text=done.text, reason=reason, node=node.id, where=node.where)
    fault.__cause__ = cause
    return fault


_SAYS: dict[type[Truncated | Invalid], str] = {Truncated: "not whole", Invalid: "not valid"}


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


def mismatch(schema: JsonSchema, text: str) -> str:
    """Say how a value, given as JSON, fails its schema, and where; nothing if it matches."""
    validator, fault = _checked(schema.source, schema.registry)
    if fault is not None or validator is None:
        return fault[1] if fault is not None else ""
    # As decimals: 0.3 is a multiple of 0.1, which doubles do not know.
    try:
        value = json.loads(text, parse_float=Decimal, object_pairs_hook=_once)
        mistake = next(iter(validator.iter_errors(value)), None)
    except re.error:  # a pattern that Python cannot have: the mask has kept to it
        return ""
    except ValueError as error:
        return str(error)
    return "" if mistake is None else f"{mistake.json_path}: {mistake.message}"


@functools.lru_cache(NUM_SCHEMAS)
def _checked(
    source: str, documents: tuple[SchemaDocument, ...]
) -> tuple[Validator | None, tuple[str, str] | None]:
    """Give the validator of a schema, or code and reason of what is wrong with it."""
    from jsonschema.exceptions import SchemaError
    from jsonschema_specifications import REGISTRY
    from referencing.jsonschema import specification_with

    field = "schema"
    try:
        dialect, schema = _exact(source)
        registry = REGISTRY
        for document in documents:
            field = f"registry[{document.uri!r}]"
            its_dialect, contents = _exact(document.source)
            specification = specification_with(its_dialect.ID_OF(its_dialect.META_SCHEMA))
            registry = registry.with_resource(document.uri, specification.create_resource(contents))
        return dialect(schema, registry=registry, format_checker=dialect.FORMAT_CHECKER), None
    except SchemaError as error:
        place = "/".join(("#", *map(str, error.absolute_path)))
        return None, ("bad_grammar", f"{field}: {place}: {error.message}")
    except RecursionError:
        return None, ("grammar_budget", "grammar too large: the schema is nested too deeply")


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
