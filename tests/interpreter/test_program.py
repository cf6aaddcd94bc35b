"""Programs on the stand-in model: run, options, results, batches."""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Iterator

import pytest

from plait import (
    Backend,
    ContextExceeded,
    Function,
    InvalidArgument,
    RoleError,
    State,
    UnknownVariable,
    assistant,
    function,
    gen,
    scripted,
    select,
    set_default_backend,
    user,
)


def replies(prompt: str) -> str:
    """Answer by how the prompt ends."""
    for ending, reply in (("two: ", "second"), ("Parent Child", "!"), ("b: ", "B")):
        if prompt.endswith(ending):
            return reply
    return "first"


@pytest.fixture(scope="module")
def backend() -> Iterator[Backend]:
    opened = scripted(replies, max_context=4096)
    yield opened
    opened.close()


@function
def two(s: State, word: str = "one") -> str:
    """Say two things."""
    s += f"{word}: " + gen("a", max_tokens=8, temperature=0)
    s += " two: " + gen("b", max_tokens=8, temperature=0)
    return s["a"] + s["b"]


def test_a_run_gives_value_variables_text_and_usage(backend: Backend) -> None:
    result = two.run("one", backend=backend)
    assert result.value == "firstsecond"
    assert (result["a"], result["b"]) == ("first", "second")
    assert result.variables == ("a", "b")
    assert result.text() == "one: first two: second"
    assert result.ok
    assert result.usage.output_tokens >= len("firstsecond")
    assert result.meta("b").finish_reason == "stop"


def test_an_unknown_name_lists_the_known(backend: Backend) -> None:
    result = two.run(backend=backend)
    with pytest.raises(UnknownVariable, match=r"no variable \"c\".*a, b"):
        result["c"]


def test_a_fork_may_come_first_or_after_nothing(backend: Backend) -> None:
    @function
    def first(s: State) -> None:
        forks = s.fork(2)
        forks += gen("x", max_tokens=4, temperature=0)
        forks.join()

    @function
    def after_empty(s: State) -> None:
        s += ""
        forks = s.fork(2)
        forks += "b: " + gen("x", max_tokens=4, temperature=0)
        forks.join()

    @function
    def nothing(s: State) -> str:
        s.fork(3).join()
        return s.text()

    assert list(first.run(backend=backend)["x"]) == ["firs", "firs"]
    assert list(after_empty.run(backend=backend)["x"]) == ["B", "B"]
    assert nothing.run(backend=backend).value == ""
    assert two.run(backend=backend)["b"] == "second"


@pytest.mark.parametrize("n", [1, 2])
def test_a_fork_sees_the_open_turn_and_the_pending_gen(n: int, backend: Backend) -> None:
    @function
    def turns(s: State) -> list[dict[str, str]]:
        s += user("Parent ")
        with s.assistant():
            branch = s.fork(n)[0]
            branch += "Child"
            branch.end_turn()
        return branch.messages()

    @function
    def pending(s: State) -> tuple[str, str]:
        s += "P" + gen("a", max_tokens=8, temperature=0)
        branch = s.fork(n)[0]
        return branch.text(), branch["a"]

    messages = [
        {"role": "user", "content": "Parent "},
        {"role": "assistant", "content": "Child"},
    ]
    assert turns.run(backend=backend).value == messages
    assert pending.run(backend=backend).value == ("Pfirst", "first")


def test_an_exception_in_a_role_closes_the_role(backend: Backend) -> None:
    @function
    def careful(s: State) -> None:
        try:
            with s.user():
                s += "hello"
                raise ValueError("mine")
        except ValueError:
            pass
        with s.assistant():
            s += gen("a", max_tokens=8, temperature=0)

    @function
    def careless(s: State) -> None:
        with s.user():
            s += "hello"
            raise ValueError("mine")

    @function
    def nested(s: State) -> None:
        with s.user(), s.assistant():
            s += "inside"

    result = careful.run(backend=backend)
    assert [m["role"] for m in result.messages()] == ["user", "assistant"]
    assert result["a"] == "first"
    with pytest.raises(ValueError, match="mine"):
        careless.run(backend=backend)
    with pytest.raises(RoleError, match=r"test_program\.py"):
        nested.run(backend=backend)


