"""Programs on the stand-in model: branches and turns."""

from __future__ import annotations

import threading
import time

import pytest

from plait import Backend, RoleError, State, function, gen, user

from .programs import two


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
    with pytest.raises(RoleError, match=r"test_program_forks\.py"):
        nested.run(backend=backend)


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
