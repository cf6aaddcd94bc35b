"""Which types a gen writes without quotes, as a person would: `2026-01-31`, `red`."""

from __future__ import annotations

import json
import types
from collections.abc import Iterator
from enum import Enum
from typing import Annotated, Literal, Union, get_args, get_origin

from .times import TIME_SCHEMAS

_PLAIN = (int, float, bool, types.NoneType, None)


def is_bare(hint: object) -> bool:
    """Say whether a value of the type is one scalar, and its text without quotes tells which.

    Of a type that has no strings the text is the same: False.
    """
    try:
        leaves = list(_leaves(hint))
    except TypeError:
        return False
    if not any(map(_has_strings, leaves)):
        return False
    others = [leaf for leaf in leaves if not _has_strings(leaf)]
    return not others or all(_is_distinct(leaf) for leaf in leaves if _has_strings(leaf))


def _leaves(hint: object) -> Iterator[object]:
    """Give the scalars of a type: types, and the constants of Literal and Enum.

    Raises: TypeError for a type that has values of other kinds.
    """
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        yield from _leaves(args[0])
    elif origin is Literal:
        yield from map(_Constant, args)
    elif origin in (Union, types.UnionType):
        for option in args:
            yield from _leaves(option)
    elif hint is str or hint in _PLAIN or hint in TIME_SCHEMAS:
        yield hint
    elif isinstance(hint, type) and issubclass(hint, Enum):
        yield from (_Constant(member.value) for member in hint)
    else:
        raise TypeError(hint)


class _Constant:
    """A value that a type lists."""

    def __init__(self, value: object) -> None:
        self.value = value.value if isinstance(value, Enum) else value


def _has_strings(leaf: object) -> bool:
    if isinstance(leaf, _Constant):
        return isinstance(leaf.value, str)
    return leaf is str or leaf in TIME_SCHEMAS


def _is_distinct(leaf: object) -> bool:
    """Say whether no text of these strings is that of a number, null, true or false."""
    if not isinstance(leaf, _Constant):
        return leaf is not str
    try:
        json.loads(str(leaf.value))
    except ValueError:
        return True
    return False
