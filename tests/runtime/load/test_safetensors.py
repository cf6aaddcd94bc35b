"""Hugging Face folders: missing, short, stray and foreign files are load errors (M08)."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from plait.runtime.errors import ModelLoadError
from plait.runtime.load.quants import dequantize
from plait.runtime.load.weights import open_weights, opened

INDEX = "model.safetensors.index.json"
SHARDS = [f"model-0000{i}-of-00003.safetensors" for i in (1, 2, 3)]


def tensors() -> dict[str, torch.Tensor]:
    """Give six small tensors."""
    generator = torch.Generator().manual_seed(0)
    return {f"model.t{i}.weight": torch.randn(3, 5, generator=generator) for i in range(6)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give a model of three shards, two tensors each."""
    (tmp_path / "config.json").write_text('{"hidden_size": 5}')
    weight_map = {}
    for i, shard in enumerate(SHARDS):
        part = dict(list(tensors().items())[2 * i : 2 * i + 2])
        save_file(part, tmp_path / shard)
        weight_map.update(dict.fromkeys(part, shard))
    (tmp_path / INDEX).write_text(json.dumps({"weight_map": weight_map}))
    return tmp_path


def test_a_sharded_model_reads_back(folder: Path) -> None:
    with opened(folder) as weights:
        assert weights.config == {"hidden_size": 5}
        assert set(weights.names()) == set(tensors())
        for name, want in tensors().items():
            assert np.array_equal(weights.tensor(name), want)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_one_file_of_any_float_type_reads_back_as_fp32(dtype: torch.dtype, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    stored = {name: value.to(dtype) for name, value in tensors().items()}
    save_file(stored, tmp_path / "model.safetensors")
    with opened(tmp_path) as weights:
        for name, want in stored.items():
            found = weights.tensor(name)
            assert found.dtype == np.float32
            assert np.array_equal(found, want.float())


def edit_index(folder: Path, **changes: str) -> None:
    """Set entries of the index's weight map."""
    index = json.loads((folder / INDEX).read_text())
    index["weight_map"].update({f"model.{key}.weight": value for key, value in changes.items()})
    (folder / INDEX).write_text(json.dumps(index))


def cut(path: Path, by: int) -> None:
    """Take bytes off a file's end."""
    path.write_bytes(path.read_bytes()[:-by])


def save_int(folder: Path) -> None:
    """Give the first shard a tensor of integers."""
    part = {"model.t0.weight": torch.zeros(2, dtype=torch.int8), "model.t1.weight": torch.zeros(2)}
    save_file(part, folder / SHARDS[0])


def reshape(path: Path) -> None:
    """Claim a shape that the bytes of a tensor do not have."""
    data = path.read_bytes()
    assert data.count(b"[3,5]")
    path.write_bytes(data.replace(b"[3,5]", b"[3,6]", 1))


def claim(folder: Path, text: bytes, other: bytes) -> None:
    """Change what the first shard's header says, whatever its length becomes."""
    path = folder / SHARDS[0]
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = data[8 : 8 + length]
    assert text in header
    header = header.replace(text, other, 1)
    path.write_bytes(struct.pack("<Q", len(header)) + header + data[8 + length :])


FAULTS: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing shard": (lambda f: (f / SHARDS[1]).unlink(), rf"{SHARDS[1]}: missing"),
    "one byte short": (lambda f: cut(f / SHARDS[2], 1), rf"{SHARDS[2]}: .*model\.t5\.weight ends"),
    "no tensor of that name": (
        lambda f: edit_index(f, t9=SHARDS[0]),
        rf"{SHARDS[0]}: has no tensor model\.t9\.weight",
    ),
    "tensor in another shard": (
        lambda f: edit_index(f, t0=SHARDS[1]),
        rf"{SHARDS[1]}: has no tensor model\.t0\.weight",
    ),
    "two copies of one tensor": (
        lambda f: save_file(dict(list(tensors().items())[1:4]), f / SHARDS[1]),
        rf"{SHARDS[1]}: has tensor model\.t1\.weight, which .* places in {SHARDS[0]}",
    ),
    "a whole copy beside the shards": (
        lambda f: save_file(tensors(), f / "model.safetensors"),
        "model.safetensors is not part of the model",
    ),
    "index missing": (lambda f: (f / INDEX).unlink(), f"no {INDEX}"),
    "index not JSON": (lambda f: (f / INDEX).write_text("{"), "not valid JSON"),
    "index out of the folder": (lambda f: edit_index(f, t0="../x"), "not a file name"),
    "config missing": (lambda f: (f / "config.json").unlink(), r"config\.json: cannot be read"),
    "integers": (save_int, r"model\.t0\.weight is I8; supported are F32, F16, BF16"),
    "huge header": (
        lambda f: (f / SHARDS[0]).write_bytes(struct.pack("<Q", 2**60) + b"{}"),
        "claims 1152921504606846976 bytes",
    ),
    "damaged header": (
        lambda f: (f / SHARDS[0]).write_bytes(struct.pack("<Q", 2) + b"[]"),
        "header is damaged",
    ),
    **{
        f"header with {what}": (partial(claim, text=text, other=other), "header is damaged")
        for what, text, other in (
            ("an endless number", b"[0,60]", b"[0,1e999]"),
            ("a fraction", b"[3,5]", b"[3.5,5]"),
            ("a negative number", b"[3,5]", b"[-3,-5]"),
            ("deep lists", b"[3,5]", b"[" * 100_000 + b"]" * 100_000),
        )
    },
    "two tensors in one place": (
        lambda f: claim(f, b"[60,120]", b"[0,60]"),
        r"model\.t1\.weight does not begin where the one before it ends",
    ),
    "shape of other bytes": (
        lambda f: reshape(f / SHARDS[0]),
        r"model\.t0\.weight of shape \(3, 6\) has 60 bytes",
    ),
    "LFS pointer": (
        lambda f: (f / SHARDS[0]).write_text("version https://git-lfs.github.com/spec/v1\noid"),
        "Git LFS pointer",
    ),
}


