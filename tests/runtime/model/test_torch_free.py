"""On the compiled kernels a process never imports torch: it costs 200 MB and a second."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from plait.kernels.native import load_library, why_absent

from .tiny import write_folder

SHAPE = {"hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4,
         "num_key_value_heads": 2, "max_position_embeddings": 512}  # fmt: skip
HEAVY = {"torch", "transformers", "triton", "safetensors", "gguf", "scipy", "pandas", "pytest"}
CODE = """
import json, sys
import plait
# What a worker imports as well.
import plait.interpreter.service, plait.runtime.serve.worker, plait.serving

@plait.function
def write(s):
    s += "Say something: " + plait.gen("greedy", max_tokens=4, temperature=0)
    s += plait.gen("drawn", max_tokens=8, temperature=0.9, top_k=40, top_p=0.9, min_p=0.01)
    s += plait.gen("word", regex="[a-z]{3}", max_tokens=8)
    s += plait.select("answer", ["yes", "no", "perhaps"])

backend = plait.local(sys.argv[1], kv_cache_tokens=1024, is_native=sys.argv[2] == "native",
                      is_grammar_cache_on_disk=False)
result = write.run(backend=backend)
assert len(result["word"]) == 3 and result["answer"] in ("yes", "no", "perhaps")
backend.close()
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def imported(folder: Path, kernels: str) -> set[str]:
    """Run a program with the model of `folder`; give the packages that the process imported."""
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(folder), kernels],
        env={**os.environ, "PLAIT_HOME": str(folder / "home")},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


@pytest.mark.slow
@pytest.mark.skipif(load_library() is None, reason=why_absent())
def test_on_the_compiled_kernels_nothing_heavy_is_imported(tmp_path: Path) -> None:
    write_folder(tmp_path, **SHAPE)
    packages = imported(tmp_path, "native")
    assert "numpy" in packages
    assert not packages & HEAVY


@pytest.mark.slow
def test_without_them_torch_serves(tmp_path: Path) -> None:
    write_folder(tmp_path, **SHAPE)
    assert "torch" in imported(tmp_path, "torch")
