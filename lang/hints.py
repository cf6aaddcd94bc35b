"""Python types as JSON Schema, and JSON values as instances of them."""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from typing import (
    Annotated, Any, Literal, NotRequired, Protocol, Required, TypeAlias, TypeGuard, Union, cast,
    get_args, get_origin, get_type_hints, is_typeddict,
)  # fmt: skip

from .errors import InvalidArgument

Schema: TypeAlias = dict[str, object]

SCALARS: Mapping[object, str] = {
    str: "string", int: "integer", float: "number", bool: "boolean", types.NoneType: "null",
}  # fmt: skip
WHAT_WORKS = (
    "str, int, float, bool, None, Literal, Enum, Optional and other unions, list, tuple, dict with "
    "str keys, dataclasses, TypedDict, Any, and Annotated[type, {JSON Schema keywords}]"
)
_CONTAINERS = (list, dict, tuple)


class PydanticModel(Protocol):
    """What is asked of a pydantic model class."""

    def model_json_schema(self) -> Schema:
        """Give its JSON Schema."""
        ...

    def model_validate_json(self, text: str) -> object:
        """Make an instance."""
        ...


class Mismatch(ValueError):
    """A value that is none of a type."""


def is_pydantic(hint: object) -> TypeGuard[PydanticModel]:
    """Say whether it is a pydantic model class, without importing pydantic."""
    return isinstance(hint, type) and hasattr(hint, "model_json_schema")


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
        if (origin or hint) in _CONTAINERS:
            return self._container(origin or hint, args, at)
        if hint is None:
            return {"type": "null"}
        if isinstance(hint, type):
            return self._class(hint, at)
        raise _refused(hint, at)

    def _annotated(self, args: tuple[object, ...], at: str) -> Schema:
        schema = self.schema(args[0], at)
        for note in args[1:]:
            if not isinstance(note, Mapping):
                raise InvalidArgument(
                    f"schema: {at}: Annotated[..., {note!r:.60}]: only a dict of JSON Schema "
                    "keywords has a meaning here"
                )
            schema = {**schema, **cast("Mapping[str, object]", note)}
        return schema

    def _container(self, origin: object, args: tuple[object, ...], at: str) -> Schema:
        if origin is dict:
            if args and args[0] is not str:
                raise InvalidArgument(f"schema: {at}: the keys of a dict in JSON are str")
            return {"type": "object"} | (
                {"additionalProperties": self.schema(args[1], f"{at}[...]")} if args else {}
            )
        if not args:
            return {"type": "array"}
        if origin is list or (len(args) == 2 and args[1] is ...):
            return {"type": "array", "items": self.schema(args[0], f"{at}[...]")}
        places = [self.schema(item, f"{at}[{i}]") for i, item in enumerate(args)]
        return {"type": "array", "prefixItems": places, "items": False, "minItems": len(places)}

    def _class(self, hint: type, at: str) -> Schema:
        if hint in SCALARS:
            return {"type": SCALARS[hint]}
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
        members = _members(hint, at)
        return {
            "type": "object",
            "properties": {n: self.schema(h, f"{at}.{n}") for n, (h, _) in members.items()},
            "required": [name for name, (_, is_required) in members.items() if is_required],
            "additionalProperties": False,
        }


def load(hint: object, value: object, text: str) -> object:
    """Give a JSON value as an instance of a type; `text` is the JSON that it was read from.

    Raises: Mismatch; whatever a class raises when it is made.
    """
    if is_pydantic(hint):
        return hint.model_validate_json(text)
    origin, args = get_origin(hint), get_args(hint)
    if hint in (Any, object):
        return value
    if origin in (Annotated, Required, NotRequired):
        return load(args[0], value, text)
    if origin is Literal:
        return _same(args, value)
    if origin in (Union, types.UnionType):
        return _first(args, value, text)
    if (origin or hint) in _CONTAINERS:
        return _load_container(origin or hint, args, value, text)
    if hint in SCALARS or hint is None:
        return _load_scalar(hint, value)
    assert isinstance(hint, type)
    if issubclass(hint, Enum):
        member = _same([member.value for member in hint], value)
        return next(each for each in hint if each.value == member and _is_alike(each.value, member))
    return _load_record(hint, value, text)


def _load_scalar(hint: object, value: object) -> object:
    if hint is float and type(value) is int:
        return float(value)
    if type(value) is not (types.NoneType if hint is None else hint):
        raise Mismatch(f"{value!r:.60} is no {hint}")
    return value


def _load_container(
    origin: object, args: tuple[object, ...], value: object, text: str
) -> object:
    if origin is dict:
        if not isinstance(value, dict):
            raise Mismatch(f"{value!r:.60} is no dict")
        record = cast("dict[str, object]", value)
        return {k: load(args[1], v, text) if args else v for k, v in record.items()}
    if not isinstance(value, list):
        raise Mismatch(f"{value!r:.60} is no list")
    items = cast("list[object]", value)
    if origin is list or (len(args) == 2 and args[1] is ...):
        loaded = [load(args[0], item, text) if args else item for item in items]
    else:
        if args and len(args) != len(items):
            raise Mismatch(f"{len(items)} items for {len(args)} places")
        loaded = [load(h, v, text) for h, v in zip(args, items, strict=True)] if args else items
    return loaded if origin is list else tuple(loaded)


def _load_record(hint: type, value: object, text: str) -> object:
    members = _members(hint, hint.__name__)
    if not isinstance(value, dict):
        raise Mismatch(f"{value!r:.60} is no {hint.__name__}")
    given = cast("dict[str, object]", value)
    missing = [n for n, (_, is_required) in members.items() if is_required and n not in given]
    if missing or not given.keys() <= members.keys():
        raise Mismatch(f"{list(given)} are not the fields of {hint.__name__}")
    return hint(**{name: load(members[name][0], v, text) for name, v in given.items()})


def _members(hint: type, at: str) -> dict[str, tuple[object, bool]]:
    """Give the fields of a class in order: name -> type and whether it must be there."""
    try:
        hints = get_type_hints(hint, include_extras=True)
    except NameError as error:
        raise InvalidArgument(
            f"schema: {at}: its annotations cannot be read: {error}; define the class, and all "
            "that it names, at the top of the module"
        ) from None
    if is_typeddict(hint):
        required = cast("frozenset[str]", getattr(hint, "__required_keys__"))  # noqa: B009
        return {name: (inner, name in required) for name, inner in hints.items()}
    found: dict[str, tuple[object, bool]] = {}
    for field in cast("tuple[Field[object], ...]", fields(cast("Any", hint))):
        if not field.init:
            raise InvalidArgument(f"schema: {at}.{field.name}: a field with init=False has no place")
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


def _same(options: Iterable[object], value: object) -> object:
    for option in options:
        if option == value and _is_alike(option, value):
            return option
    raise Mismatch(f"{value!r:.60} is none of the listed values")


def _is_alike(one: object, other: object) -> bool:
    """Say whether two equal values are of one type of JSON: True is not 1, but 1.0 is."""
    return isinstance(one, bool) == isinstance(other, bool)


def _first(options: tuple[object, ...], value: object, text: str) -> object:
    for option in options:
        try:
            return load(option, value, text)
        except Mismatch:
            continue
    raise Mismatch(f"{value!r:.60} is none of the types")


def _refused(hint: object, at: str) -> InvalidArgument:
    shown = hint.__name__ if isinstance(hint, type) else str(hint)
    return InvalidArgument(f"schema: {at}: {shown} has no JSON Schema here; use {WHAT_WORKS}")
