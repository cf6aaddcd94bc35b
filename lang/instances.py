"""JSON values as instances of the Python types whose schema they match."""

from __future__ import annotations

import types
from collections.abc import Iterable
from enum import Enum
from typing import Annotated, Any, Literal, NotRequired, Required, Union, cast, get_args, get_origin

from .hints import CONTAINERS, SCALARS, is_pydantic, is_time, members_of


class Mismatch(ValueError):
    """A value that is none of a type."""


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
    if (origin or hint) in CONTAINERS:
        return _load_container(origin or hint, args, value, text)
    if hint in SCALARS or hint is None:
        return _load_scalar(hint, value)
    assert isinstance(hint, type)
    if is_time(hint):
        return _load_time(hint, value)
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


def _load_time(hint: type, value: object) -> object:
    if not isinstance(value, str):
        raise Mismatch(f"{value!r:.60} is no {hint.__name__}")
    from .times import read_time  # few values are one

    try:
        return read_time(hint, value)
    except ValueError as error:
        raise Mismatch(str(error)) from error


def _load_container(origin: object, args: tuple[object, ...], value: object, text: str) -> object:
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
    members = members_of(hint, hint.__name__)
    if not isinstance(value, dict):
        raise Mismatch(f"{value!r:.60} is no {hint.__name__}")
    given = cast("dict[str, object]", value)
    missing = [n for n, (_, is_required) in members.items() if is_required and n not in given]
    if missing or not given.keys() <= members.keys():
        raise Mismatch(f"{list(given)} are not the fields of {hint.__name__}")
    return hint(**{name: load(members[name][0], v, text) for name, v in given.items()})


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
