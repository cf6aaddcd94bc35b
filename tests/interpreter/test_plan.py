"""Plans: the same tokens as a run, without one."""

from __future__ import annotations

import string
from collections.abc import Callable, Iterator, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait import (
    Function,
    InvalidArgument,
    ModelError,
    State,
    assistant,
    function,
    gen,
    plan,
    scripted,
    select,
    system,
    user,
)
from plait.interpreter.backends.scripted import ScriptedBackend
from plait.interpreter.planning.filler import Filler
from plait.interpreter.planning.tree import PrefixTree

CONTEXT = 2048
LETTERS = dict.fromkeys(string.ascii_lowercase, 1 / 26)  # each sample is different


@pytest.fixture
def backend() -> Iterator[ScriptedBackend]:
    """A model with an empty cache, whose outputs end where they have to."""
    opened = scripted(lambda text: LETTERS, max_context=CONTEXT, kv_cache_tokens=60_000)
    assert isinstance(opened, ScriptedBackend)
    yield opened
    opened.close()


@function
def judge(s: State, essay: str) -> None:
    s += system("You grade.") + user(essay)
    forks = s.fork(3)
    forks += lambda i: user(f"Dimension {i}") + assistant(gen("reason", max_tokens=12))
    forks += lambda i: user("A grade?") + assistant(select("grade", ["good", "bad", "badly"]))
    forks.join()
    s += assistant(
        "They say " + forks[0].ref("reason") + forks[1].ref("grade") + gen("sum", max_tokens=9)
    )


@function
def tree(s: State, essay: str) -> None:
    s += essay
    for branch in s.fork(3):
        branch += gen("plan", max_tokens=10)
        for inner in branch.fork(2):
            inner += " and then " + gen("work", max_tokens=10)
    s += gen("end", max_tokens=1)


@function
def chain(s: State, essay: str) -> None:
    s += essay
    for i in range(4):
        s += f"\n{i}: " + gen(f"step{i}", max_tokens=6, temperature=0.5)
        s += gen(max_tokens=3)
    s += "so " + s.ref("step0")
    s += gen("kind", choices=["a", "bb", "ccc"])


