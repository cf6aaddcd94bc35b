"""Python types as JSON Schema."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Protocol,
    Required,
    TypeAlias,
    TypeGuard,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)  # fmt: skip

from .errors import InvalidArgument

Schema: TypeAlias = dict[str, object]

SCALARS: Mapping[object, str] = {
    str: "string", int: "integer", float: "number", bool: "boolean", types.NoneType: "null",
}  # fmt: skip
WHAT_WORKS = (
    "str, int, float, bool, None, date, time, datetime, Literal, Enum, Optional and other unions, "
    "list, tuple, dict with str keys, dataclasses, TypedDict, Any, and "
    "Annotated[type, {JSON Schema keywords}]"
)
CONTAINERS = (list, dict, tuple)


class PydanticModel(Protocol):
    """What is asked of a pydantic model class."""

    def model_json_schema(self) -> Schema:
        """Give its JSON Schema."""
        ...

    def model_validate_json(self, text: str) -> object:
        """Make an instance."""
        ...


def is_pydantic(hint: object) -> TypeGuard[PydanticModel]:
    """Say whether it is a pydantic model class, without importing pydantic."""
    return isinstance(hint, type) and hasattr(hint, "model_json_schema")


def is_time(hint: type) -> bool:
    """Say whether it is date, time or datetime, without importing datetime."""
    return hint.__module__ == "datetime" and hint.__name__ in ("date", "time", "datetime")


def describes_values(hint: object) -> bool:
    """Say whether it is a class or type, as opposed to a value."""
    return isinstance(hint, type) or get_origin(hint) is not None or hint is Any


def schema_of_hint(hint: object) -> Schema:
    """Give the JSON Schema of a class or type.

    Raises: InvalidArgument naming what has none, and where it stands.
    """
    if is_pydantic(hint):
        return _closed(hint.model_json_schema())
    writer = _Writer(hint)
    schema = writer.root()
    return {**schema, "$defs": writer.definitions} if writer.definitions else schema


def _closed(schema: Schema) -> Schema:
    """Leave out properties that a model would drop: those that it does not declare."""
    parts = [schema, *cast("dict[str, Schema]", schema.get("$defs", {})).values()]
    for part in parts:
        if "properties" in part:
            part.setdefault("additionalProperties", False)
    return schema


class _Writer:
    """Writes the schema of one type; the classes inside it become definitions."""

    def __init__(self, root: object) -> None:
        self._root = root
        self._names: dict[type, str] = {}
        self.definitions: dict[str, Schema] = {}

    def root(self) -> Schema:
        """Give the schema of the whole."""
        at = getattr(self._root, "__name__", "schema")
        if _is_record(self._root):
            return self._record(self._root, at)
        return self.schema(self._root, at)

    def schema(self, hint: object, at: str) -> Schema:
        """Give the schema of a type at a place."""
        origin, args = get_origin(hint), get_args(hint)
        if hint in (Any, object):
            return {}
        if origin in (Required, NotRequired):
            return self.schema(args[0], at)
        if origin is Annotated:
            return self._annotated(args, at)
        if origin is Literal:
            return {"enum": [_constant(value, at) for value in args]}
        if origin in (Union, types.UnionType):
            return {"anyOf": [self.schema(option, at) for option in args]}
        if (origin or hint) in CONTAINERS:
            return self._container(origin or hint, args, at)
        if hint is None:
            return {"type": "null"}
        if isinstance(hint, type):
            return self._class(hint, at)
        raise _refused(hint, at)

    def _annotated(self, args: tuple[object, ...], at: str) -> Schema:
        from .notes import keywords_of  # few types have notes

        schema = self.schema(args[0], at)
        for note in args[1:]:
            keywords = keywords_of(note, schema.get("type"))
            if keywords is None:
                raise InvalidArgument(
                    f"schema: {at}: Annotated[..., {note!r:.60}]: only a dict of JSON Schema "
                    "keywords has a meaning here, or bounds such as annotated_types.Ge(1)"
                )
            schema = {**schema, **keywords}
        return schema

    def _container(self, origin: object, args: tuple[object, ...], at: str) -> Schema:
        if origin is dict:
            if args and args[0] is not str:
                raise InvalidArgument(f"schema: {at}: the keys of a dict in JSON are str")
            inside: Schema = (
                {"additionalProperties": self.schema(args[1], f"{at}[...]")} if args else {}
            )
            return {"type": "object", **inside}
        if not args:
            return {"type": "array"}
        if origin is list or (len(args) == 2 and args[1] is ...):
            return {"type": "array", "items": self.schema(args[0], f"{at}[...]")}
        places = [self.schema(item, f"{at}[{i}]") for i, item in enumerate(args)]
        return {"type": "array", "prefixItems": places, "items": False, "minItems": len(places)}

    def _class(self, hint: type, at: str) -> Schema:
        if hint in SCALARS:
            return {"type": SCALARS[hint]}
        if is_time(hint):
            from .times import TIME_SCHEMAS

            return dict(TIME_SCHEMAS[hint])
        if issubclass(hint, Enum):
            return {"enum": [_constant(member.value, at) for member in hint]}
        if is_pydantic(hint):
            raise InvalidArgument(
                f"schema: {at}: a pydantic model inside another type; make the outer one a "
                "pydantic model too"
            )
        if not _is_record(hint):
            raise _refused(hint, at)
        if hint is self._root:
            return {"$ref": "#"}
        if hint not in self._names:
            self._names[hint] = name = self._new_name(hint.__name__)
            self.definitions[name] = {}  # its place, before those that it refers to
            self.definitions[name] = self._record(hint, hint.__name__)
        return {"$ref": f"#/$defs/{self._names[hint]}"}

    def _new_name(self, name: str) -> str:
        num_alike = sum(each.__name__ == name for each in self._names)
        return f"{name}_{num_alike + 1}" if num_alike else name

    def _record(self, hint: type, at: str) -> Schema:
        members = members_of(hint, at)
        return {
            "type": "object",
            "properties": {n: self.schema(h, f"{at}.{n}") for n, (h, _) in members.items()},
            "required": [name for name, (_, is_required) in members.items() if is_required],
            "additionalProperties": False,
        }


def members_of(hint: type, at: str) -> dict[str, tuple[object, bool]]:
    """Give the fields of a class in order: name -> type and whether it must be there."""
    try:
        hints = get_type_hints(hint, include_extras=True)
    except NameError as error:
        raise InvalidArgument(
            f"schema: {at}: its annotations cannot be read: {error}; define the class, and all "
            "that it names, at the top of the module"
        ) from None
    if is_typeddict(hint):
        # As a string, `NotRequired[...]` is not counted where the class is made.
        required = cast("frozenset[str]", getattr(hint, "__required_keys__"))  # noqa: B009
        marks = {NotRequired: False, Required: True}
        return {
            name: (inner, marks.get(get_origin(inner), name in required))
            for name, inner in hints.items()
        }
    found: dict[str, tuple[object, bool]] = {}
    for field in cast("tuple[Field[object], ...]", fields(cast("Any", hint))):
        if not field.init:
            raise InvalidArgument(f"schema: {at}.{field.name}: init=False has no place in JSON")
        has_default = field.default is not MISSING or field.default_factory is not MISSING
        found[field.name] = (hints[field.name], not has_default)
    return found


def _is_record(hint: object) -> TypeGuard[type]:
    return isinstance(hint, type) and (is_dataclass(hint) or is_typeddict(hint))


def _constant(value: object, at: str) -> object:
    if value is None or type(value) in (str, int, float, bool):
        return value
    plain = {str: str, int: int}
    for kind, convert in plain.items():  # of an IntEnum or StrEnum: its content
        if isinstance(value, kind) and not isinstance(value, Enum):
            return convert(value)
    raise InvalidArgument(f"schema: {at}: {value!r:.60} is no constant of JSON")


def _refused(hint: object, at: str) -> InvalidArgument:
    shown = hint.__name__ if isinstance(hint, type) else str(hint)
    return InvalidArgument(f"schema: {at}: {shown} has no JSON Schema here; use {WHAT_WORKS}")
