"""Python types as JSON Schema, and back: JSON values as instances."""

from __future__ import annotations

import datetime
import json
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Annotated, Any, Literal, NotRequired, Optional, TypedDict

import pytest

from plait.lang.errors import InvalidArgument
from plait.lang.hints import schema_of_hint
from plait.lang.instances import Mismatch, load


class Colour(Enum):
    RED = "red"
    NONE = None
    ONE = 1


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Point(TypedDict):
    x: float
    label: NotRequired[str]


@dataclass
class Leaf:
    code: Annotated[str, {"pattern": "^[A-Z]+$"}]


@dataclass
class Tree:
    value: int
    leaf: Leaf | None = None
    kids: list[Tree] = field(default_factory=list)


@dataclass
class Late:
    made: int = field(init=False)


CASES: list[tuple[Any, dict[str, Any], Any, Any]] = [
    (str, {"type": "string"}, "a", "a"),
    (int, {"type": "integer"}, 3, 3),
    (float, {"type": "number"}, 3, 3.0),
    (bool, {"type": "boolean"}, True, True),
    (Any, {}, [1], [1]),
    (Literal["a", 1, None], {"enum": ["a", 1, None]}, None, None),
    (Colour, {"enum": ["red", None, 1]}, 1, Colour.ONE),
    (Level, {"enum": [1, 2]}, 2, Level.HIGH),
    (Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}, None, None),  # noqa: UP045
    (int | str, {"anyOf": [{"type": "integer"}, {"type": "string"}]}, "a", "a"),
    (list[int], {"type": "array", "items": {"type": "integer"}}, [1], [1]),
    (list, {"type": "array"}, [1, "a"], [1, "a"]),
    (
        dict[str, float],
        {"type": "object", "additionalProperties": {"type": "number"}},
        {"a": 1},
        {"a": 1.0},
    ),
    (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}, [1, 2], (1, 2)),
    (
        tuple[int, str],
        {
            "type": "array",
            "prefixItems": [{"type": "integer"}, {"type": "string"}],
            "items": False,
            "minItems": 2,
        },
        [1, "a"],
        (1, "a"),
    ),
    (Annotated[int, {"minimum": 3}], {"type": "integer", "minimum": 3}, 4, 4),
    (
        Point,
        {
            "type": "object",
            "properties": {"x": {"type": "number"}, "label": {"type": "string"}},
            "required": ["x"],
            "additionalProperties": False,
        },
        {"x": 1},
        {"x": 1.0},
    ),
]


@pytest.mark.parametrize(("hint", "schema", "value", "instance"), CASES)
def test_a_type_has_a_schema_and_takes_a_value(
    hint: Any, schema: dict[str, Any], value: Any, instance: Any
) -> None:
    assert schema_of_hint(hint) == schema
    loaded = load(hint, value, json.dumps(value))
    assert loaded == instance
    assert type(loaded) is type(instance)


def test_a_dataclass_may_hold_itself_and_others() -> None:
    assert schema_of_hint(Tree) == {
        "type": "object",
        "properties": {
            "value": {"type": "integer"},
            "leaf": {"anyOf": [{"$ref": "#/$defs/Leaf"}, {"type": "null"}]},
            "kids": {"type": "array", "items": {"$ref": "#"}},
        },
        "required": ["value"],
        "additionalProperties": False,
        "$defs": {
            "Leaf": {
                "type": "object",
                "properties": {"code": {"type": "string", "pattern": "^[A-Z]+$"}},
                "required": ["code"],
                "additionalProperties": False,
            }
        },
    }
    value = {"value": 1, "leaf": {"code": "A"}, "kids": [{"value": 2}]}
    assert load(Tree, value, "") == Tree(1, Leaf("A"), [Tree(2)])


@pytest.mark.parametrize(
    ("hint", "part"),
    [
        (bytes, "bytes has no JSON Schema"),
        (set[int], "has no JSON Schema"),
        (list[datetime.timedelta], "list[...]: timedelta has no JSON Schema"),
        (dict[int, str], "the keys of a dict in JSON are str"),
        (Annotated[int, "how many"], "only a dict of JSON Schema keywords"),
        (Literal[b"a"], "no constant of JSON"),
        (Late, "Late.made: init=False"),
    ],
)
def test_a_type_without_a_schema_is_refused_with_its_place(hint: Any, part: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        schema_of_hint(hint)
    assert part in str(caught.value)


def test_a_class_whose_annotations_cannot_be_read_is_refused() -> None:
    @dataclass
    class Inner:
        other: Nowhere  # type: ignore[name-defined]  # noqa: F821  # pyright: ignore

    with pytest.raises(InvalidArgument, match="at the top of the module"):
        schema_of_hint(Inner)


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (int, True),
        (bool, 1),
        (Literal[1], True),
        (Literal[True], 1),
        (Colour, "blue"),
        (list[int], {}),
        (dict[str, int], []),
        (tuple[int, str], [1]),
        (int | str, 1.5),
        (Tree, {}),
        (Tree, {"value": 1, "more": 2}),
    ],
)
def test_a_value_of_another_type_is_a_mismatch(hint: Any, value: Any) -> None:
    with pytest.raises(Mismatch):
        load(hint, value, json.dumps(value))


def test_a_pydantic_model_is_closed_unless_it_says_otherwise() -> None:
    pydantic = pytest.importorskip("pydantic")
    closed = pydantic.create_model("Closed", a=(int, ...))
    config = pydantic.ConfigDict(extra="allow")
    opened = pydantic.create_model("Opened", __config__=config, a=(int, ...))
    assert schema_of_hint(closed)["additionalProperties"] is False
    assert schema_of_hint(opened)["additionalProperties"] is True
    assert load(closed, {"a": 1}, '{"a":1}') == closed(a=1)


def test_a_pydantic_model_inside_another_type_is_refused() -> None:
    pydantic = pytest.importorskip("pydantic")
    inner: Any = pydantic.create_model("Inner", a=(int, ...))
    outer: Any = list
    with pytest.raises(InvalidArgument, match="make the outer one a pydantic model"):
        schema_of_hint(outer[inner])