PROGRAMS = (judge, tree, chain)
ROWS = [
    {"essay": f"An essay about {topic}, of some length."} for topic in ("tea", "trains", "teas")
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_a_plan_has_the_tokens_that_a_batch_measures(
    program: Function, backend: ScriptedBackend
) -> None:
    made = plan(program, rows=ROWS, backend=backend)
    results = program.run_batch(ROWS, backend=backend, seed=1)
    prompt = sum(result.usage.prompt_tokens for result in results)
    cached = sum(result.usage.cached_tokens for result in results)
    assert made.num_rows == len(ROWS)
    assert made.prompt_tokens == pytest.approx(prompt, rel=0.02)
    assert made.hit_rate == pytest.approx(cached / prompt, abs=0.01)
    assert made.output_tokens >= sum(result.usage.output_tokens for result in results)
    assert made.is_complete
    assert not made.failures
    assert not made.breaks


def test_a_plan_has_each_call_of_a_run(backend: ScriptedBackend) -> None:
    made = plan(judge, ROWS[0], backend=backend)
    result = judge.run(**ROWS[0], backend=backend, seed=1)
    assert (made.num_gens, made.num_selects) == (4, 3)
    assert [call.node for call in made.calls] == [
        node.id for node in result.graph.nodes if type(node.op).__name__ in ("Gen", "Select")
    ]
    summary = made.calls[-1]
    assert (summary.kind, summary.name, summary.row) == ("gen", 'gen("sum")', 0)
    assert str(summary.where).startswith("test_plan.py:")
    # It quotes the longest choice, since any may win.
    assert summary.prompt_tokens >= result.meta("sum").usage.prompt_tokens


def test_what_each_gen_writes_can_be_given(backend: ScriptedBackend) -> None:
    most, less = (plan(chain, ROWS[0], backend=backend, output_tokens=n) for n in (None, 2))
    assert most.output_tokens == 4 * (6 + 3) + 3
    assert less.output_tokens == 4 * (2 + 2) + 2
    assert less.prompt_tokens < most.prompt_tokens


def test_run_options_count(backend: ScriptedBackend) -> None:
    @function
    def free(s: State) -> None:
        s += "Say: " + gen("x")

    made = plan(free, backend=backend)
    assert (made.num_unbounded, made.calls[0].is_bounded) == (1, False)
    assert "1 gens without max_tokens" in str(made)
    bound = plan(free.options(max_tokens=7), backend=backend)
    assert (bound.output_tokens, bound.num_unbounded) == (7, 0)


def test_equal_questions_at_temperature_0_get_one_answer(backend: ScriptedBackend) -> None:
    def asks(temperature: float) -> Function:
        @function
        def twins(s: State) -> None:
            forks = s.fork(2)
            forks += "Why is it so?" + gen(max_tokens=20, temperature=temperature)
            forks += " And then?" + gen(max_tokens=20, temperature=temperature)

        return twins

    greedy, drawn = (plan(asks(t), backend=backend) for t in (0.0, 1.0))
    assert greedy.cached_tokens > drawn.cached_tokens
    assert greedy.all_kv_tokens < drawn.all_kv_tokens


def test_kv_at_one_time_is_what_runs_beside_each_other(backend: ScriptedBackend) -> None:
    @function
    def apart(s: State) -> None:
        first, second = s.fork(2)
        first += "x" * 100 + gen("a", max_tokens=10)
        second += "y" * 50 + first.ref("a") + gen("b", max_tokens=10)

    made = plan(apart, backend=backend)
    # The last output token of each is never computed.
    assert made.peak_kv_tokens == 100 + 10 - 1
    assert made.all_kv_tokens == 109 + 50 + 10 + 10 - 1


def test_breaks_and_an_early_end_are_told(backend: ScriptedBackend) -> None:
    @function
    def decides(s: State) -> None:
        s += "q" + gen("a", max_tokens=2)
        s += f"so {s['a']}"
        if s["a"] == "x":
            s += gen("b", max_tokens=2)

    made = plan(decides, backend=backend)
    assert len(made.calls) == 1
    assert not made.is_complete
    assert [found.name for found in made.breaks] == ["a", "a"]
    assert "break at test_plan.py:" in str(made)
    assert "incomplete" in str(made)


def test_what_does_not_fit_fails_in_the_plan(backend: ScriptedBackend) -> None:
    made = plan(chain, rows=[{"essay": "x" * CONTEXT}, ROWS[0]], backend=backend)
    (failure,) = made.failures
    assert failure.row == 0
    assert f"the context holds {CONTEXT}" in failure.message
    assert "fails at test_plan.py:" in str(made)
    assert {call.row for call in made.calls} == {1}


def test_a_plan_of_more_rows_than_are_in_flight_has_them_all(backend: ScriptedBackend) -> None:
    made = plan(chain, rows=({"essay": f"essay {i}"} for i in range(300)), backend=backend)
    assert made.num_rows == 300
    assert len(made.calls) == 300 * 9
    assert [call.row for call in made.calls] == sorted(call.row for call in made.calls)


@pytest.mark.parametrize(
    ("make", "fault"),
    [
        (lambda b: plan(chain, backend=b), "missing: essay"),
        (lambda b: plan(chain, rows=[{"essays": ""}], backend=b), "unknown: essays"),
        (
            lambda b: plan("chain", backend=b),  # type: ignore[arg-type]
            r"plan\('chain'\): pass a program",
        ),
        (lambda b: plan(chain, ROWS[0], backend=b, output_tokens=-1), "output_tokens=-1"),
    ],
)
def test_what_no_plan_can_be_made_of_is_refused(
    make: Callable[[ScriptedBackend], object], fault: str, backend: ScriptedBackend
) -> None:
    with pytest.raises(InvalidArgument, match=fault):
        make(backend)


def test_a_model_that_is_not_there_is_named() -> None:
    with pytest.raises(ModelError, match="no model 'nowhere'"):
        plan(chain, ROWS[0], model="nowhere")


def test_a_backend_elsewhere_has_no_tokenizer_here() -> None:
    class Elsewhere:
        capabilities = open = close = lambda self: None

    with pytest.raises(InvalidArgument, match="Elsewhere has its model in another process"):
        plan(chain, ROWS[0], backend=Elsewhere())  # type: ignore[arg-type]


tokens = st.lists(st.integers(0, 2), max_size=6)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.booleans(), tokens), max_size=8))
def test_the_tree_counts_what_a_set_of_prefixes_counts(steps: list[tuple[bool, list[int]]]) -> None:
    tree, known = PrefixTree(), set[tuple[int, ...]]()
    for is_new_round, ids in steps:
        if is_new_round:
            tree.start_round()
        prefixes = [tuple(ids[: i + 1]) for i in range(len(ids))]
        assert tree.match(ids) == sum(prefix in known for prefix in prefixes)
        tree.insert(ids)
        known.update(prefixes)
        assert len(tree) == len(known)


def test_a_round_counts_a_shared_prefix_once() -> None:
    tree = PrefixTree()
    tree.insert([1, 2, 3])
    tree.start_round()
    for ids in ([1, 2, 4], [1, 2, 5]):
        tree.match(ids)
        tree.insert(ids)
    assert tree.num_touched == 4


def test_made_up_outputs_differ_and_stay_the_same_tokens(backend: ScriptedBackend) -> None:
    tokenizer = backend.model.tokenizer
    filler = Filler(tokenizer)
    made: Mapping[int, tuple[tuple[int, ...], str]] = {i: filler.output(i, 5) for i in range(1000)}
    assert len(set(made.values())) == 1000
    for ids, text in made.values():
        assert len(ids) == 5
        assert tuple(tokenizer.encode(text)) == ids
