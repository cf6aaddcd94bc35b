"""Several samples of one gen: branches that share the prefix, and a list by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import plait
from plait import (
    Backend,
    InvalidArgument,
    NodeMeta,
    State,
    Truncated,
    assistant,
    function,
    gen,
    user,
)
from plait.lang.expr import Expr


@pytest.fixture(scope="module")
def backend() -> Iterator[Backend]:
    opened = plait.scripted(lambda prompt: {c: 0.2 for c in "abcde"})
    yield opened
    opened.close()


# D02
def test_samples_are_a_list_and_the_text_goes_on_from_none_of_them(backend: Backend) -> None:
    @function
    def program(s: State) -> None:
        s += "Q:"
        s += "A:" + gen("a", n=3, max_tokens=4)
        s += "|"
        s += gen("b", max_tokens=2)

    result = program.run(backend=backend, seed=1)
    samples = result["a"]
    assert [len(sample) for sample in samples] == [4, 4, 4]
    assert len(set(samples)) == 3
    assert result.text() == f"Q:|{result['b']}"
    assert program.run(backend=backend, seed=1)["a"] == samples


def test_samples_are_those_of_a_fork(backend: Backend) -> None:
    @function
    def short(s: State) -> None:
        s += user("Q") + assistant(gen("a", n=4, max_tokens=4))

    @function
    def long(s: State) -> None:
        s += user("Q")
        forks = s.fork(4)
        forks += assistant(gen("a", max_tokens=4))
        forks.join()

    # The whole statement is in the branches, here with the user's turn.
    assert len(short.run(backend=backend, seed=2)["a"]) == 4

    @function
    def apart(s: State) -> None:
        s += user("Q")
        s += assistant(gen("a", n=4, max_tokens=4))

    one, other = apart.run(backend=backend, seed=2), long.run(backend=backend, seed=2)
    assert one["a"] == other["a"]
    assert one.messages() == other.messages() == [{"role": "user", "content": "Q"}]
    assert one.graph.forks == other.graph.forks


def test_a_program_goes_on_from_the_sample_that_it_appends(backend: Backend) -> None:
    @function
    def program(s: State) -> None:
        s += "Q:"
        with s.assistant():
            s += gen("a", n=3, max_tokens=4)
            s += max(s["a"])
        s += "!"

    result = program.run(backend=backend, seed=3)
    assert max(result["a"]) in result.text()


def test_the_prompt_of_samples_is_computed_once(backend: Backend) -> None:
    @function
    def program(s: State) -> None:
        s += "a prompt that is longer than a block of the cache" * 3
        s += gen("a", n=8, max_tokens=4)

    usage = program.run(backend=backend).usage
    assert usage.prompt_tokens == 8 * 147
    assert usage.cached_tokens == 7 * 146  # the last token of each has to be computed


def test_a_seed_counts_up_from_sample_to_sample(backend: Backend) -> None:
    @function
    def several(s: State) -> None:
        s += "Q:" + gen("a", n=3, seed=7, max_tokens=6)

    @function
    def one(s: State, seed: int) -> None:
        s += "Q:" + gen("a", seed=seed, max_tokens=6)

    alone = [one.run(seed=seed, backend=backend)["a"] for seed in (7, 8, 9)]
    assert several.run(backend=backend)["a"] == alone


def test_what_is_known_of_each_sample_can_be_read(backend: Backend) -> None:
    @function
    def program(s: State) -> list[int]:
        s += "Q:" + gen("a", n=3, max_tokens=4)
        with pytest.raises(InvalidArgument, match=r'metas\("a"\)'):
            s.meta("a")
        return [meta.usage.output_tokens for meta in s.metas("a") if isinstance(meta, NodeMeta)]

    result = program.run(backend=backend)
    assert result.value == [4, 4, 4]
    assert [meta and meta.finish_reason for meta in result.metas("a")] == ["length"] * 3
    with pytest.raises(InvalidArgument, match=r'metas\("a"\)'):
        result.meta("a")


def test_one_sample_is_a_list_of_one(backend: Backend) -> None:
    @function
    def program(s: State) -> None:
        s += "Q:" + gen("a", n=1, max_tokens=3)

    assert len(program.run(backend=backend)["a"]) == 1


def test_branches_take_samples_of_their_own(backend: Backend) -> None:
    @function
    def program(s: State) -> list[list[str]]:
        s += "Q:"
        forks = s.fork(2)
        forks += gen("a", n=3, max_tokens=4)
        return [branch["a"] for branch in forks]

    found = program.run(backend=backend, seed=5).value
    assert [len(samples) for samples in found] == [3, 3]
    assert found[0] != found[1]


def test_a_typed_sample_that_is_cut_is_an_error_of_the_list(backend: Backend) -> None:
    @function
    def program(s: State) -> None:
        s += "Q:" + gen("a", int, n=2, max_tokens=1)
        with pytest.raises(Truncated):
            assert s["a"] is None
        raise KeyError("seen")

    with pytest.raises(KeyError, match="seen"):
        program.run(backend=backend)


def test_a_stream_has_the_samples_by_branch(backend: Backend) -> None:
    @function
    def program(s: State) -> None:
        s += "Q:" + gen("a", n=2, max_tokens=3)

    events = list(program.stream(backend=backend, seed=1))
    assert {event.branch for event in events} == {"0.0", "0.1"}
    texts = {e.branch: e.parsed for e in events if e.kind == "end"}
    assert list(texts.values()) == program.run(backend=backend, seed=1)["a"]


def test_samples_are_traced_as_the_fork_that_they_are() -> None:
    @function
    def program(s: State) -> None:
        s += "Q:" + gen("a", n=3)
        s += "|" + gen("b")

    graph = program.trace()
    assert [(fork.path, fork.width) for fork in graph.forks] == [("0", 3)]
    assert len(graph.nodes) == 8


def test_a_later_gen_of_the_name_is_the_variable_then(backend: Backend) -> None:
    @function
    def program(s: State) -> None:
        s += "Q:" + gen("a", n=2, max_tokens=3)
        s += gen("a", max_tokens=3)

    assert isinstance(program.run(backend=backend)["a"], str)


@pytest.mark.parametrize(
    ("make", "part"),
    [
        (lambda: gen("a", n=0), "n=0"),
        (lambda: gen("a", n=True), "n=True"),
        (lambda: gen(n=2), "give the gen one"),
        (lambda: gen("a", n=2, temperature=0), "at temperature=0 all samples are the same"),
        (lambda: gen("a", n=2) + gen("b", n=3), "n=2 and n=3 in one expression"),
    ],
)
def test_samples_without_meaning_are_refused_at_the_line(
    make: Callable[[], Expr], part: str
) -> None:
    with pytest.raises(InvalidArgument) as caught:
        make()
    assert part in str(caught.value)
    assert "test_samples.py" in str(caught.value)


def test_a_name_that_the_branch_has_set_is_refused(backend: Backend) -> None:
    @function
    def program(s: State) -> None:
        s += "Q:" + gen("a", max_tokens=1)
        s += gen("a", n=2)

    with pytest.raises(InvalidArgument, match='this branch has set "a" itself'):
        program.run(backend=backend)
