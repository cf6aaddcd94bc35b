"""Operations made of what an author gives, or that came from elsewhere: all checked."""

from __future__ import annotations

from dataclasses import fields
from typing import get_args

from .captures import captures_of
from .constraint import KINDS, constraint_of
from .ops import Gen, Input, Op, Sampling, Select, SelectMethod, Text
from .options import choices_of, name_of, sampling, seed_of, text, wrong

METHODS: tuple[SelectMethod, ...] = get_args(SelectMethod)


def gen_of(
    name: object,
    options: Sampling,
    *,
    captures: object = None,
    seed: object = None,
    **constraints: object,
) -> Gen:
    """Give a checked gen; `constraints` are those of `constraint_of`.

    Raises: InvalidArgument, naming the field.
    """
    own_name = name_of(name)
    constraint = constraint_of(**constraints)
    return Gen(
        name=own_name,
        sampling=options,
        regex=constraint.regex,
        choices=constraint.choices,
        seed=seed_of(seed),
        schema=constraint.schema,
        grammar=constraint.grammar,
        captures=captures_of(captures, own_name, constraint),
    )


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
            constraints = {name: getattr(op, name) for name in KINDS}
            options = sampling(**given)
            gen_of(op.name, options, seed=op.seed, captures=op.captures, **constraints)
        case Select():
            select_of(op.name, op.choices, op.method)
        case Text():
            text("text", op.text)
        case Input():
            text("input", op.name)
        case _:
            pass
