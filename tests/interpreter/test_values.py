"""Values of gens with a schema: parsed, validated, or a typed error; never a cut text."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

import plait
from plait import Backend, GrammarError, Invalid, NodeError, State, Truncated, function, gen
from plait.interpreter.wire import decode_nodes, encode_nodes
from plait.lang.serialize import dumps, loads

ITEM = '{"name":"Ada","n":12}'


@dataclass
class Item:
    name: str
    n: int

    def __post_init__(self) -> None:
        if self.name == "Eve":
            raise LookupError("Eve is not welcome")


SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "n": {"type": "integer"}},
    "required": ["name", "n"],
    "additionalProperties": False,
}


def say(prompt: str) -> str:
    """Answer by the last word before a colon; the default is an item."""
    answers = {
        "unique:": "[1,1]",
        "number:": "123",
        "twice:": '{"a":1,"a":2}',
        "eve:": '{"name":"Eve","n":1}',
        "text:": '"a b"',
    }
    ends = ((prompt.rfind(end), answer) for end, answer in answers.items() if end in prompt)
    return max(ends, default=(0, ITEM))[1]


@pytest.fixture(scope="module")
def backend() -> Iterator[Backend]:
    opened = plait.scripted(say)
    yield opened
    opened.close()


@function
def ask(s: State, prompt: str, schema: object, options: dict[str, Any]) -> None:
    s += prompt
    s += gen("x", schema, temperature=0, **options)


def result_of(backend: Backend, prompt: str, schema: object, **options: Any) -> plait.Result:
    row = {"prompt": prompt, "schema": schema, "options": options}
    (result,) = ask.run_batch([row], backend=backend)
    return result


def test_a_value_is_what_json_says_and_the_prompt_has_its_text(backend: Backend) -> None:
    result = result_of(backend, "item:", SCHEMA)
    assert result["x"] == {"name": "Ada", "n": 12}
    assert result.text() == f"item:{ITEM}"
    assert result.meta("x").finish_reason == "stop"
    assert [out.value for out in result.outputs()] == [{"name": "Ada", "n": 12}]


def test_a_value_of_a_dataclass_is_an_instance(backend: Backend) -> None:
    assert result_of(backend, "item:", Item)["x"] == Item("Ada", 12)


def test_a_value_of_a_pydantic_model_is_an_instance(backend: Backend) -> None:
    pydantic = pytest.importorskip("pydantic")
    model = pydantic.create_model("Item", name=(str, ...), n=(int, ...))
    assert result_of(backend, "item:", model)["x"] == model(name="Ada", n=12)


def test_a_string_is_given_without_its_quotes(backend: Backend) -> None:
    result = result_of(backend, "text:", {"type": "string"})
    assert result["x"] == "a b"
    assert result.text() == 'text:"a b"'


def test_a_value_that_max_tokens_cuts_is_truncated(backend: Backend) -> None:
    result = result_of(backend, "item:", SCHEMA, max_tokens=10)
    error = result.error
    assert isinstance(error, Truncated)
    assert error.text == ITEM[:10]
    assert "max_tokens" in error.reason
    assert error.code == "truncated"
    assert error.where is not None
    assert str(error).startswith(f'{error.where}: gen("x"): the value is not whole')


def test_a_number_that_could_go_on_is_truncated(backend: Backend) -> None:
    assert isinstance(result_of(backend, "number:", int, max_tokens=2).error, Truncated)
    assert result_of(backend, "number:", int, max_tokens=4)["x"] == 123


def test_a_value_that_the_context_cuts_is_truncated() -> None:
    backend = plait.scripted(say, max_context=32)
    assert isinstance(result_of(backend, "item:" + "." * 20, SCHEMA).error, Truncated)
    backend.close()


def test_a_value_that_a_stop_string_cuts_is_invalid(backend: Backend) -> None:
    error = result_of(backend, "item:", SCHEMA, stop=",").error
    assert isinstance(error, Invalid)
    assert error.text == '{"name":"Ada"'
    assert error.reason == "cut by the stop string ','"


def test_a_value_that_fails_a_checked_keyword_is_invalid(backend: Backend) -> None:
    schema = {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}
    error = result_of(backend, "unique:", schema).error
    assert isinstance(error, Invalid)
    assert error.text == "[1,1]"
    assert "non-unique" in error.reason


def test_strict_refuses_a_checked_keyword_and_names_its_place(backend: Backend) -> None:
    schema = {"properties": {"a": {"items": {"type": "integer"}, "uniqueItems": True}}}
    error = result_of(backend, "item:", schema, strict=True).error
    assert isinstance(error, GrammarError)
    assert "#/properties/a/uniqueItems" in str(error)


def test_a_property_cannot_come_twice_whatever_the_model_says(backend: Backend) -> None:
    result = result_of(backend, "twice:", {"type": "object", "maxProperties": 2})
    assert next(iter(result["x"])) == "a"
    assert len(result["x"]) == 2


def test_a_class_that_refuses_its_value_makes_it_invalid(backend: Backend) -> None:
    error = result_of(backend, "eve:", Item).error
    assert isinstance(error, Invalid)
    assert isinstance(error.__cause__, LookupError)
    assert "Eve is not welcome" in error.reason


def test_multiples_are_compared_as_decimals() -> None:
    backend = plait.scripted(lambda prompt: "0.3")
    schema = {"type": "number", "multipleOf": 0.1}
    assert result_of(backend, "n:", schema)["x"] == 0.3
    backend.close()


def test_patterns_keep_their_meaning_in_ecma() -> None:
    backend = plait.scripted(lambda prompt: '"É"')
    for pattern in (r"^\p{Lu}$", r"^\W$"):
        assert result_of(backend, "n:", {"type": "string", "pattern": pattern})["x"] == "É"
    backend.close()


@function
def careful(s: State, max_tokens: int) -> str:
    s += gen("x", SCHEMA, max_tokens=max_tokens, temperature=0)
    try:
        return str(s["x"]["name"])
    except Truncated as error:
        return f"cut: {error.text} {s.meta('x').finish_reason}"


def test_a_handled_fault_leaves_the_run_whole(backend: Backend) -> None:
    result = careful.run(max_tokens=6, backend=backend)
    assert result.value == 'cut: {"name length'
    with pytest.raises(Truncated):
        result["x"]
    assert result.meta("x").usage.output_tokens == 6
    assert careful.run(max_tokens=60, backend=backend).value == "Ada"


@function
def spread(s: State, limits: list[int]) -> None:
    s += "items:"
    forks = s.fork(len(limits))
    forks += lambda i: gen("x", Item, max_tokens=limits[i], temperature=0)
    s += f"{[item.n for item in forks.join()['x']]}"
    assert s["x"] == [Item("Ada", 12)] * len(limits)


def test_a_join_gives_instances_or_raises_for_the_branch(backend: Backend) -> None:
    result = spread.run(limits=[60, 60], backend=backend)
    assert result["x"] == [Item("Ada", 12)] * 2
    assert result.text() == "items:[12, 12]"
    with pytest.raises(Truncated, match=r"in branch 0\.1: the value is not whole"):
        spread.run(limits=[60, 5], backend=backend)


def test_rows_of_a_batch_fail_for_themselves(backend: Backend) -> None:
    rows = [{"limits": [limit]} for limit in (60, 7, 60)]
    results = spread.run_batch(rows, backend=backend)
    assert [result.ok for result in results] == [True, False, True]
    assert isinstance(results[1].error, Truncated)


def test_async_runs_give_values(backend: Backend) -> None:
    result = asyncio.run(spread.arun(limits=[60], backend=backend))
    assert result["x"] == [Item("Ada", 12)]


def test_a_stream_ends_with_text_and_value_or_with_the_error(backend: Backend) -> None:
    row: dict[str, Any] = {"prompt": "item:", "schema": SCHEMA}
    events = list(ask.stream(**row, options={}, backend=backend))
    assert "".join(event.text for event in events) == ITEM
    assert (events[-1].kind, events[-1].value) == ("end", ITEM)
    assert events[-1].parsed == {"name": "Ada", "n": 12}
    cut: list[plait.Event] = []
    with (
        pytest.raises(Truncated),
        ask.stream(**row, options={"max_tokens": 5}, backend=backend) as stream,
    ):
        cut.extend(stream)
    assert isinstance(cut[-1].error, Truncated)


def test_a_recorded_graph_gives_instances_and_one_from_json_plain_values(backend: Backend) -> None:
    result = spread.run(limits=[60], backend=backend, seed=1)
    assert plait.run_graph(result.graph, backend=backend, seed=1)["x"] == [Item("Ada", 12)]
    again = loads(dumps(result.graph))
    assert plait.run_graph(again, backend=backend)["x"] == [{"name": "Ada", "n": 12}]


def test_schemas_and_grammars_cross_the_wire(backend: Backend) -> None:
    @function
    def both(s: State) -> None:
        s += gen("x", Item, whitespace=1, order="any", strict=True)
        s += gen("y", grammar='start: "a"')

    graph = both.trace()
    assert decode_nodes(encode_nodes(graph.nodes)) == (graph.nodes, ())


@function
def after(s: State, schema: object) -> str:
    s += "a" + gen("x", schema)
    s += gen("z", max_tokens=1)
    forks = s.fork(1)
    forks += gen("w", max_tokens=1)
    try:
        s["x"]
    except GrammarError as error:
        for name in ("z", "x"):
            with pytest.raises(GrammarError):
                s[name]
        return str(error)
    return ""


def test_a_broken_schema_fails_at_the_client_with_all_that_depends_on_it(
    backend: Backend,
) -> None:
    result = after.run(schema={"properties": {"a": {"type": "nope"}}}, backend=backend)
    assert 'gen("x"): schema: #/properties/a/type' in result.value
    assert "'nope'" in result.value


def test_a_schema_of_an_older_dialect_is_taken(backend: Backend) -> None:
    schema = {"items": [{"type": "integer"}, {"type": "integer"}], "type": "array"}
    assert isinstance(result_of(backend, "unique:", schema)["x"], list)


def test_faults_are_node_errors_with_an_error_of_its_own_for_each_reader(
    backend: Backend,
) -> None:
    result = careful.run(max_tokens=6, backend=backend)
    errors = []
    for _ in range(2):
        with pytest.raises(NodeError) as caught:
            result["x"]
        errors.append(caught.value)
    assert errors[0] is not errors[1]
    assert str(errors[0]) == str(errors[1])


def test_a_grammar_writes_its_texts(backend: Backend) -> None:
    for grammar in ('start: "[" /[0-9]/ ("," /[0-9]/)* "]"', 'root ::= "[" [0-9] ("," [0-9])* "]"'):

        @function
        def write(s: State, grammar: str) -> None:
            s += "unique:"
            s += gen("x", grammar=grammar, temperature=0)

        assert write.run(grammar=grammar, backend=backend)["x"] == "[1,1]"
        assert json.loads(write.run(grammar=grammar, backend=backend)["x"]) == [1, 1]
