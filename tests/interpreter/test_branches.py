"""Branches with bodies: they run side by side, and their failures are values."""

from __future__ import annotations

import asyncio
import threading

import pytest

from plait import (
    Backend,
    Cancelled,
    Forks,
    InvalidArgument,
    NodeError,
    State,
    TimedOut,
    function,
    gen,
    retry,
)
from plait.interpreter.tasks import await_only


def nap(seconds: float) -> None:
    """Wait on the loop, as a gen does."""
    await_only(asyncio.sleep(seconds))


def say(branch: State, i: int) -> str:
    branch += f"{i} two: " + gen("x", max_tokens=8, temperature=0)
    text = branch["x"]
    branch += " b: " + gen("y", max_tokens=8, temperature=0)
    return f"{i}{text}{branch['y']}"


def odd_fails(branch: State, i: int) -> int:
    branch += "b: " + gen("x", max_tokens=8, temperature=0)
    assert branch["x"] == "B"
    if i % 2:
        raise ValueError(f"mine {i}")
    return i


def test_bodies_give_variables_and_values_by_index(backend: Backend) -> None:
    @function
    def program(s: State) -> object:
        forks = s.fork(3, say)
        return forks.join()["x"], forks.values

    expected = (["second"] * 3, [f"{i}secondB" for i in range(3)])
    result = program.run(backend=backend)
    assert result.value == expected
    assert result["y"] == ["B"] * 3
    assert program.run_batch([{}] * 3, backend=backend)[2].value == expected
    assert asyncio.run(program.arun(backend=backend)).value == expected


def test_a_branch_that_waits_stops_no_sibling(backend: Backend) -> None:
    @function
    def program(s: State) -> list[int]:
        order: list[int] = []

        def body(branch: State, i: int) -> None:
            for _ in range(3):
                nap(0.002 if i else 0.05)
            order.append(i)

        s.fork(2, body).join()
        return order

    assert program.run(backend=backend).value == [1, 0]


def test_bodies_may_be_coroutines_and_programs(backend: Backend) -> None:
    async def body(branch: State) -> str:
        branch += "b: " + gen("x", max_tokens=8, temperature=0)
        await asyncio.gather(asyncio.sleep(0), asyncio.sleep(0.001))
        return str(branch["x"])

    @function
    def sub(s: State, i: int) -> int:
        s += "two: " + gen("x", max_tokens=8, temperature=0)
        return i

    @function
    def program(s: State) -> object:
        return s.fork(2, body).values, s.fork(2, sub).values, s.map(sub, "ab").values

    assert program.run(backend=backend).value == (["B", "B"], [0, 1], ["a", "b"])


def test_a_map_over_nothing_has_no_branches(backend: Backend) -> None:
    @function
    def program(s: State) -> object:
        forks = s.map(say, [])
        return len(forks), forks.values, dict(forks.join()), forks.outcomes

    assert program.run(backend=backend).value == (0, [], {}, ())


def test_what_is_not_joined_has_ended_when_the_run_ends(backend: Backend) -> None:
    ended: list[int] = []

    @function
    def program(s: State) -> None:
        def body(branch: State, i: int) -> None:
            nap(0.01)
            branch += "b: " + gen("x", max_tokens=8, temperature=0)
            ended.append(i)

        s.fork(3, body)

    result = program.run(backend=backend)
    assert sorted(ended) == [0, 1, 2]
    assert result["x"] == ["B"] * 3


def test_the_first_failure_is_raised_by_the_join_and_ends_the_siblings(backend: Backend) -> None:
    unwound: list[int] = []

    @function
    def program(s: State) -> None:
        def body(branch: State, i: int) -> None:
            if i == 1:
                nap(0.005)
                raise ValueError("mine")
            try:
                nap(60)
            finally:
                unwound.append(i)

        forks = s.fork(3, body)
        with pytest.raises(ValueError, match="mine") as caught:
            forks.join()
        assert any("in branch 0.1, test_branches.py:" in note for note in caught.value.__notes__)

    assert program.run(backend=backend).ok
    assert sorted(unwound) == [0, 2]


def test_a_failure_that_nobody_joins_is_the_runs(backend: Backend) -> None:
    @function
    def program(s: State) -> None:
        s.fork(2, odd_fails)

    with pytest.raises(ValueError, match="mine 1"):
        program.run(backend=backend)


@pytest.mark.parametrize("policy", ["skip", "collect"])
def test_a_failed_branch_keeps_its_place(policy: str, backend: Backend) -> None:
    @function
    def program(s: State) -> object:
        forks = s.fork(4, odd_fails, on_error=policy)  # type: ignore[arg-type]
        return forks.values, forks.join()["x"]

    result = program.run(backend=backend)
    for values, good in ((result.value[0], [0, 2]), (result.value[1], "BB"), (result["x"], "BB")):
        assert [values[0], values[2]] == list(good)
        if policy == "skip":
            assert values[1] is values[3] is None
        else:
            assert [str(values[1]), str(values[3])] == ["mine 1", "mine 3"]
    assert [out.value for out in result.outputs()] == ["B"] * 4


def test_a_join_may_give_exceptions_in_their_places(backend: Backend) -> None:
    @function
    def program(s: State) -> list[object]:
        s += "b: "
        forks = s.fork(2)
        forks[0] += gen("x", max_tokens=8, temperature=0)
        forks[1] += "x" * 9000 + gen("x", max_tokens=8)
        found: list[object] = forks.join(return_exceptions=True)["x"]
        return found

    good, bad = program.run(backend=backend).value
    assert good == "B"
    assert isinstance(bad, NodeError)


