"""Check every GPU kernel against its definition, then measure its speed; one table, one command.

`make gpu-check` on a machine with an NVIDIA GPU; under 8 minutes. Goals are shares of what this
device gave in the same run: its memory's rate, its bf16 matrix products. Without a device it says
so and exits 2. `TRITON_INTERPRET=1 python -m benchmarks.gpu_check --tiny --device cpu` runs the
checks on small sizes in Triton's interpreter; it can run no speeds.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import torch

from .gpu.attention_cases import attention_cases
from .gpu.case import Case
from .gpu.model_cases import model_cases
from .gpu.small_cases import small_cases

LIMIT_S = 450
# The seconds of each part, of LIMIT_S in all; what one leaves is the next one's. Each runs in a
# process of its own: a kernel that writes where it must not, or does not end, ends no other part.
PARTS = {"small": 100, "attention": 170, "model": 60, "speeds": 120}
ROOT = Path(__file__).resolve().parents[1]


def missing(device: torch.device) -> str | None:
    """Say what is missing to run the kernels on `device`; None if nothing is."""
    if find_spec("triton") is None:
        return "triton is not installed: pip install triton"
    if device.type == "cuda" and not torch.cuda.is_available():
        return "torch finds no CUDA device"
    if device.type == "cpu" and os.environ.get("TRITON_INTERPRET") != "1":
        return "on the CPU Triton only runs with TRITON_INTERPRET=1 in the environment"
    return None


def cases_of(part: str, *, is_tiny: bool) -> Iterator[Case]:
    """Give the checks of one part."""
    if part == "small":
        return small_cases(is_tiny=is_tiny)
    return attention_cases(is_tiny=is_tiny) if part == "attention" else model_cases()


def check(part: str, cases: Iterable[Case], device: torch.device, deadline: float) -> int:
    """Run the cases, print those that fail and a summary; give the number that did not pass."""
    num_passed, failed = 0, 0
    for case in cases:
        if time.monotonic() > deadline:
            failed += 1
            continue
        try:
            error = case.error(device)
        except Exception as e:  # one broken kernel must not hide the others
            failed += 1
            print(f"FAIL  {case.name}: {type(e).__name__}: {e}"[:400], flush=True)
            continue
        if error <= case.bound:
            num_passed += 1
        else:
            failed += 1
            print(f"FAIL  {case.name}: error {error:.2e}, bound {case.bound:.2e}")
    print(f"correctness, {part}: {num_passed} passed, {failed} failed or not run")
    return failed


def run_part(part: str, args: argparse.Namespace, device: torch.device) -> int:
    """Run one part in this process; give the exit code."""
    deadline = time.monotonic() + args.limit
    if part == "speeds":
        from .gpu.speeds import measure_all

        return int(measure_all(device, deadline) > 0)
    if device.type == "cpu":
        from .gpu.interpreter import mend_bfloat16

        torch.set_num_threads(1)  # the interpreter's products are too small for more
        mend_bfloat16()
    cases = (case for case in cases_of(part, is_tiny=args.tiny) if args.only in case.name)
    return int(check(part, cases, device, deadline) > 0)


def run_parts(parts: Iterable[str], limit_s: float, run: Callable[[str, float], int]) -> int:
    """Run parts one after the other by `run(part, seconds)`; give the number that failed."""
    start, promised, num_failed = time.monotonic(), 0.0, 0
    for part in parts:
        promised += PARTS[part] * limit_s / LIMIT_S
        left = start + promised - time.monotonic()
        try:
            num_failed += run(part, left) != 0
        except subprocess.TimeoutExpired:
            num_failed += 1
            print(f"FAIL  {part}: did not end in {left:.0f} s and was stopped", flush=True)
    return num_failed


def run_process(words: list[str], part: str, left_s: float) -> int:
    """Run one part in a process of its own; it is told to end a little earlier than it must."""
    command = [sys.executable, "-m", "benchmarks.gpu_check", *words]
    limit = ["--part", part, "--limit", str(max(1.0, 0.9 * left_s))]
    code = subprocess.run([*command, *limit], cwd=ROOT, timeout=max(1.0, left_s)).returncode
    if code not in (0, 1):
        print(f"FAIL  {part}: its process ended with code {code}", flush=True)
    return code


def main() -> int:
    """Print the table; give the exit code: 0, 1 for a failure or a missed goal, 2 for no device."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--only", default="", help="checks whose name has this, no speeds")
    parser.add_argument("--tiny", action="store_true", help="small sizes, no speeds")
    parser.add_argument("--part", choices=PARTS, help="this part alone, in this process")
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="seconds, in all")
    args = parser.parse_args()
    device = torch.device(args.device)
    if problem := missing(device):
        print(f"gpu_check: {problem}")
        return 2
    if args.part is not None:
        return run_part(args.part, args, device)
    has_speeds = not (args.tiny or args.only) and device.type == "cuda"
    parts = [part for part in PARTS if part != "speeds" or has_speeds]
    num_failed = run_parts(parts, args.limit, partial(run_process, sys.argv[1:]))
    verdict = "all passed" if not num_failed else f"{num_failed} of {len(parts)} failed"
    print(f"gpu_check: {verdict}: {', '.join(parts)}")
    return int(num_failed > 0)


if __name__ == "__main__":
    sys.exit(main())
