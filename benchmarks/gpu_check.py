"""Check every GPU kernel against its definition, then measure its speed; one table, one command.

`make gpu-check` on a machine with an NVIDIA GPU; under 8 minutes. Goals are shares of what this
device gave in the same run: its memory's rate, its bf16 matrix products. Without a device it says
so and exits 2. `TRITON_INTERPRET=1 python -m benchmarks.gpu_check --tiny --device cpu` runs the
checks on small sizes in Triton's interpreter; it can run no speeds.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import time
from collections.abc import Iterable
from importlib.util import find_spec

import torch

from .gpu.attention_cases import attention_cases
from .gpu.case import Case
from .gpu.model_cases import model_cases
from .gpu.small_cases import small_cases

LIMIT_S = 450  # checks that have not begun by then are reported as not run


def missing(device: torch.device) -> str | None:
    """Say what is missing to run the kernels on `device`; None if nothing is."""
    if find_spec("triton") is None:
        return "triton is not installed: pip install triton"
    if device.type == "cuda" and not torch.cuda.is_available():
        return "torch finds no CUDA device"
    if device.type == "cpu" and os.environ.get("TRITON_INTERPRET") != "1":
        return "on the CPU Triton only runs with TRITON_INTERPRET=1 in the environment"
    return None


def check(cases: Iterable[Case], device: torch.device, deadline: float) -> int:
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
            print(f"FAIL  {case.name}: {type(e).__name__}: {e}"[:400])
            continue
        if error <= case.bound:
            num_passed += 1
        else:
            failed += 1
            print(f"FAIL  {case.name}: error {error:.2e}, bound {case.bound:.2e}")
    print(f"correctness: {num_passed} passed, {failed} failed or not run")
    return failed


def main() -> int:
    """Print the table; give the exit code: 0, 1 for a failure or a missed goal, 2 for no device."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--only", default="", help="checks whose name has this, no speeds")
    parser.add_argument("--tiny", action="store_true", help="small sizes, no speeds")
    args = parser.parse_args()
    device = torch.device(args.device)
    if problem := missing(device):
        print(f"gpu_check: {problem}")
        return 2
    if device.type == "cpu":
        torch.set_num_threads(1)  # the interpreter's products are too small for more
    deadline = time.monotonic() + LIMIT_S
    cases = itertools.chain(
        small_cases(is_tiny=args.tiny),
        attention_cases(is_tiny=args.tiny),
        model_cases(is_tiny=args.tiny),
    )
    failed = check((case for case in cases if args.only in case.name), device, deadline)
    if args.tiny or args.only or device.type != "cuda":
        return int(failed > 0)
    from .gpu.speeds import measure_all

    return int(measure_all(device, deadline) > 0 or failed > 0)


if __name__ == "__main__":
    sys.exit(main())
