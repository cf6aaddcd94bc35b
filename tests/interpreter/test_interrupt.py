"""Ctrl-C: what waits is unwound, and nothing runs further."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from functools import partial

import pytest

from plait import Backend, State, function, gen, scripted
from plait.interpreter import tasks

NUM_ROWS = 51


@pytest.fixture
def backend() -> Iterator[Backend]:
    opened = scripted(lambda text: "a")
    yield opened
    opened.close()


@pytest.mark.parametrize("way", ["plain", "async"])
def test_an_interrupt_in_one_row_runs_no_other_row_further(way: str, backend: Backend) -> None:
    log: list[str] = []

    def interrupt(row: int) -> None:
        if row == 0:
            raise KeyboardInterrupt

    @function
    def plain(s: State, row: int) -> None:
        s += "a"
        try:
            tasks.await_only(asyncio.sleep(0))  # all rows are ready after it
            interrupt(row)
            log.append("further")
            s += gen("x")
            assert s["x"]
        finally:
            log.append("unwound")

    @function
    async def awaiting(s: State, row: int) -> None:
        s += "a"
        try:
            await asyncio.sleep(0)
            interrupt(row)
            log.append("further")
            s += gen("x")
            assert s["x"]
        finally:
            log.append("unwound")

    program = (plain if way == "plain" else awaiting).options(backend=backend)
    with pytest.raises(KeyboardInterrupt):
        program.run_batch([(row,) for row in range(NUM_ROWS)])
    assert log == ["unwound"] * NUM_ROWS


def test_an_interrupt_that_the_main_task_passes_on_leaves_no_task_behind() -> None:
    log: list[str] = []

    def body(row: int) -> None:
        try:
            tasks.await_only(asyncio.sleep(0 if row < 2 else 60))
            if row == 0:
                raise KeyboardInterrupt
            log.append("further")
        finally:
            log.append("unwound")

    async def main() -> None:
        await asyncio.gather(*(tasks.spawn(partial(body, row)) for row in range(9)))

    with pytest.raises(KeyboardInterrupt):
        tasks.run_here(main)
    gc.collect()
    assert log == ["unwound"] * 9
