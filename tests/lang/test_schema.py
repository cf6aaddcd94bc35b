"""gen by schema and by grammar: what is recorded, and what is refused."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from plait import Grammar, gen
from plait.lang.errors import GraphError, InvalidArgument
from plait.lang.ops import Constraint, Gen, GrammarText, JsonSchema, SchemaDocument
from plait.lang.program import Program
from plait.lang.serialize import dumps, loads
from plait.lang.show import to_text
from plait.lang.state import State


@dataclass
class City:
    name: str


def op_of(*args: Any, **options: Any) -> Gen:
    (op,) = gen(*args, **options).parts
    assert isinstance(op, Gen)
    return op


def schema_of(*args: Any, **options: Any) -> JsonSchema:
    constraint = op_of(*args, **options).constraint
    assert constraint is not None
    assert constraint.schema is not None
    return constraint.schema


def test_a_schema_is_kept_as_compact_json_in_the_order_of_its_properties() -> None:
    schema = {"type": "object", "properties": {"z": {}, "a": {"const": "é"}}}
    assert schema_of("x", schema) == JsonSchema(
        '{"type":"object","properties":{"z":{},"a":{"const":"é"}}}'
    )


def test_true_and_false_are_schemas() -> None:
    assert schema_of("x", True) == JsonSchema("true")
    assert schema_of("x", False) == JsonSchema("false")


def test_a_class_is_kept_beside_its_schema() -> None:
    schema = schema_of("x", City)
    assert schema.hint is City
    assert json.loads(schema.source)["required"] == ["name"]


def test_the_options_of_a_schema_are_kept() -> None:
    schema = schema_of("x", {}, strict=True, whitespace=2, order="any")
    assert schema == JsonSchema("{}", strict=True, whitespace=2, order="any")


def test_a_registry_is_kept_as_json_and_travels_with_the_graph() -> None:
    registry = {"http://a.org/n": {"type": "null"}, "http://a.org/t": True}
    schema = schema_of("x", {"$ref": "http://a.org/n"}, registry=registry)
    documents = (
        SchemaDocument("http://a.org/n", '{"type":"null"}'),
        SchemaDocument("http://a.org/t", "true"),
    )
    assert schema == JsonSchema('{"$ref":"http://a.org/n"}', registry=documents)

    def referring(s: State) -> None:
        s += gen("x", {}, registry=registry)

    graph = Program(referring).trace()
    assert loads(dumps(graph)) == graph


@pytest.mark.parametrize(
    ("registry", "reason"),
    [
        ("http://a.org/n", "registry must be a dict of JSON Schemas by URI"),
        ({1: {}}, "registry must be a dict whose keys are URIs"),
        ({"u": "text"}, r"registry\['u'\] must be a dict, not text"),
        ({"u": {"const": float("nan")}}, r"registry\['u'\]: it is not JSON"),
    ],
)
def test_a_registry_without_meaning_is_refused(registry: Any, reason: str) -> None:
    with pytest.raises(InvalidArgument, match=reason):
        gen("x", {}, registry=registry)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('start: "a"', "lark"),
        ('start: name "::=" name\nname: "a"', "lark"),
        ('root ::= "a"', "ebnf"),
        ('<root> ::= "a"', "ebnf"),
        ('# a comment\nroot ::=\n  "a"', "ebnf"),
    ],
)
def test_a_grammar_says_by_its_rules_what_it_is(text: str, kind: str) -> None:
    constraint = op_of("x", grammar=text).constraint
    assert constraint is not None
    grammar = constraint.grammar
    assert grammar is not None
    assert (grammar.format, grammar.source) == (kind, text)


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"schema": {}, "regex": "a"}, "regex and schema are both given"),
        (
            {"schema": {}, "grammar": "a", "choices": ["a"]},
            "choices and schema and grammar",
        ),
        ({"strict": True}, "strict says how a schema's value is written"),
        ({"regex": "a", "order": "any"}, "strict, whitespace, order, registry belong to a schema"),
        ({"grammar": Grammar(schema=int), "strict": True}, "Grammar(schema=..., strict=...)"),
        ({"schema": {}, "registry": {"": {}}}, "registry['']: it is the URI of the schema itself"),
        ({"schema": {}, "registry": {"#": {}}}, "registry['#']: it is the URI of the schema"),
        ({"schema": {}, "registry": {"a:b#c": {}}}, "registry['a:b#c']: a URI of a whole document"),
        ({"schema": {}, "strict": 1}, "strict=1"),
        ({"schema": {}, "order": "sorted"}, "one of listed, any"),
        ({"schema": {}, "whitespace": -1}, "whitespace=-1"),
        ({"schema": '{"type": "object"}'}, "json.loads"),
        ({"schema": 3}, "a pydantic model class, a dataclass"),
        ({"schema": City("Oslo")}, "a pydantic model class, a dataclass"),
        ({"schema": {1: {}}}, "the key 1 is not a str"),
        ({"schema": {"const": float("nan")}}, "not JSON"),
        ({"schema": {"const": {1}}}, "not JSON"),
        ({"schema": {"const": "\ud800"}}, "lone surrogate"),
        ({"grammar": 3}, "Lark's syntax"),
        ({"shema": {}}, "did you mean schema"),
    ],
)
def test_what_has_no_meaning_is_refused_at_the_line(options: Any, part: str) -> None:
    with pytest.raises(InvalidArgument, match=r"test_schema\.py:\d+: gen\('x'\)") as caught:
        gen("x", **options)
    assert part in str(caught.value)


def test_a_schema_that_holds_itself_is_refused() -> None:
    schema: dict[str, object] = {}
    schema["items"] = schema
    with pytest.raises(InvalidArgument, match="nested too deeply"):
        gen("x", schema)


def test_an_author_s_schema_is_not_changed() -> None:
    schema = {"properties": {"a": {"type": "string"}}}
    gen("x", schema)
    assert schema == {"properties": {"a": {"type": "string"}}}


def typed(s: State) -> None:
    s += gen("x", City) + gen("y", grammar='start: "a"')
    s += s.ref("x")


def test_a_graph_keeps_the_schema_and_leaves_the_class_behind() -> None:
    graph = Program(typed).trace()
    again = loads(dumps(graph))
    assert again == graph
    assert again.digest() == graph.digest()
    op = again.nodes[0].op
    assert isinstance(op, Gen)
    schema = op.schema_of(None)
    assert schema is not None
    assert schema.hint is None
    assert again.nodes[1].op == Gen(
        "y", constraint=Constraint(grammar=GrammarText("lark", 'start: "a"'))
    )


def test_a_drawn_graph_shows_schema_and_grammar() -> None:
    drawn = to_text(Program(typed).trace())
    assert 'gen x schema={"type": "object"' in drawn
    assert 'gen y lark="start: ' in drawn


def test_graphs_that_differ_only_in_the_registry_are_drawn_differently() -> None:
    def referring(uri: str) -> Program:
        return Program(lambda s: s.__iadd__(gen("x", {}, registry={uri: True})))

    drawn = to_text(referring("http://a.org/n").trace())
    assert 'registry=["http://a.org/n"]' in drawn
    assert drawn != to_text(referring("http://a.org/m").trace())


@pytest.mark.parametrize(
    "schema",
    [{"source": "{"}, {"source": "3"}, {"source": "{}", "order": "x"}, {"source": "{}", "no": 1}],
)
def test_a_graph_with_a_damaged_schema_is_refused(schema: dict[str, object]) -> None:
    node = {"id": 0, "op": {"kind": "gen", "constraint": {"schema": schema}}, "prev": None}
    with pytest.raises(GraphError, match=r"schema|order"):
        loads(json.dumps({"plait_graph": 5, "program": "p", "nodes": [node]}))


def indexed(s: State) -> None:
    s += gen("x", City)
    s += s["x"]["name"]


def appended(s: State) -> None:
    s += gen("x", City)
    s += s["x"]


def formatted(s: State) -> None:
    s += gen("x", City)
    s += f"{s['x']}"


def asked(s: State) -> None:
    s += gen("x", City)
    if isinstance(s["x"], dict):
        s += "a"


@pytest.mark.parametrize("body", [indexed, appended, formatted, asked])
def test_a_trace_ends_where_python_needs_a_parsed_value(body: Any) -> None:
    graph = Program(body).trace()
    assert not graph.is_complete
    assert [(stop.name, stop.where is not None) for stop in graph.breaks] == [("x", True)]


def returned(s: State) -> object:
    s += gen("x", City)
    return s["x"]


def test_a_parsed_value_that_is_only_returned_leaves_the_trace_complete() -> None:
    assert Program(returned).trace().is_complete
