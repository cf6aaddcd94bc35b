"""The Triton kernels equal their definitions in Triton's interpreter, and compile for GPUs.

The checks are those of `make gpu-check` (benchmarks/gpu). They run in a process of their own:
Triton reads TRITON_INTERPRET when it is imported.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]
needs_triton = pytest.mark.skipif(
    find_spec("triton") is None, reason="needs triton, which is not installed"
)


def run(module: str, *args: str, **changes: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    return subprocess.run(
        [sys.executable, "-m", module, *args],
        env=environment | changes,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=280,
    )


@needs_triton
@pytest.mark.slow
def test_all_kernels_are_as_defined_under_the_interpreter() -> None:
    words = ("--tiny", "--device", "cpu", "--limit", "2000")
    done = run("benchmarks.gpu_check", *words, TRITON_INTERPRET="1")
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.findall(r"correctness, (\w+): (\d+) passed, 0 failed", done.stdout)
    assert [part for part, _ in found] == ["small", "attention", "model"]
    assert sum(int(count) for _, count in found) >= 80


@pytest.mark.slow
def test_a_part_of_the_check_that_hangs_ends_no_other_and_leaves_them_their_time() -> None:
    code = """
from subprocess import TimeoutExpired
from benchmarks.gpu_check import LIMIT_S, PARTS, run_parts
def run(part, left_s):
    print(part, round(left_s))
    if part == "small":
        raise TimeoutExpired(part, left_s)
    return int(part == "attention")
assert sum(PARTS.values()) == LIMIT_S
print(run_parts(["small", "attention", "model"], LIMIT_S / 10, run))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.splitlines() == [
        "small 10",
        "FAIL  small: did not end in 10 s and was stopped",
        "attention 27",
        "model 33",
        "2",
    ]


@needs_triton
@pytest.mark.slow
def test_all_kernels_compile_for_a_gpu_that_is_not_there() -> None:
    done = run("benchmarks.gpu.compiling", "--quick")
    assert done.returncode == 0, done.stdout + done.stderr
    kernels = ("_norm", "_silu_mul", "_rope_and_store", "_multiply", "_store", "_gather", "_refuse",
               "_draw", "_decode", "_merge", "_attend_tile")  # fmt: skip
    assert {line.split()[0].split(":")[1] for line in done.stdout.splitlines()} == set(kernels)


@pytest.mark.slow
def test_on_the_cpu_nothing_imports_triton() -> None:
    code = (
        "import sys, torch; from plait.kernels import attention, activation, kv, linear, mask, "
        "norm, rope, sampling; from plait.runtime.model import registry; "
        "activation.silu_mul(torch.zeros(1, 4)); norm.rms_norm(torch.zeros(1, 4), torch.ones(4), "
        "1e-5); assert 'triton' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=280)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a device")
@pytest.mark.slow
def test_without_a_device_the_check_says_so_in_one_line() -> None:
    done = run("benchmarks.gpu_check")
    assert done.returncode == 2
    assert done.stdout.startswith("gpu_check: ")
    assert len(done.stdout.splitlines()) == 1
