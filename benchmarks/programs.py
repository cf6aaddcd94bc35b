"""Whole programs a second, on the default model and two cores, against llama.cpp.

Four programs (benchmarks/program_tasks.py says what they do, and how the work is made equal):
tree of thought, few-shot select, judge, extraction. plait runs the rows of a round as one batch
in a worker process; llama-cpp-python runs them one after the other, with its own reuse of
prefixes. Same GGUF file, two threads each. The engines take turns within a round; medians over
rounds are compared. "Tokens" are those written in a program, a choice counted as one: they are
the same by construction but for the extraction, where the model says when a string ends.

Goals of `--check`: ratios of programs/s to llama.cpp, see GOALS. Without llama-cpp-python
plait is measured alone, and no goal is checked.

Run it: python -m benchmarks.programs [--rounds 3] [--check]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from contextlib import closing
from dataclasses import dataclass, field

from benchmarks.program_rival import Llama, is_installed
from benchmarks.program_tasks import TASKS, Row, Task
from plait.interpreter.backend import Backend
from plait.interpreter.backends.embedded import EmbeddedBackend
from plait.lang.ops import Select
from plait.runtime.config import EngineConfig
from plait.runtime.load.store import DEFAULT_MODEL, Store, default_home
from plait.runtime.load.weights import GGUF_NAME

GOALS = {"tree of thought": 4.0, "few-shot select": 4.0, "judge": 4.0, "extraction": 3.0}


@dataclass
class Speeds:
    """Programs a second of one engine, a number a round, and the tokens of a program."""

    programs: list[float] = field(default_factory=list)
    tokens: list[float] = field(default_factory=list)

    def add(self, num_programs: int, num_tokens: int, seconds: float) -> None:
        """Note a round."""
        self.programs.append(num_programs / seconds)
        self.tokens.append(num_tokens / num_programs)

    @property
    def median(self) -> float:
        """Give programs a second."""
        return statistics.median(self.programs)

    @property
    def num_tokens(self) -> float:
        """Give the tokens of a program."""
        return statistics.mean(self.tokens)


def run_plait(task: Task, rows: list[Row], backend: Backend, speeds: Speeds) -> None:
    """Run the rows of a round as one batch."""
    start_s = time.perf_counter()
    results = task.program.run_batch(rows, backend=backend, seed=1)
    for result in results:
        result.check()
    seconds = time.perf_counter() - start_s
    num_tokens = sum(result.usage.output_tokens for result in results)
    nodes = [node for result in results for node in result.graph.nodes]
    num_tokens += sum(isinstance(node.op, Select) for node in nodes)
    speeds.add(len(rows), num_tokens, seconds)


def run_rival(task: Task, rows: list[Row], llama: Llama, speeds: Speeds) -> None:
    """Run them one after the other."""
    num_before = llama.num_tokens
    start_s = time.perf_counter()
    for row in rows:
        task.rival(llama, row)
    seconds = time.perf_counter() - start_s
    speeds.add(len(rows), llama.num_tokens - num_before, seconds)


def main() -> int:
    """Print the table, then one line; with --check, 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--check", action="store_true", help="exit 1 where a goal is missed")
    args = parser.parse_args()
    file = Store(default_home()).resolve(DEFAULT_MODEL) / GGUF_NAME
    llama = Llama(file, args.threads) if is_installed() else None
    own = {task.name: Speeds() for task in TASKS}
    other = {task.name: Speeds() for task in TASKS}
    with closing(
        EmbeddedBackend(DEFAULT_MODEL, config=EngineConfig(num_threads=args.threads))
    ) as backend:
        _warm_up(backend)
        for round_id in range(args.rounds):
            for task in TASKS:
                rows = task.rows(round_id)
                run_plait(task, rows, backend, own[task.name])
                if llama is not None:
                    run_rival(task, rows, llama, other[task.name])
    if llama is None:
        return _report_alone(own)
    missed = _report(own, other)
    return int(args.check and bool(missed))


def _warm_up(backend: Backend) -> None:
    """Compile the grammars' tables, and touch the memory: a process does it once."""
    for task in TASKS:
        run_plait(task, task.rows(-1)[:1], backend, Speeds())


def _report_alone(own: dict[str, Speeds]) -> int:
    print("program           programs/s   tokens")
    for name, speeds in own.items():
        print(f"{name:17} {speeds.median:10.2f} {speeds.num_tokens:8.0f}")
    print("programs: no llama-cpp-python here (pip install llama-cpp-python), plait alone")
    return 0


def _report(own: dict[str, Speeds], other: dict[str, Speeds]) -> list[str]:
    missed: list[str] = []
    shown: list[str] = []
    print("programs/s          plait  llama.cpp   tokens of a program   ratio (goal)")
    for name, speeds in own.items():
        rival = other[name]
        ratio = statistics.median(
            a / b for a, b in zip(speeds.programs, rival.programs, strict=True)
        )
        print(
            f"{name:17} {speeds.median:7.2f} {rival.median:10.2f} "
            f"{speeds.num_tokens:10.0f} / {rival.num_tokens:.0f} {ratio:12.2f}x ({GOALS[name]:.0f})"
        )
        shown.append(f"{name} {ratio:.1f}x")
        if ratio < GOALS[name]:
            missed.append(f"{name} {ratio:.2f}x < {GOALS[name]:.0f}x")
    end = f"missed: {', '.join(missed)}" if missed else "all goals met"
    print(f"programs: llama.cpp's programs/s times {', '.join(shown)}; {end}")
    return missed


if __name__ == "__main__":
    sys.exit(main())
