"""Operations made of what an author gives, or that came from elsewhere: all checked."""

from __future__ import annotations

from dataclasses import fields
from typing import get_args

from .constraint import grammar_of, schema_of
from .errors import InvalidArgument
from .ops import Gen, Input, Op, Sampling, Select, SelectMethod, Text
from .options import choices_of, name_of, sampling, seed_of, text, wrong

METHODS: tuple[SelectMethod, ...] = get_args(SelectMethod)
CONSTRAINTS = ("regex", "choices", "schema", "grammar")


def gen_of(
    name: object,
    options: Sampling,
    *,
    regex: object = None,
    choices: object = None,
    schema: object = None,
    grammar: object = None,
    seed: object = None,
    **schema_options: object,
) -> Gen:
    """Give a checked gen. Raises: InvalidArgument, naming the field."""
    constraints = zip(CONSTRAINTS, (regex, choices, schema, grammar), strict=True)
    given = [constraint for constraint, value in constraints if value is not None]
    if len(given) > 1:
        raise InvalidArgument(
            f"{' and '.join(given)} are {'both' if len(given) == 2 else 'all'} given; "
            "a gen takes at most one of them"
        )
    options_given = [key for key, value in schema_options.items() if value is not None]
    if options_given and schema is None:
        raise InvalidArgument(f"{options_given[0]} says how a schema's value is written; give one")
    return Gen(
        name=name_of(name),
        sampling=options,
        regex=None if regex is None else text("regex", regex),
        choices=None if choices is None else choices_of(choices),
        seed=seed_of(seed),
        schema=None if schema is None else schema_of(schema, **schema_options),
        grammar=None if grammar is None else grammar_of(grammar),
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
            constraints = {name: getattr(op, name) for name in CONSTRAINTS}
            gen_of(op.name, sampling(**given), seed=op.seed, **constraints)
        case Select():
            select_of(op.name, op.choices, op.method)
        case Text():
            text("text", op.text)
        case Input():
            text("input", op.name)
        case _:
            pass
