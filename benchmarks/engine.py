"""plait's forward pass against llama.cpp's and transformers', on the same GGUF file.

Two threads each. Engines take turns within a round, so a machine that slows down slows all of
them; medians over rounds are compared. Decode: one more token of each of n sequences, logits
included, at 128 tokens of context; "shared" are 16 sequences that begin with the same 1,024 tokens
and have 64 of their own; transformers shares nothing, and runs few of the sizes: it is slow.
The floor of one sequence is the weights' bytes over the memory's speed, measured in each round.

Goals of `--check`, ratios to llama.cpp: decode 2.4x at 1, 5.5x at 16, 5x at 32 and 64, and never
fewer tokens a second for more sequences; shared 8x; prefill 6x at 512 and 7x at 2,048, and 2x
what llama.cpp reaches in the format that it is fastest in, of those of `OTHER_FORMATS`.

Run it: make bench-engine, or pip install llama-cpp-python; python -m benchmarks.engine [--check]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch

from benchmarks.engine_rivals import LlamaCpp, Plait, Rival, Transformers, converted
from plait.runtime.load.store import DEFAULT_MODEL, Store, default_home
from plait.runtime.load.weights import GGUF_NAME

GOALS = {
    **{"decode 1": 2.4, "decode 16": 5.5, "decode 32": 5.0, "decode 64": 5.0},
    **{"shared 16": 8.0, "prefill 512": 6.0, "prefill 2048": 7.0},
}
SIZES = (1, 8, 16, 32, 64)
OTHER_FORMATS = ("Q4_0", "BF16")
FASTEST_GOAL = 2.0
PREFILL_TOKENS = 4096  # of KV for them
SLOW = ("decode 1", "decode 16", "prefill 512")  # what transformers is asked
FLOOR_SHARE = 0.75
STEPS_ALONE = 64  # of one sequence a round, which are quick; of more it is less


@dataclass
class Row:
    """One kind of work: tokens a second of each engine, a number a round."""

    name: str
    num_tokens: int  # of one measured call
    texts: list[list[int]]
    num_shared: int = 0
    speeds: dict[str, list[float]] = field(default_factory=dict)

    @property
    def is_prefill(self) -> bool:
        return self.name.startswith("prefill")

    def median(self, engine: str) -> float:
        """Give tokens a second; 0 if it was not measured."""
        return statistics.median(self.speeds[engine]) if engine in self.speeds else 0.0


def rows() -> list[Row]:
    """Give the kinds of work, with texts from a fixed seed."""
    rng = np.random.default_rng(0)

    def text(length: int) -> list[int]:
        return [int(token) for token in rng.integers(100, 40_000, length)]

    prefix = text(1024)
    return [
        *(Row(f"decode {n}", n, [text(127) for _ in range(n)]) for n in SIZES),
        Row("shared 16", 16, [prefix + text(64) for _ in range(16)], 1024),
        *(Row(f"prefill {n}", n, [text(n)]) for n in (512, 2048)),
    ]


def measure(engine: Rival, row: Row, num_steps: int) -> float:
    """Give tokens a second of one engine in one round."""
    if row.is_prefill:
        return row.num_tokens / _seconds(lambda: engine.fill(row.texts))
    engine.fill(row.texts, row.num_shared)
    tokens = [100 + i for i in range(row.num_tokens)]
    engine.step(tokens)  # the first one warms up

    num_steps = max(num_steps, STEPS_ALONE // row.num_tokens)

    def decode() -> None:
        for _ in range(num_steps):
            engine.step(tokens)

    return row.num_tokens * num_steps / _seconds(decode)


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


class Memory:
    """Says how fast memory is read: by torch's sum of 400 MB in large pages."""

    def __init__(self, num_threads: int) -> None:
        torch.set_num_threads(num_threads)
        self._data = torch.from_numpy(np.ones(100_000_000, np.float32))

    def speed(self) -> float:
        """Give bytes a second, of the best of three."""
        return max(self._data.nbytes / _seconds(self._data.sum) for _ in range(3))


def main() -> int:
    """Print the table and its summary; give the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=16, help="decode steps a round")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--check", action="store_true", help="exit 1 where a goal is missed")
    args = parser.parse_args()
    path = Store(default_home()).resolve(DEFAULT_MODEL)
    file = path / GGUF_NAME
    engines: dict[str, Rival] = {
        "plait": Plait(path, args.threads),
        "llama.cpp": LlamaCpp(file, args.threads),
        "transformers": Transformers(path, args.threads),
    }
    folder = default_home() / "benchmarks"
    for kind in OTHER_FORMATS:
        other = converted(file, kind, folder)
        engines[kind] = LlamaCpp(other, args.threads, PREFILL_TOKENS)
    table, memory, floors = rows(), Memory(args.threads), []
    for _ in range(args.rounds):
        floors.append(memory.speed() / file.stat().st_size)
        for row in table:
            for name, engine in engines.items():
                if _is_asked(name, row):
                    row.speeds.setdefault(name, []).append(measure(engine, row, args.steps))
    return _report(table, floors, is_checked=args.check)


def _is_asked(engine: str, row: Row) -> bool:
    if engine in OTHER_FORMATS:
        return row.is_prefill
    return engine != "transformers" or row.name in SLOW


def _against_fastest(row: Row) -> tuple[str, float]:
    """Give the format in which llama.cpp does a prefill fastest, and plait's ratio to that."""
    names = ("llama.cpp", *OTHER_FORMATS)
    fastest = max(names, key=row.median)
    return fastest, row.median("plait") / row.median(fastest)


def _report(table: list[Row], floors: list[float], *, is_checked: bool) -> int:
    missed: list[str] = []
    print("tokens/s          plait  llama.cpp  transformers   ratio to llama.cpp (goal)")
    for row in table:
        own, other = row.median("plait"), row.median("llama.cpp")
        ratio, goal = own / other, GOALS.get(row.name)
        shown = "" if goal is None else f"({goal:.1f})"
        print(
            f"{row.name:14} {own:9.0f} {other:10.0f} {row.median('transformers'):13.0f}"
            f" {ratio:10.2f}x {shown}"
        )
        if goal is not None and ratio < goal:
            missed.append(f"{row.name} {ratio:.2f}x < {goal}x")
    for row in table:
        if row.is_prefill:
            fastest, ratio = _against_fastest(row)
            speeds = ", ".join(f"{kind} {row.median(kind):.0f}" for kind in OTHER_FORMATS)
            print(f"{row.name}, llama.cpp in {speeds}: {ratio:.2f}x the fastest ({FASTEST_GOAL})")
            if ratio < FASTEST_GOAL:
                missed.append(f"{row.name} {ratio:.2f}x < {FASTEST_GOAL}x of {fastest}")
    decodes = [row.median("plait") for row in table if row.name.startswith("decode")]
    if decodes != sorted(decodes):
        missed.append("tokens/s fall as sequences are added")
    alone = table[0].speeds["plait"]
    share = statistics.median(own / floor for own, floor in zip(alone, floors, strict=True))
    if share < FLOOR_SHARE:
        missed.append(f"decode 1 at {share:.0%} of its floor")
    print(
        f"engine: decode 1 at {share:.0%} of its floor, {statistics.median(floors):.0f} tokens/s; "
        f"{'missed: ' + ', '.join(missed) if missed else 'all goals met'}"
    )
    return int(is_checked and bool(missed))


if __name__ == "__main__":
    sys.exit(main())
