"""Random schemas: what is accepted is what the `jsonschema` library calls valid."""

from __future__ import annotations

import json
import random
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from plait.runtime.errors import RequestError
from plait.runtime.grammar.pool import Pool
from plait.runtime.grammar.spec import SchemaOptions

from ..tokens import VOCABULARY
from .random_schemas import FAMILIES, mutated, roots, values_of
from .schemas import Texts, is_valid, texts_of, walked

MAX_LEN = 300  # characters of a sample: a longer one says no more

SCHEMAS = st.sampled_from(FAMILIES).flatmap(roots)
SCHEMAS_AND_VALUES = st.sampled_from(FAMILIES).flatmap(
    lambda family: st.tuples(roots(family), st.lists(values_of(family), max_size=8))
)
SLOW_TO_MAKE = (HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large)
often = settings(
    deadline=None,
    max_examples=100,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.filter_too_much,
        HealthCheck.data_too_large,
    ],
)


def compiled(schema: object, pool: Pool | None = None, is_any_order: bool = True) -> Texts:
    """Compile a schema, but for those that are parts of themselves."""
    try:
        return texts_of(schema, SchemaOptions(is_any_order=is_any_order), pool)
    except RequestError as e:
        assume("one of its own parts" not in str(e) and "comes to more than" not in str(e))
        raise


def is_exact(text: str) -> bool:
    """Say whether floats keep all numbers of a text as they are written."""
    rounded: list[str] = []

    def parse(number: str) -> float:
        if Decimal(repr(float(number))) != Decimal(number):
            rounded.append(number)
        return float(number)

    json.loads(text, parse_float=parse)
    return not rounded and len(text) < MAX_LEN


@often
@given(SCHEMAS_AND_VALUES, st.randoms(use_true_random=False))
def test_a_value_is_accepted_exactly_if_it_is_valid(
    schema_and_values: tuple[object, list[object]], rng: random.Random
) -> None:
    schema, values = schema_and_values
    texts = compiled(schema)
    if texts.start is not None:
        values += [mutated(json.loads(texts.sample(seed)), rng) for seed in range(4)]
    for value in values:
        is_right = is_valid(schema, value)
        if texts.holds(value) != is_right:
            assert texts.checked, value
            assert not is_right, value


@often
@given(SCHEMAS, st.integers(0, 999), st.booleans())
def test_a_random_text_is_valid_json_without_a_name_that_comes_twice(
    schema: object, seed: int, is_any_order: bool
) -> None:
    texts = compiled(schema, is_any_order=is_any_order)
    if texts.start is None:
        return
    text = texts.sample(seed)
    value = json.loads(text, object_pairs_hook=unrepeated)
    if not texts.checked and is_exact(text):
        assert is_valid(schema, value), text


def unrepeated(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Make an object of pairs."""
    assert len({name for name, _ in pairs}) == len(pairs), pairs
    return dict(pairs)


@pytest.mark.slow
@often
@given(SCHEMAS, st.integers(0, 999), st.booleans())
def test_no_walk_over_tokens_meets_a_dead_end(
    schema: object, seed: int, is_any_order: bool
) -> None:
    texts = compiled(schema, Pool(VOCABULARY), is_any_order)
    if texts.start is not None:
        text = walked(texts, seed, num_tokens=15)
        if not texts.checked and is_exact(text):
            assert is_valid(schema, json.loads(text)), text


@often
@given(SCHEMAS)
def test_strict_mode_refuses_exactly_what_is_only_checked(schema: object) -> None:
    texts = compiled(schema, is_any_order=False)
    if texts.checked:
        with pytest.raises(RequestError, match="which strict=True refuses"):
            texts_of(schema, SchemaOptions(is_strict=True))
    else:
        assert texts_of(schema, SchemaOptions(is_strict=True)).checked == ()
