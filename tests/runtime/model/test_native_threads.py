"""The kernels' threads, whose number is the whole process's: each test has a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from plait.kernels.native import load_library, why_absent

from .tiny import write_folder

SHAPE = {"hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4,
         "num_key_value_heads": 2, "max_position_embeddings": 512}  # fmt: skip
START = """
import sys, threading
from pathlib import Path
import plait
from plait.kernels.native import load_library
from plait.runtime.config import EngineConfig
from plait.runtime.model.registry import load_model
from plait.runtime.sequence import Batch
import numpy as np

def run(num_threads):
    options = EngineConfig(kv_cache_tokens=512, num_threads=num_threads)
    return load_model(Path(sys.argv[1]), options).runner

def step(runner):
    rows = np.arange(40, dtype=np.int32)
    blocks = np.arange(3, dtype=np.int32)[None]
    none = np.zeros(0, np.int64)
    ends, length, wanted = np.array([0, 40], np.int32), np.array([40], np.int32), np.array([39])
    one = (ends, length, blocks, none, none, wanted)
    return runner.run(Batch(rows % 7, rows, rows.astype(np.int64), *one, ())).copy()
"""
ALONE = """
one = step(run(1))
assert np.array_equal(one, step(run(3)))
assert np.isfinite(one).all()
"""
CHANGED = """
runner = run(2)
wanted = step(runner)
library = load_library()
is_over = threading.Event()

def change():
    while not is_over.is_set():
        for number in (1, 4, 2, 3):
            library.set_threads(number)

changer = threading.Thread(target=change)
changer.start()
for _ in range(300):
    assert np.array_equal(step(runner), wanted)
is_over.set()
changer.join()
"""


@pytest.mark.slow
@pytest.mark.skipif(load_library() is None, reason=why_absent())
@pytest.mark.parametrize("code", [ALONE, CHANGED], ids=["one thread", "changed between steps"])
def test_any_number_of_threads_computes_the_same(code: str, tmp_path: Path) -> None:
    write_folder(tmp_path, **SHAPE)
    command = [sys.executable, "-c", START + code, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
