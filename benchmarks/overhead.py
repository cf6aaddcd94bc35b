"""What the whole runtime costs over the bare model step, for each token of a stream.

The runtime: a client streams a program from a worker process over ZeroMQ; scheduler, radix
cache, sampler and text do their work at every step. The bare step: `runner.run` alone, on
batches of the same sizes and contexts that were made before, in a process like the worker's.
Both decode greedily on the default model, step by step from the same context on. Prompts are
new in every turn and computed before the clock starts, so no prefill is in the figures. The
two take turns of about a second; each turn of the runtime is compared with the bare ones
before and after it, and the median of these ratios is that of one start. The two are
different processes, and what one keeps for its whole life, such as where its memory lies, would
count as overhead: so both are started several times, in alternating order, and the median over
the starts counts.

Goals of `--check`: at most 8 % more time a token at 1 sequence, 5 % at 16.

Run it: python -m benchmarks.overhead [--starts 5] [--rounds 5] [--check]
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.engine_rivals import Plait
from benchmarks.workloads import sentence
from plait import Function, State, function, gen
from plait.interpreter.backend import Backend
from plait.interpreter.backends.embedded import EmbeddedBackend
from plait.runtime.config import EngineConfig
from plait.runtime.load.store import DEFAULT_MODEL, Store, default_home
from plait.runtime.model.host import physical_cores
from plait.runtime.sequence import Batch

ROOT = Path(__file__).resolve().parents[1]
GOALS = {1: 0.08, 16: 0.05}
NUM_TOKENS = {1: 256, 16: 64}  # of each sequence in one turn
PLAIN = EngineConfig(max_draft_tokens=0)  # one token a step
CONTEXT = 128  # tokens of a prompt
NUM_WORDS = 127  # one token each, and the full stop


@function
def write(s: State, prompts: list[str], num_tokens: int) -> None:
    """Continue every prompt by exactly `num_tokens` tokens, all of them side by side."""
    for branch, prompt in zip(s.fork(len(prompts)), prompts, strict=True):
        branch += prompt + gen("text", max_tokens=num_tokens, temperature=0, ignore_eos=True)


def stream_ms(backend: Backend, program: Function, prompts: list[str], num_tokens: int) -> float:
    """Give the milliseconds of a step between the first new text and the end of the run."""
    program.run(prompts=prompts, num_tokens=1, backend=backend)
    first_s: float | None = None
    for event in program.stream(prompts=prompts, num_tokens=num_tokens, backend=backend):
        if event.kind == "delta" and first_s is None:
            first_s = time.perf_counter()
    assert first_s is not None
    return (time.perf_counter() - first_s) / (num_tokens - 1) * 1e3


class Bare:
    """The model alone, in a child process: `step_ms` asks it for one measurement."""

    def __init__(self, child: subprocess.Popen[str]) -> None:
        self._child = child

    def step_ms(self, num_seqs: int, num_tokens: int) -> float:
        """Give the milliseconds of a bare step of `num_seqs` sequences."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        print(num_seqs, num_tokens, file=self._child.stdin, flush=True)
        return float(self._child.stdout.readline())


@contextmanager
def bare_process() -> Iterator[Bare]:
    """Start the process of the bare steps."""
    command = [sys.executable, "-m", "benchmarks.overhead", "--bare"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as child:
        yield Bare(child)
        assert child.stdin is not None
        child.stdin.close()


def serve_bare() -> int:
    """Be that process: read sizes, write milliseconds."""
    engine = Plait(Store(default_home()).resolve(DEFAULT_MODEL), physical_cores())
    for line in sys.stdin:
        num_seqs, num_tokens = (int(word) for word in line.split())
        batches = engine.decodes([list(range(100, 99 + CONTEXT))] * num_seqs, num_tokens)
        print(_measure(engine, batches), flush=True)
    return 0


def _measure(engine: Plait, batches: list[Batch]) -> float:
    engine.runner.run(batches[0])  # as the runtime's first token, it is not counted
    start_s = time.perf_counter()
    for batch in batches[1:]:
        engine.runner.run(batch)
    return (time.perf_counter() - start_s) / (len(batches) - 1) * 1e3


@dataclass(frozen=True, slots=True)
class Turn:
    """Milliseconds of a step: of the runtime, and of the bare model around it."""

    bare_ms: float
    runtime_ms: float

    @property
    def more(self) -> float:
        """The share that the runtime takes more."""
        return self.runtime_ms / self.bare_ms - 1


def measure(num_seqs: int, backend: Backend, bare: Bare, num_rounds: int) -> list[Turn]:
    """Let the two take turns; the first pair warms up."""
    rng = random.Random(num_seqs)
    num_tokens = NUM_TOKENS[num_seqs]
    turns: list[Turn] = []
    before_ms = bare.step_ms(num_seqs, num_tokens)
    for round_id in range(num_rounds + 1):
        prompts = [sentence(rng, NUM_WORDS) for _ in range(num_seqs)]
        runtime_ms = stream_ms(backend, write, prompts, num_tokens)
        after_ms = bare.step_ms(num_seqs, num_tokens)
        if round_id > 0:
            turns.append(Turn((before_ms + after_ms) / 2, runtime_ms))
        before_ms = after_ms
    return turns


def measure_start(start_id: int, num_rounds: int) -> dict[int, Turn]:
    """Start both processes anew; give the medians of each size."""
    with ExitStack() as stack:
        early = stack.enter_context(bare_process()) if start_id % 2 else None
        backend = stack.enter_context(closing(EmbeddedBackend(DEFAULT_MODEL, config=PLAIN)))
        bare = stack.enter_context(bare_process()) if early is None else early
        return {size: middle(measure(size, backend, bare, num_rounds)) for size in GOALS}


def middle(turns: list[Turn]) -> Turn:
    """Give the turn with the median ratio, the larger one of two."""
    return sorted(turns, key=lambda turn: turn.more)[len(turns) // 2]


def main() -> int:
    """Print the table, then one line; with --check, 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--check", action="store_true", help="exit 1 where a goal is missed")
    parser.add_argument("--bare", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.bare:
        return serve_bare()
    starts = [measure_start(start_id, args.rounds) for start_id in range(args.starts)]
    print("sequences  bare ms  runtime ms    more (goal)  starts")
    shown: list[str] = []
    is_met = True
    for size, goal in GOALS.items():
        turn = middle([start[size] for start in starts])
        spread = ", ".join(f"{start[size].more:.1%}" for start in starts)
        is_met = is_met and turn.more <= goal
        times = f"{turn.bare_ms:8.2f} {turn.runtime_ms:11.2f}"
        print(f"{size:9} {times} {turn.more:7.1%} ({goal:.0%})  {spread}")
        shown.append(f"{turn.more:.1%} at {size} (goal {goal:.0%})")
    print(f"overhead: more time a token than the bare step: {', '.join(shown)}")
    return int(args.check and not is_met)


if __name__ == "__main__":
    sys.exit(main())