@pytest.mark.parametrize(("kinds", "kind"), [((0, 30), 30), ((0,), 0)])
def test_a_matrix_stays_in_its_format_where_that_is_known(
    kinds: tuple[int, ...], kind: int, tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text("{}")
    value = tensors()["model.t0.weight"].to(torch.bfloat16)
    save_file({"a": value}, tmp_path / "model.safetensors")
    with opened(tmp_path) as weights:
        blocks = weights.blocks("a", kinds)
    assert (blocks.kind, blocks.shape) == (kind, (3, 5))
    found = dequantize(blocks.raw, blocks.kind, blocks.shape)
    assert np.array_equal(found, value.float())


@pytest.mark.parametrize("value", [torch.tensor(1.5), torch.zeros(0, 64), torch.zeros(3)])
def test_what_is_no_matrix_keeps_its_shape(value: torch.Tensor, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    save_file({"a": value}, tmp_path / "model.safetensors")
    with opened(tmp_path) as weights:
        assert weights.blocks("a", (0,)).shape == tuple(value.shape)
        assert weights.blocks("a", ()).shape == tuple(value.shape)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_damaged_folder_is_a_named_error(fault: str, folder: Path) -> None:
    damage, problem = FAULTS[fault]
    damage(folder)
    with pytest.raises(ModelLoadError, match=problem):
        open_weights(folder)


def test_pickled_weights_are_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "pytorch_model.bin").write_bytes(b"x")
    with pytest.raises(ModelLoadError, match="never loaded; convert them to safetensors"):
        open_weights(tmp_path)


def test_the_digest_follows_config_and_names(folder: Path) -> None:
    with opened(folder) as weights:
        first = weights.digest
    (folder / "config.json").write_text('{"hidden_size": 6}')
    with opened(folder) as weights:
        assert weights.digest != first
