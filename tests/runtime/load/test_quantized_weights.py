"""Matrices of a GGUF file stay in its blocks on a device, in Hugging Face's row order."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from plait.kernels.linear import QuantizedLinear
from plait.kernels.linear.reference import dequantize
from plait.runtime.load.weights import opened
from plait.runtime.model.config import read_config
from plait.runtime.model.llama import read_llama

CPU = torch.device("cpu")
LAYER = "model.layers.0."


@pytest.mark.parametrize("kind", ["Q4_0", "Q4_1", "Q8_0"])
def test_the_planes_of_a_file_hold_its_numbers(
    kind: str, write_gguf: Callable[..., Path], tmp_path: Path
) -> None:
    with opened(write_gguf(tmp_path / "m.gguf", kind=kind)) as weights:
        shape = read_config(weights.config)
        kept = read_llama(shape, weights, torch.bfloat16, CPU, is_quantized=True)
        qkv = [f"{LAYER}self_attn.{name}_proj.weight" for name in "qkv"]
        for layer, names in (
            (kept.layers[0].qkv, qkv),
            (kept.layers[0].down, [f"{LAYER}mlp.down_proj.weight"]),
            (kept.embedding, ["model.embed_tokens.weight"]),
        ):
            assert isinstance(layer, QuantizedLinear)
            wanted = np.concatenate([weights.tensor(name) for name in names])
            assert np.array_equal(dequantize(layer), wanted)
