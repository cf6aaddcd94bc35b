"""How likely texts are: asked for beside the text, without changing it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

import plait
from plait import Backend, GraphError, InvalidArgument, NodeError, State, function, gen, select
from plait.lang.serialize import dumps, loads
from plait.lang.show import to_text

from .scripted_runs import counted_segments


def biased(text: str) -> Mapping[str, float]:
    """Give next characters by the last one alone."""
    weights = {c: 1.0 + (ord(text[-1:] or "?") * 7 + ord(c) * 13) % 11 for c in "abc "}
    total = sum(weights.values())
    return {c: weight / total for c, weight in weights.items()}


def logprobs(text: str, more: str) -> list[float]:
    return [math.log(biased(text + more[:i])[c]) for i, c in enumerate(more)]


@pytest.fixture(scope="module")
def backend() -> Iterator[Backend]:
    opened = plait.scripted(biased)
    yield opened
    opened.close()


def test_a_text_is_scored_token_by_token_and_the_state_stays_as_it_is(backend: Backend) -> None:
    @function
    def program(s: State) -> object:
        s += "ab"
        found = s.score("cab")
        s += "c"
        return (found.tokens, found.total, found.mean, found.num_tokens, float(found))

    result = program.run(backend=backend)
    expected = logprobs("ab", "cab")
    tokens, total, mean, num_tokens, number = result.value
    assert tokens == pytest.approx(expected, abs=1e-5)
    assert total == number == pytest.approx(sum(expected), abs=1e-5)
    assert (mean, num_tokens) == (pytest.approx(total / 3), 3)
    assert result.text() == "abc"


def test_a_score_at_the_end_leaves_the_text_alone(backend: Backend) -> None:
    @function
    def program(s: State) -> float:
        s += "ab"
        s += gen("x", max_tokens=3)
        own: float = s.log_prob("x").total
        return own + s.score("a").total

    result = program.run(backend=backend, seed=1)
    assert result.text() == "ab" + result["x"]


@pytest.mark.parametrize("options", [{}, {"temperature": 0.2}, {"regex": "[ab]+"}, {"top_k": 1}])
def test_what_a_gen_wrote_has_the_log_probability_that_the_model_gives_it(
    backend: Backend, options: dict[str, Any]
) -> None:
    @function
    def program(s: State) -> tuple[float, ...]:
        s += "c "
        s += gen("x", max_tokens=6, **options)
        s += "!"
        tokens: tuple[float, ...] = s.log_prob("x").tokens
        return tokens

    result = program.run(backend=backend, seed=4)
    assert result.value == pytest.approx(logprobs("c ", result["x"]), abs=1e-5)


def test_a_reference_may_be_scored_anywhere_in_the_run(backend: Backend) -> None:
    @function
    def program(s: State) -> tuple[float, float]:
        s += "c"
        s += gen("x", max_tokens=3)
        other = s.fork(1)[0]
        other += "ab "
        return other.score(s.ref("x")).total, other.score(s["x"]).total

    by_reference, by_text = program.run(backend=backend, seed=2).value
    assert by_reference == by_text


def test_the_samples_of_a_fork_are_scored_each_in_its_branch(backend: Backend) -> None:
    @function
    def program(s: State) -> tuple[list[str], list[float]]:
        s += "a"
        forks = s.fork(3)
        forks += gen("x", max_tokens=4)
        found = forks.join()["x"]
        return found, [each.total for each in s.log_prob("x")]

    texts, totals = program.run(backend=backend, seed=3).value
    expected = [sum(logprobs("a", text)) for text in texts]
    assert totals == pytest.approx(expected, abs=1e-5)


def test_a_select_has_the_log_probability_of_its_text(backend: Backend) -> None:
    @function
    def program(s: State) -> float:
        s += "a"
        s += select("x", ["bc", "ca"])
        total: float = s.log_prob("x").total
        return total

    result = program.run(backend=backend)
    assert result.value == pytest.approx(result.meta("x").scores[result["x"]], abs=1e-5)


def test_an_empty_output_has_no_tokens_to_score(backend: Backend) -> None:
    @function
    def program(s: State) -> tuple[float, float, int]:
        s += "a" + gen("x", max_tokens=0)
        found = s.log_prob("x")
        return found.total, found.mean, found.num_tokens

    assert program.run(backend=backend).value == (0, 0, 0)


def test_scores_that_are_made_before_they_are_read_go_in_one_segment(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    segments = counted_segments(monkeypatch)

    @function
    def program(s: State) -> list[float]:
        s += "a"
        found = [s.score(text) for text in ("b", "c", "ab")]
        return [each.total for each in found]

    assert len(program.run(backend=backend).value) == 3
    assert segments == [4]


def test_a_recorded_graph_scores_again(backend: Backend) -> None:
    @function
    def program(s: State) -> None:
        s += "a" + gen("x", max_tokens=3)
        s.log_prob("x")
        s.score("b")

    result = program.run(backend=backend, seed=9)
    graph = loads(dumps(result.graph))
    assert graph == result.graph
    again = plait.run_graph(graph, backend=backend, seed=9)
    assert again.usage.prompt_tokens == result.usage.prompt_tokens
    assert 'score "b"' in to_text(graph)
    assert "score of 1" in to_text(graph)


def test_a_score_of_a_failed_gen_fails_with_it(backend: Backend) -> None:
    @function
    def program(s: State) -> object:
        s += "a" + gen("x", regex="[a-z")
        return s.log_prob("x").total

    with pytest.raises(NodeError, match="gen"):
        program.run(backend=backend)


@pytest.mark.parametrize("what", ["", 3, None])
def test_what_is_no_text_is_refused_at_the_line(backend: Backend, what: Any) -> None:
    @function
    def program(s: State) -> None:
        s += "a"
        s.score(what)

    with pytest.raises(InvalidArgument, match=r"test_scores.py:\d+: score"):
        program.run(backend=backend)


def test_a_trace_ends_where_python_needs_the_number() -> None:
    @function
    def program(s: State) -> None:
        s += "a"
        if s.score("b").total > -1:
            s += "b"

    graph = program.trace()
    assert not graph.is_complete
    assert len(graph.nodes) == 2


@pytest.mark.parametrize("op", ['{"kind": "score"}', '{"kind": "score", "text": "a", "source": 0}'])
def test_a_graph_whose_score_has_no_text_or_two_is_refused(op: str) -> None:
    reads = ', "reads": [0]' if "source" in op else ""
    nodes = f'{{"id": 0, "op": {{"kind": "gen"}}, "prev": null}}, {{"id": 1, "op": {op}{reads}'
    with pytest.raises(GraphError, match="a score is of a text"):
        loads(f'{{"plait_graph": 5, "program": "p", "nodes": [{nodes}, "prev": 0}}]}}')
