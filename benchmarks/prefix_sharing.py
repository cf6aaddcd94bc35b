"""What the radix cache saves: the same programs with it on and off, alternating in one run.

Two workloads (benchmarks/workloads.py): a tree of thought, whose branches share their
parents' texts, and a 20-shot select, whose rows share the shots. Both configurations get
the same rows at the same time and write the same number of tokens. Goals of `--check`: a
hit rate of at least 99 % of what an infinite token-exact cache would reach, and at least 3
times the throughput of cache-off on the select workload.

Run it: python -m benchmarks.prefix_sharing [--rounds 3] [--check]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.default_model import load_default_model
from benchmarks.ideal import ideal_cached_tokens
from benchmarks.workloads import few_shot, few_shot_rows, tree_of_thought, tree_rows
from plait import Function
from plait.interpreter.backends.local import LocalBackend
from plait.runtime.config import EngineConfig
from plait.runtime.loop import EngineThread
from plait.runtime.sequence import Output, Request, ScoreRequest

GOAL_OF_IDEAL = 0.99
GOAL_RATIO = 3.0
Prompt = tuple[list[int], list[int], int]  # prompt, output, tokens to compute in any case


class RecordingEngine(EngineThread):
    """An engine that keeps what it was asked, to compute the ideal afterwards."""

    def start_recording(self) -> None:
        """Forget what was recorded, and the cached prefixes' history with it."""
        self._requests: list[Request | ScoreRequest] = []
        self._outputs: dict[str, list[int]] = {}

    def submit(self, request: Request | ScoreRequest, sink: Callable[[Output], None]) -> None:
        """Serve `request`, and note it."""

        def note(output: Output) -> None:
            if output.finish_reason is not None:
                self._outputs[request.id] = list(output.token_ids)
            sink(output)

        self._requests.append(request)
        super().submit(request, note)

    def recorded(self) -> list[Prompt]:
        """Give the requests in the order of their arrival."""
        prompts: list[Prompt] = []
        for request in self._requests:
            if isinstance(request, Request):
                prompts.append((request.prompt.tolist(), self._outputs[request.id], 1))
                continue
            for text in request.texts:
                tokens = text.token_ids.tolist()
                prompts.append((tokens, [], len(tokens) - text.score_from + 1))
        return prompts


@dataclass(frozen=True, slots=True)
class Round:
    """One configuration's figures for one workload."""

    seconds: float
    prompt_tokens: int
    cached_tokens: int
    ideal_tokens: int

    @property
    def of_ideal(self) -> float:
        """The share of the ideal hits that happened."""
        return self.cached_tokens / self.ideal_tokens


def open_backend(*, is_caching: bool) -> tuple[LocalBackend, RecordingEngine]:
    """Load the default model with the radix cache on or off; the pool holds everything."""
    config = EngineConfig(kv_cache_tokens=32768, max_context=2048, is_prefix_caching=is_caching)
    model = load_default_model(config)
    engine = RecordingEngine(model, config)
    return LocalBackend(model, config, engine), engine


def measure(
    program: Function, rows: list[dict[str, object]], backend: LocalBackend, engine: RecordingEngine
) -> Round:
    """Run the rows once, all in flight together."""
    engine.start_recording()
    before = backend.stats()
    start = time.perf_counter()
    for result in program.run_batch(rows, backend=backend, seed=1):
        result.check()
    seconds = time.perf_counter() - start
    after = backend.stats()
    return Round(
        seconds,
        after.num_prompt_tokens - before.num_prompt_tokens,
        after.num_cached_tokens - before.num_cached_tokens,
        ideal_cached_tokens(engine.recorded()),
    )


def compare(
    name: str, program: Function, rows: Callable[[int], list[dict[str, object]]], num_rounds: int
) -> tuple[float, float]:
    """Print a workload's table; give its share of the ideal and its ratio of throughputs."""
    on, on_engine = open_backend(is_caching=True)
    off, off_engine = open_backend(is_caching=False)
    ratios: list[float] = []
    shares: list[float] = []
    for number in range(num_rounds):
        with_cache = measure(program, rows(number), on, on_engine)
        without = measure(program, rows(number), off, off_engine)
        ratios.append(without.seconds / with_cache.seconds)
        shares.append(with_cache.of_ideal)
        print(
            f"{name:16} round {number}: {with_cache.prompt_tokens:7} prompt tokens, "
            f"{with_cache.cached_tokens:7} cached "
            f"({with_cache.cached_tokens / with_cache.prompt_tokens:.1%}, "
            f"{with_cache.of_ideal:.1%} of ideal); on {with_cache.seconds:6.2f} s, "
            f"off {without.seconds:6.2f} s, {ratios[-1]:.2f}x"
        )
    on.close()
    off.close()
    return statistics.median(shares), statistics.median(ratios)


def main() -> int:
    """Print both tables, then one line; with --check, 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    # Each round has its own texts, so that no round is warm from the one before.
    tree = compare("tree of thought", tree_of_thought, lambda n: tree_rows(2, n), args.rounds)
    shots = compare("20-shot select", few_shot, lambda n: few_shot_rows(8, n), args.rounds)
    share, ratio = min(tree[0], shots[0]), shots[1]
    print(
        f"prefix sharing: {share:.1%} of the ideal hit rate (goal {GOAL_OF_IDEAL:.0%}), "
        f"select {ratio:.2f}x cache-off (goal {GOAL_RATIO:.0f}x), "
        f"tree {tree[1]:.2f}x, {args.rounds} rounds"
    )
    return int(args.check and (share < GOAL_OF_IDEAL or ratio < GOAL_RATIO))


if __name__ == "__main__":
    sys.exit(main())
