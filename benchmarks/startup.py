"""Time from process start to the first token, split by phase.

Two ways to start: the engine in the program's own process (split by phase), and what a user
sees, `plait run`, whose embedded runtime is a second process. Goal of `--check`: the median of
the latter is at most 6 s on two cores.

Run it: python -m benchmarks.startup [--rounds 5] [--check]
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GOAL_S = 6.0
PHASES = ("python", "import plait", "import torch", "load model", "first token")
# Each stamp is the wall clock once a phase is over; the parent knows when the process began.
CHILD = """
import time; stamps = [time.time()]
import plait; stamps.append(time.time())
import torch; stamps.append(time.time())
backend = plait.local("smollm2"); backend.capabilities(); stamps.append(time.time())

@plait.function
def hello(s):
    s += plait.user("Say hello.")
    s += plait.assistant(plait.gen("x", max_tokens=1, temperature=0))

hello.run(backend=backend); stamps.append(time.time())
backend.close()
import json; print(json.dumps(stamps))
"""


def in_process() -> list[float]:
    """Give the seconds of each phase with the engine in the program's process."""
    start_s = time.time()
    printed = subprocess.run(
        [sys.executable, "-c", CHILD], check=True, capture_output=True, text=True, cwd=ROOT
    ).stdout
    stamps = [start_s, *json.loads(printed)]
    return [after - before for before, after in itertools.pairwise(stamps)]


def embedded() -> float:
    """Give the seconds from `plait run` to the first character of the first variable."""
    command = [sys.executable, "-m", "plait", "run", "examples/hello.py:hello"]
    start_s = time.time()
    with subprocess.Popen(
        [*command, "--arg", "name=Ada", "--stream"], stdout=subprocess.PIPE, cwd=ROOT
    ) as child:
        assert child.stdout is not None
        head = b""
        while not head.endswith(b": "):  # the variable's label comes before its first text
            read = child.stdout.read(1)
            if not read:
                raise SystemExit(
                    f"`plait run` ended with code {child.wait()} before it said a word"
                )
            head += read
        child.stdout.read(1)
        seconds = time.time() - start_s
        child.stdout.read()
    return seconds


def main() -> int:
    """Print the phases' medians, then one line; with --check, 1 if the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    phases: list[list[float]] = []
    totals: list[float] = []
    for _ in range(args.rounds):
        phases.append(in_process())
        totals.append(embedded())
    medians = [statistics.median(times) for times in zip(*phases, strict=True)]
    for name, seconds in zip(PHASES, medians, strict=True):
        print(f"{name:14} {seconds:6.2f} s")
    total = statistics.median(totals)
    print(
        f"startup: {sum(medians):.2f} s to the first token in one process, "
        f"{total:.2f} s through `plait run` (goal {GOAL_S:.0f} s), {args.rounds} rounds"
    )
    return int(args.check and total > GOAL_S)


if __name__ == "__main__":
    sys.exit(main())