def test_a_retried_branch_begins_afresh_with_other_draws(backend: Backend) -> None:
    @function
    def program(s: State) -> object:
        s += "b: "
        tries: list[str] = []

        def body(branch: State) -> str:
            tries.append(branch.text())
            branch += gen("x", max_tokens=8, temperature=0)
            if len(tries) < 3:
                raise ValueError(branch["x"])
            return branch.text()

        forks = s.fork(1, body, on_error=retry(2))
        return forks.values, tries, forks.outcomes[0].num_attempts, forks[0]["x"]

    result = program.run(backend=backend)
    assert result.value == (["b: B"], ["b: "] * 3, 3, "B")
    assert result["x"] == ["B"]


def test_what_follows_spent_retries_is_the_policys(backend: Backend) -> None:
    def body(branch: State) -> None:
        raise ValueError("always")

    @function
    def program(s: State) -> object:
        with pytest.raises(ValueError, match="always"):
            s.fork(1, body, on_error=retry(1)).join()
        return s.fork(2, body, on_error=retry(1, then="skip")).values

    assert program.run(backend=backend).value == [None, None]


def test_a_time_limit_ends_an_attempt(backend: Backend) -> None:
    @function
    def program(s: State) -> object:
        def body(branch: State, i: int) -> int:
            nap(60 if i else 0)
            return i

        return s.fork(2, body, timeout=0.02, on_error="collect").outcomes

    fast, slow = program.run(backend=backend).value
    assert fast.value == 0
    assert isinstance(slow.error, TimedOut)
    assert "0.02 s" in str(slow.error)


def test_the_first_to_finish_are_given_and_the_rest_cancelled(backend: Backend) -> None:
    @function
    def program(s: State) -> tuple[list[int], list[object], Forks]:
        def body(branch: State, i: int) -> int:
            branch += "b: " + gen("x", max_tokens=8, temperature=0)
            nap((60, 0.03, 60, 0.001)[i])
            return i

        forks = s.fork(4, body)
        first = forks.first(2)
        return [outcome.value for outcome in first], forks.join()["x"], forks

    result = program.run(backend=backend)
    values, joined, forks = result.value
    assert values == [3, 1]
    assert joined == result["x"] == [None, "B", None, "B"]
    assert [type(forks.outcomes[i].error) for i in (0, 2)] == [Cancelled, Cancelled]


def test_one_branch_can_be_cancelled(backend: Backend) -> None:
    @function
    def program(s: State) -> object:
        forks = s.fork(2, lambda branch, i: nap(60 * i) or i)  # type: ignore[func-returns-value]
        forks[1].cancel()
        with pytest.raises(InvalidArgument, match="no branch"):
            s.cancel()
        return forks.values

    assert program.run(backend=backend).value == [0, None]


def test_a_body_that_fails_ends_its_branches(backend: Backend) -> None:
    unwound: list[int] = []

    @function
    def program(s: State) -> None:
        def leaf(branch: State, i: int) -> None:
            try:
                nap(60)
            finally:
                unwound.append(i)

        s.fork(2, leaf)
        nap_here = s.fork(1, lambda branch: nap(0.002))
        nap_here.join()
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        program.run(backend=backend)
    assert sorted(unwound) == [0, 1]


def test_a_graph_does_not_depend_on_time(backend: Backend) -> None:
    def program_with(naps: tuple[float, ...]) -> object:
        @function
        def program(s: State) -> None:
            def body(branch: State, i: int) -> None:
                nap(naps[i])
                branch += f"{i} b: " + gen("x", max_tokens=8, temperature=0)
                nap(naps[i])
                branch.fork(2, lambda leaf: leaf.__iadd__("two: " + gen("y", max_tokens=4)))

            forks = s.fork(3, body)
            forks.join()
            s += "end" + gen("z", max_tokens=2, temperature=0)

        result = program.run(backend=backend, seed=5)
        return result.graph.digest(), [(out.branch, out.value) for out in result.outputs()]

    assert program_with((0, 0.02, 0.01)) == program_with((0.02, 0, 0.01))


def test_a_trace_has_the_graph_of_a_run(backend: Backend) -> None:
    @function
    def program(s: State) -> None:
        def body(branch: State, i: int) -> None:
            branch += f"{i} b: " + gen("x", max_tokens=8, temperature=0)

        s += "go "
        forks = s.fork(3, body)
        s += "then " + gen("z", max_tokens=2, temperature=0)
        forks.join()

    graph = program.trace()
    assert graph.is_complete
    assert program.run(backend=backend).graph.digest() == graph.digest()


def test_a_map_over_a_value_is_a_named_break() -> None:
    @function
    def program(s: State) -> None:
        s += gen("x")
        s.map(say, s["x"])

    (found,) = program.trace().breaks
    assert "map() needs the list" in found.reason
    assert found.where is not None
    assert found.where.file == __file__


def test_1600_bodies_need_few_threads(backend: Backend) -> None:
    @function
    def program(s: State) -> int:
        def body(branch: State, i: int) -> int:
            branch += "b: " + gen("x", max_tokens=1, temperature=0)
            assert branch["x"] == "B"
            return threading.active_count()

        counts: list[int] = s.fork(1600, body).values
        return max(counts)

    assert program.run(backend=backend).value < 20


def test_bodies_run_inside_a_running_loop(backend: Backend) -> None:
    @function
    def program(s: State) -> object:
        return s.fork(2, say).values

    async def main() -> object:
        return program.run(backend=backend).value

    assert asyncio.run(main()) == ["0secondB", "1secondB"]


def test_a_body_is_refused_on_a_thread_of_ones_own(backend: Backend) -> None:
    @function
    def program(s: State) -> list[BaseException]:
        errors: list[BaseException] = []

        def work() -> None:
            try:
                s.fork(2, say)
            except Exception as error:
                errors.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return errors

    (error,) = program.run(backend=backend).value
    assert "belong to the thread" in str(error)
