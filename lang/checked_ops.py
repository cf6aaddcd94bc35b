"""Operations made of what an author gives, or that came from elsewhere: all checked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import get_args

from .captures import captures_of
from .constraint import checked_constraint, constraint_of
from .errors import InvalidArgument
from .ops import Constraint, Gen, Input, Op, Sampling, Score, Select, SelectMethod, Text
from .options import choices_of, name_of, real, sampling, seed_of, text, whole, wrong

_SELECT_OPTIONS = ("top", "temperature", "abstain_below", "seed")
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
    if any(value is not None for value in bounds.values()):
        from .notes import bounded  # few gens have bounds

        schema = bounded(schema, bounds)
    constraint = constraint_of(schema=schema, **constraints)
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


def select_of(
    name: object,
    choices: object,
    method: object,
    *,
    top: object = None,
    temperature: object = None,
    abstain_below: object = None,
    seed: object = None,
) -> Select:
    """Give a checked select. Raises: InvalidArgument, naming the field."""
    known: SelectMethod | None = next((known for known in METHODS if known == method), None)
    if known is None:
        raise wrong("method", method, f"one of {', '.join(METHODS)}")
    checked = Select(
        name=name_of(name),
        choices=choices_of(choices),
        method=known,
        top=whole("top", top, 1, "1 or more"),
        temperature=real("temperature", temperature, 0, math.inf, "0 or more, and finite"),
        abstain_below=real("abstain_below", abstain_below, 0, 1, "a probability, from 0 to 1"),
        seed=seed_of(seed),
    )
    if checked.top is not None and checked.temperature:
        raise InvalidArgument(
            f"top={top} and temperature={temperature}: top gives the likeliest choices, a "
            "temperature draws one; leave one of them out"
        )
    return checked


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
            options = {name: getattr(op, name) for name in _SELECT_OPTIONS}
            select_of(op.name, op.choices, op.method, **options)
        case Score():
            text("text", op.text)
            if bool(op.text) == (op.source is not None):
                raise InvalidArgument("a score is of a text that is not empty, or of a node")
        case Text():
            text("text", op.text)
        case Input():
            text("input", op.name)
        case _:
            pass
