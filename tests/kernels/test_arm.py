"""The portable kernels on ARM, in an emulator, against the same on this processor."""

from __future__ import annotations

import math
import shutil
import subprocess
from pathlib import Path

import pytest

from plait.kernels.native import load_library, why_absent

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "kernels" / "native"
DRIVER = Path(__file__).parent / "arm_driver.cpp"
COMPILER, EMULATOR = "aarch64-linux-gnu-g++", "qemu-aarch64"
FLAGS = ("-std=c++17", "-O2", "-pthread", "-ffp-contract=fast", "-Wno-psabi", f"-I{SOURCES}")


def numbers(*command: str) -> list[float]:
    ran = subprocess.run(command, check=True, capture_output=True, text=True)
    return [float(line) for line in ran.stdout.splitlines()]


def test_a_pass_and_its_draws_are_the_same_on_arm(tmp_path: Path) -> None:
    if shutil.which(COMPILER) is None or shutil.which(EMULATOR) is None:
        pytest.skip("needs g++-aarch64-linux-gnu and qemu-user")
    loaded = load_library()
    if loaded is None:
        pytest.skip(why_absent())
    here, there = str(tmp_path / "here"), str(tmp_path / "there")
    library = loaded.functions._name
    own = ["g++", *FLAGS, str(DRIVER), library, f"-Wl,-rpath,{SOURCES}", "-o", here]
    subprocess.run(own, check=True)
    table = ("-DPLAIT_ISA=portable", "-DPLAIT_TABLE=kPortable", "-DPLAIT_HAS_AVX_VNNI=0")
    sources = [str(DRIVER), str(SOURCES / "api.cpp"), str(SOURCES / "isa.cpp")]
    subprocess.run([COMPILER, "-static", *FLAGS, *table, *sources, "-o", there], check=True)
    expected, found = numbers(here), numbers(EMULATOR, there)
    assert len(expected) == len(found) == 664
    assert all(map(math.isfinite, expected))
    # One processor multiplies and adds in one rounding, the other in two.
    assert found == pytest.approx(expected, rel=1e-5, abs=1e-5)
