"""Batches: order, rows that fail, seeds, and the window."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from plait import (
    Backend,
    ContextExceeded,
    InvalidArgument,
    State,
    assistant,
    function,
    gen,
    scripted,
    select,
    user,
)

from .programs import two


def test_an_inner_run_in_a_body_is_a_run_of_its_own(backend: Backend) -> None:
    @function
    def outer(s: State) -> str:
        inner = two.run(backend=backend)
        s += "b: " + gen("x", max_tokens=4, temperature=0)
        return str(inner["b"] + s["x"])

    results = outer.run_batch([{}] * 20, backend=backend)
    assert [result.value for result in results] == ["secondB"] * 20


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
        return str(s["a"])

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
        return str(first + s["b"])

    results = row.run_batch([(i,) for i in range(2000)], backend=backend)
    assert all(result.ok for result in results)
    assert max(threads) < 20


def test_select_and_turns_work_in_a_batch(backend: Backend) -> None:
    @function
    def chooses(s: State, q: str) -> str:
        s += user(q)
        s += assistant(select("a", ["first", "third"]))
        return str(s["a"])

    results = chooses.run_batch([("x",), ("y",)], backend=backend)
    assert [result.value for result in results] == ["first", "first"]
    assert sum(results[0].meta("a").probabilities.values()) == pytest.approx(1)
