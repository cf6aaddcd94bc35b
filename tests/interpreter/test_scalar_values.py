"""A scalar that is all of an output: written as a person would, read as its Python type."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from enum import Enum
from typing import Annotated, Any, Literal, Optional

import pytest

import plait
from plait import Backend, GrammarError, Invalid, InvalidArgument, State, Truncated, function, gen
from plait.interpreter.lowering import grammar_spec
from plait.interpreter.schema_values import json_text
from plait.lang.ops import Gen
from plait.lang.serialize import dumps, loads
from plait.runtime.grammar.explain import match


class Colour(Enum):
    RED = "red"
    BLUE = "light blue"


@dataclass
class Meeting:
    day: date
    at: time
    made: datetime | None


@pytest.fixture(scope="module")
def backend() -> Iterator[Backend]:
    opened = plait.scripted(lambda prompt: prompt.rpartition("|")[0])
    yield opened
    opened.close()


@function
def ask(s: State, says: str, schema: object, options: dict[str, Any]) -> None:
    """Let a model that says `says` write a value."""
    s += says + "|"
    s += gen("x", schema, temperature=0, **options)


def result_of(backend: Backend, says: str, schema: object, **options: Any) -> plait.Result:
    (result,) = ask.run_batch(
        [{"says": says, "schema": schema, "options": options}], backend=backend
    )
    return result


VALUES: list[tuple[Any, str, Any]] = [
    (int, "42", 42),
    (float, "-2.5", -2.5),
    (bool, "true", True),
    (date, "2024-02-29", date(2024, 2, 29)),
    (time, "09:30", time(9, 30)),
    (time, "09:30:59", time(9, 30, 59)),
    (datetime, "2026-01-31T10:30:00Z", datetime(2026, 1, 31, 10, 30, tzinfo=UTC)),
    (datetime, "2026-01-31T10:30", datetime(2026, 1, 31, 10, 30)),
    (str, 'He said "hi"', 'He said "hi"'),
    (Annotated[str, {"pattern": "^[A-Z]{2}-[0-9]+$"}], "AB-12", "AB-12"),
    (Literal["a b", "c"], "a b", "a b"),
    (Literal["x", 3], "3", 3),
    (Literal["7", "8"], "7", "7"),
    (Colour, "light blue", Colour.BLUE),
    (Optional[Colour], "null", None),  # noqa: UP045
    (date | int, "7", 7),
    (date | int, "2020-01-01", date(2020, 1, 1)),
]


@pytest.mark.parametrize(("schema", "text", "value"), VALUES)
def test_a_scalar_is_written_as_it_is_and_read_as_its_type(
    backend: Backend, schema: Any, text: str, value: Any
) -> None:
    result = result_of(backend, text, schema)
    assert result.text() == f"{text}|{text}"
    assert result["x"] == value
    assert type(result["x"]) is type(value)


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        (int | str, '"7"', "7"),  # of both, quotes tell which
        (Literal["null"] | None, '"null"', "null"),
        ({"enum": ["a"]}, '"a"', "a"),  # a JSON Schema speaks of JSON
        (list[date], '["2024-02-29"]', [date(2024, 2, 29)]),
        (
            Meeting,
            '{"day":"2024-02-29","at":"09:30","made":null}',
            Meeting(date(2024, 2, 29), time(9, 30), None),
        ),
    ],
)
def test_what_is_no_scalar_or_would_be_unclear_is_json(
    backend: Backend, schema: Any, text: str, value: Any
) -> None:
    result = result_of(backend, text, schema)
    assert result.text() == f"{text}|{text}"
    assert result["x"] == value


@pytest.mark.parametrize("text", ["2023-02-29", "0000-01-01", "2023-13-01", "2023-04-31"])
@pytest.mark.parametrize("kind", [date, datetime])
def test_a_day_that_no_calendar_has_is_never_written(kind: type, text: str) -> None:
    (op,) = gen("x", kind).parts
    assert isinstance(op, Gen)
    assert op.constraint is not None
    spec = grammar_spec(op.constraint)
    rest = "" if kind is date else "T10:30"
    assert not match(spec, text + rest)
    assert match(spec, "2024-02-29" + rest)


def test_a_scalar_that_max_tokens_cuts_is_truncated(backend: Backend) -> None:
    for schema, text in [(str, "some words"), (date, "2024-02-29"), (Literal["yes"], "yes")]:
        error = result_of(backend, text, schema, max_tokens=2).error
        assert isinstance(error, Truncated)
        assert error.text == text[:2]
        assert "max_tokens" in error.reason


def test_a_scalar_that_fits_max_tokens_exactly_is_whole(backend: Backend) -> None:
    assert result_of(backend, "yes", Literal["yes", "no"], max_tokens=3)["x"] == "yes"


def test_a_stop_string_ends_a_str_and_makes_another_scalar_invalid(backend: Backend) -> None:
    assert result_of(backend, "one\ntwo", str, stop="\n")["x"] == "one"
    error = result_of(backend, "2024-02-29", date, stop="-02").error
    assert isinstance(error, Invalid)
    assert error.text == "2024"
    assert error.reason == "cut by the stop string '-02'"


def test_bounds_hold_for_every_number_that_is_written(backend: Backend) -> None:
    assert result_of(backend, "7", int, ge=1, le=9)["x"] == 7
    assert result_of(backend, "7", int, gt=7, lt=9)["x"] == 8
    assert result_of(backend, "2.5", float, gt=2, lt=3)["x"] == 2.5
    assert isinstance(result_of(backend, "7", int, gt=7, lt=8).error, GrammarError)


class Between:
    """Bounds in the way of annotated_types, which plait does not import."""

    ge, lt, multiple_of = 10, 20, 5


class Sized:
    min_length, max_length = 2, 3


class FieldLike:
    metadata = (Sized(),)


@pytest.mark.parametrize(
    ("schema", "says", "value"),
    [
        (Annotated[int, Between()], "15", 15),
        (Annotated[str, Sized()], "ab", "ab"),
        (Annotated[list[int], Sized()], "[1,2]", [1, 2]),
        (Annotated[str, FieldLike()], "abc", "abc"),
    ],
)
def test_notes_of_other_packages_are_keywords(
    backend: Backend, schema: Any, says: str, value: Any
) -> None:
    assert result_of(backend, says, schema)["x"] == value


def test_what_a_note_forbids_is_not_written(backend: Backend) -> None:
    assert result_of(backend, "17", Annotated[int, Between()])["x"] in (10, 15)
    assert len(result_of(backend, "abcdef", Annotated[str, Sized()])["x"]) == 3


@pytest.mark.parametrize(
    ("schema", "options", "part"),
    [
        (None, {"ge": 1}, "ge: bounds are a number's"),
        (str, {"le": 1}, "le: bounds are a number's"),
        (int, {"ge": 3, "le": 2}, "no number is at least 3 and at most 2"),
        (int, {"ge": True}, "ge=True: ge must be a number"),
        (float, {"lt": float("nan")}, "lt=nan"),
    ],
)
def test_bounds_without_meaning_are_refused_at_the_line(
    schema: Any, options: dict[str, Any], part: str
) -> None:
    with pytest.raises(InvalidArgument) as caught:
        gen("x", schema, **options)
    assert part in str(caught.value)


def test_a_str_with_a_regex_is_refused_with_the_way_to_write_it() -> None:
    with pytest.raises(InvalidArgument, match=r"Annotated\[str, .*pattern"):
        gen("x", str, regex="[a-z]+")


def test_a_graph_from_json_writes_the_same_text_and_gives_the_plain_value(
    backend: Backend,
) -> None:
    result = result_of(backend, "2024-02-29", date)
    again = plait.run_graph(loads(dumps(result.graph)), backend=backend)
    assert again["x"] == "2024-02-29"
    assert again.text() == result.text()


def test_a_str_with_the_text_of_a_number_stays_a_str() -> None:
    (op,) = gen("x", str).parts
    assert isinstance(op, Gen)
    assert op.constraint is not None
    assert op.constraint.schema is not None
    assert json_text(op.constraint.schema, "7") == '"7"'
    assert json_text(op.constraint.schema, "null") == '"null"'
    assert json_text(op.constraint.schema, '"a"') == r'"\"a\""'