def test_text_is_never_read_as_a_template(backend: Backend) -> None:
    raw = '{"a": {}} {question} {0} %s $x {{y}} <|im_end|>'

    @function
    def quotes(s: State, q: str) -> str:
        s += q
        s += gen("name", max_tokens=8, temperature=0)
        return f"v={s['name']}"

    @function
    def formats(s: State) -> None:
        s += f"ask {gen('x')} now"

    result = quotes.run(q=raw, backend=backend)
    assert result.text() == f"{raw}first"
    assert result.value == "v=first"
    with pytest.raises(TypeError, match=r"test_program\.py"):
        formats.run(backend=backend)


def test_branches_keep_their_names_and_the_parent_its_own(backend: Backend) -> None:
    @function
    def same_name(s: State) -> tuple[str, list[str], list[str]]:
        s += "one: " + gen("o", max_tokens=8, temperature=0)
        forks = s.fork(4)

        def work(i: int, branch: State) -> None:
            time.sleep((4 - i) * 0.002)
            branch += f"{i} two: " * (i % 2) + gen("o", max_tokens=i + 1, temperature=0)

        threads = [
            threading.Thread(target=work, args=(i, branch)) for i, branch in enumerate(forks)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        joined = forks.join()
        return s["o"], joined["o"], [branch["o"] for branch in forks]

    for _ in range(20):
        result = same_name.run(backend=backend)
        expected = ["f", "se", "fir", "seco"]
        assert result.value == ("first", expected, expected)
        assert result["o"] == "first"


def test_joined_names_are_lists_by_branch(backend: Backend) -> None:
    @function
    def joins(s: State) -> None:
        s += "one: "
        forks = s.fork(3)
        forks[0] += gen("x", max_tokens=8, temperature=0)
        forks[2] += "two: " + gen("x", max_tokens=8, temperature=0)
        forks.join()

    assert list(joins.run(backend=backend)["x"]) == ["first", None, "second"]


def test_options_and_parameters_of_the_same_name_are_apart(backend: Backend) -> None:
    @function
    def weather(s: State, temperature: str, seed: int = 3) -> str:
        s += f"It is {temperature} {seed}: " + gen("a", max_tokens=8)
        return s["a"]

    program = weather.options(temperature=0, backend=backend, seed=1)
    result = program.run(temperature="hot", seed=5)
    assert result.text() == "It is hot 5: first"
    assert result.seed == 1
    assert weather.run("hot", backend=backend, max_tokens=0).text() != result.text()


def test_an_argument_of_the_wrong_name_lists_the_right_ones(backend: Backend) -> None:
    with pytest.raises(InvalidArgument, match=r"wrod.*word"):
        two.run(wrod="x", backend=backend)


def test_zero_is_a_value() -> None:
    @function
    def letters(s: State, n: int) -> None:
        s += "x" + gen("a", max_tokens=n)

    with_weights = scripted(lambda text: {"a": 0.6, "b": 0.4})
    greedy = letters.options(backend=with_weights, temperature=0.0)
    assert {greedy.run(8)["a"] for _ in range(20)} == {"aaaaaaaa"}
    assert letters.run(0, backend=with_weights)["a"] == ""
    drawn = letters.options(backend=with_weights, temperature=1)
    assert drawn.run(40, seed=0)["a"] == drawn.run(40, seed=0)["a"]
    unseeded = [drawn.run(40) for _ in range(2)]
    assert unseeded[0]["a"] != unseeded[1]["a"]
    assert drawn.run(40, seed=unseeded[0].seed)["a"] == unseeded[0]["a"]
    with_weights.close()


def test_nothing_caps_a_gen_in_silence() -> None:
    @function
    def writes(s: State) -> None:
        s += "x" + gen("a", temperature=0)

    backend = scripted(lambda text: "y" * 300)
    result = writes.run(backend=backend)
    assert result["a"] == "y" * 300
    assert result.meta("a").finish_reason == "stop"
    capped = writes.run(backend=backend, max_tokens=5)
    assert (capped["a"], capped.meta("a").finish_reason) == ("yyyyy", "length")
    backend.close()


class Speaker:
    """Programs as methods."""

    def __init__(self, k: str) -> None:
        self.k = k

    @function
    def speak(self, s: State) -> str:
        s += self.k + gen("a", max_tokens=8, temperature=0)
        return s["a"]


def make(source: str) -> Function:
    """Define a program by `exec`."""
    names: dict[str, object] = {}
    exec(source, {"function": function, "gen": gen}, names)
    made = names["f"]
    assert isinstance(made, Function)
    return made


SOURCE = """
@function
def f(anything):
    anything += "one: " + gen("a", max_tokens=8, temperature=0)
    return anything["a"]
"""


def test_programs_need_no_source_and_no_module(backend: Backend) -> None:
    assert make(SOURCE).run(backend=backend).value == "first"
    assert make(SOURCE.replace("def", "async def")).run(backend=backend).value == "first"
    assert Speaker("two: ").speak.run(backend=backend).value == "second"
    words = [function(lambda s, word=word: two(s, word)) for word in ("x", "y")]
    assert words[1].run(backend=backend).text() == "y: first two: second"
    with pytest.raises(TypeError, match="another process"):
        copy.copy(words[0])  # asks what another process would be sent
    assert copy.copy(two) is two
    seeded = copy.copy(two.options(seed=3))
    assert seeded.run(backend=backend).seed == 3


def test_programs_call_each_other(backend: Backend) -> None:
    @function
    def ping(s: State, depth: int) -> None:
        s += "ping " + gen(f"ping_{depth}", max_tokens=2, temperature=0)
        if depth:
            pong(s, depth - 1)

    @function
    def pong(s: State, depth: int) -> None:
        s += "pong " + gen(f"pong_{depth}", max_tokens=2, temperature=0)
        if depth:
            ping(s, depth - 1)

    assert ping.run(3, backend=backend).variables == ("ping_3", "pong_2", "ping_1", "pong_0")


@pytest.mark.slow
def test_three_thousand_pairs_are_one_program(backend: Backend) -> None:
    @function
    def chain(s: State) -> None:
        for i in range(3000):
            s += "." + gen(f"a{i}", max_tokens=0)

    start = time.monotonic()
    assert chain.run(backend=backend).text() == "." * 3000
    assert time.monotonic() - start < 20


@pytest.mark.slow
def test_a_program_with_1600_branches_needs_few_threads(backend: Backend) -> None:
    num_threads: list[int] = []

    @function
    def wide(s: State) -> int:
        s += "one: "
        forks = s.fork(40)
        for outer in forks:
            outer += gen("o", max_tokens=1, temperature=0)
            for inner in outer.fork(40):
                inner += "b: " + gen("i", max_tokens=1, temperature=0)
        forks.join()
        num_threads.append(threading.active_count())
        return len(forks)

    result = wide.run(backend=backend)
    assert list(result["o"]) == ["f"] * 40
    assert sum(node.branch.count("/") for node in result.graph.nodes) == 2 * 1600
    assert num_threads[0] < 20


def test_an_inner_run_in_a_body_is_a_run_of_its_own(backend: Backend) -> None:
    @function
    def outer(s: State) -> str:
        inner = two.run(backend=backend)
        s += "b: " + gen("x", max_tokens=4, temperature=0)
        return inner["b"] + s["x"]

    results = outer.run_batch([{}] * 20, backend=backend)
    assert [result.value for result in results] == ["secondB"] * 20


def test_the_default_backend_is_the_one_that_was_set(backend: Backend) -> None:
    set_default_backend(backend)
    try:
        assert two.run()["b"] == "second"
        assert two.run_batch([{}])[0]["b"] == "second"
    finally:
        set_default_backend(None)


# Batches


def test_a_batch_keeps_order_and_rows(backend: Backend) -> None:
    @function
    def counts(s: State, i: int, word: str = "w") -> int:
        s += f"{word} {i}: " + gen("a", max_tokens=2, temperature=0)
        return i if s["a"] else -1

    rows: list[dict[str, object]] = [{"i": i} for i in range(50)]
    before = [dict(row) for row in rows]
    results = counts.bind(word="v").run_batch(rows, backend=backend, max_in_flight=7)
    assert [result.value for result in results] == list(range(50))
    assert rows == before
    tuples = counts.run_batch(((i, "t") for i in range(3)), backend=backend)
    assert [result.text()[:4] for result in tuples] == ["t 0:", "t 1:", "t 2:"]
    assert counts.run_batch([]) == []


def test_a_bad_row_loses_no_other(backend: Backend) -> None:
    @function
    def fragile(s: State, i: int) -> int:
        s += "x" * (10_000 if i == 3 else 1) + gen("a", max_tokens=2, temperature=0)
        if i == 1:
            raise ValueError("mine")
        return len(s["a"])

    rows: list[object] = [(0,), (1,), {"j": 2}, (3,), 4, (5,)]
    results = fragile.run_batch(rows, backend=backend)
    assert [result.ok for result in results] == [True, False, False, False, False, True]
    kinds = [type(result.error) for result in results if not result.ok]
    assert kinds == [ValueError, InvalidArgument, ContextExceeded, InvalidArgument]
    with pytest.raises(ValueError, match="mine"):
        results[1]["a"]
    with pytest.raises(ContextExceeded):
        results[3].text()


def test_a_rows_result_depends_on_seed_and_index_alone() -> None:
    @function
    def draws(s: State, i: int) -> str:
        s += "x" + gen("a", max_tokens=30)
        return s["a"]

    backend = scripted(lambda text: {"a": 0.5, "b": 0.5})
    program = draws.options(backend=backend, seed=11)
    big = [result.value for result in program.run_batch([(i,) for i in range(12)])]
    small = program.run_batch([(i,) for i in range(5)], max_in_flight=2)
    assert [result.value for result in small] == big[:5]
    assert len(set(big)) == 12
    assert program.run(0).value == big[0]
    assert program.run(4, seed=small[4].seed).value == big[4]
    backend.close()


@pytest.mark.parametrize("rows", [{"q": 1}, "rows", 3])
def test_what_is_no_list_of_rows_is_refused(rows: object) -> None:
    with pytest.raises(InvalidArgument, match="iterable"):
        two.run_batch(rows)  # type: ignore[arg-type]


def test_the_window_bounds_the_open_rows(backend: Backend) -> None:
    running: list[int] = []
    peak: list[int] = []

    @function
    def row(s: State, i: int) -> None:
        running.append(i)
        peak.append(len(running))
        s += "x" + gen("a", max_tokens=1, temperature=0)
        assert s["a"]
        running.remove(i)

    results = row.run_batch([(i,) for i in range(40)], backend=backend, max_in_flight=5)
    assert all(result.ok for result in results)
    assert max(peak) == 5


def test_an_iterable_that_raises_ends_the_batch(backend: Backend) -> None:
    def rows() -> Iterator[tuple[str]]:
        yield ("a",)
        raise OSError("the file is gone")

    with pytest.raises(OSError, match="gone"):
        two.run_batch(rows(), backend=backend)


@pytest.mark.slow
def test_two_thousand_rows_with_a_break_each_need_few_threads(backend: Backend) -> None:
    threads: set[int] = set()

    @function
    def row(s: State, i: int) -> str:
        s += f"{i}: " + gen("a", max_tokens=2, temperature=0)
        first = s["a"]
        threads.add(threading.active_count())
        s += "/" + gen("b", max_tokens=1, temperature=0)
        return first + s["b"]

    results = row.run_batch([(i,) for i in range(2000)], backend=backend)
    assert all(result.ok for result in results)
    assert max(threads) < 20


def test_select_and_turns_work_in_a_batch(backend: Backend) -> None:
    @function
    def chooses(s: State, q: str) -> str:
        s += user(q)
        s += assistant(select("a", ["first", "third"]))
        return s["a"]

    results = chooses.run_batch([("x",), ("y",)], backend=backend)
    assert [result.value for result in results] == ["first", "first"]
    assert sum(results[0].meta("a").probabilities.values()) == pytest.approx(1)
