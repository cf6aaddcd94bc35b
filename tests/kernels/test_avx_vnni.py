"""AVX-VNNI's own path: on a processor without it, with the same instruction's other encoding."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from plait.kernels.native import load_library, why_absent

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "kernels" / "native"
FLAGS = ("-std=c++17", "-O2", "-fPIC", "-fno-math-errno", "-ffp-contract=fast")
AVX2 = ("-mavx2", "-mfma", "-mf16c")
AVX512 = tuple(f"-mavx512{part}" for part in ("f", "bw", "vl", "dq", "vnni", "bf16"))

# The path as compiled for AVX-VNNI, under the name of a kind that this processor may run.
AS_AVX2 = """
#include <immintrin.h>
#undef __AVX512F__
#undef __AVX512VNNI__
#define __AVXVNNI__ 1
#define _mm256_dpbusd_avx_epi32 _mm256_dpbusd_epi32
#include "isa.cpp"
"""

RUN_TESTS = """
import sys
from pathlib import Path

import pytest

from plait.kernels.native import library

library._find = lambda: Path(sys.argv[1])
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "-k", "avx2", *sys.argv[2:]]))
"""


def compile_object(folder: Path, source: Path, name: str, *flags: str) -> str:
    made = str(folder / f"{name}.o")
    command = ["g++", *FLAGS, *flags, f"-I{SOURCES}", "-c", str(source), "-o", made]
    subprocess.run(command, check=True, capture_output=True)
    return made


def test_the_path_passes_the_tests_of_the_kernels(tmp_path: Path) -> None:
    loaded = load_library()
    if loaded is None:
        pytest.skip(why_absent())
    if not loaded.choose("avx512"):
        pytest.skip("this processor has neither encoding of the instruction")
    path = tmp_path / "as_avx2.cpp"
    path.write_text(AS_AVX2)

    def kind(source: Path, name: str, table: str, *flags: str) -> str:
        named = (f"-DPLAIT_ISA={name}", f"-DPLAIT_TABLE={table}")
        return compile_object(tmp_path, source, name, *named, *flags)

    objects = [
        compile_object(tmp_path, SOURCES / "api.cpp", "api", "-DPLAIT_HAS_AVX_VNNI=0"),
        kind(SOURCES / "isa.cpp", "portable", "kPortable"),
        kind(path, "avx2", "kAvx2", *AVX2, "-mavx512vnni", "-mavx512vl"),
        kind(SOURCES / "isa.cpp", "avx512", "kAvx512", *AVX2, *AVX512),
    ]
    library = str(tmp_path / "_native.so")
    subprocess.run(["g++", "-shared", "-pthread", *objects, "-o", library], check=True)
    listing = subprocess.run(
        ["objdump", "-d", objects[2]], check=True, capture_output=True, text=True
    )
    assert "vpdpbusd" in listing.stdout
    assert "vpmaddubsw" not in listing.stdout  # AVX2's way without the instruction
    tests = [str(ROOT / "tests/kernels/test_native_linear.py")]
    ran = subprocess.run(
        [sys.executable, "-c", RUN_TESTS, library, *tests],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-2000:]
    assert " passed" in ran.stdout
