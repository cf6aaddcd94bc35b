"""Operations made of what an author gives, or that came from elsewhere: all checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import get_args

from .captures import captures_of
from .constraint import checked_constraint, constraint_of
from .notes import bounded
from .ops import Constraint, Gen, Input, Op, Sampling, Select, SelectMethod, Text
from .options import choices_of, name_of, sampling, seed_of, text, wrong

METHODS: tuple[SelectMethod, ...] = get_args(SelectMethod)


def gen_of(
    name: object,
    options: Sampling,
    *,
    captures: object = None,
    seed: object = None,
    bounds: Mapping[str, object] = MappingProxyType({}),
    schema: object = None,
    **constraints: object,
) -> Gen:
    """Give a checked gen; `constraints` are those of `constraint_of`, `bounds` a number's.

    Raises: InvalidArgument, naming the field.
    """
    own_name = name_of(name)
    constraint = constraint_of(schema=bounded(schema, bounds), **constraints)
    return _gen(own_name, options, constraint, seed, captures)


def _gen(
    name: str | None,
    options: Sampling,
    constraint: Constraint | None,
    seed: object,
    captures: object,
) -> Gen:
    captured = captures_of(captures, name, constraint)
    return Gen(name, options, constraint, seed_of(seed), captured)


def select_of(name: object, choices: object, method: object) -> Select:
    """Give a checked select."""
    known: SelectMethod | None = next((known for known in METHODS if known == method), None)
    if known is None:
        raise wrong("method", method, f"one of {', '.join(METHODS)}")
    return Select(name=name_of(name), choices=choices_of(choices), method=known)


def check_op(op: Op) -> None:
    """Check the options of an operation that came from elsewhere, such as a graph's JSON.

    Raises: InvalidArgument, naming the field.
    """
    match op:
        case Gen():
            given = {field.name: getattr(op.sampling, field.name) for field in fields(Sampling)}
            constraint = None if op.constraint is None else checked_constraint(op.constraint)
            _gen(name_of(op.name), sampling(**given), constraint, op.seed, op.captures)
        case Select():
            select_of(op.name, op.choices, op.method)
        case Text():
            text("text", op.text)
        case Input():
            text("input", op.name)
        case _:
            pass
