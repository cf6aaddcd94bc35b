"""A model from its files, ready to serve."""

from __future__ import annotations

import hashlib
from pathlib import Path

import torch

from ...kernels.device import uses_triton
from ..config import EngineConfig
from ..errors import ModelLoadError
from ..load.weights import opened
from .config import read_config
from .cuda import CudaRunner
from .interface import Model, Runner, Tokenizer
from .llama import Llama, read_llama
from .runner import TorchRunner, choose_context
from .tokenizer import load_tokenizer

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def load_model(path: Path, config: EngineConfig) -> Model:
    """Load a GGUF file, a pulled model's folder, or a Hugging Face folder.

    Raises: ModelLoadError, naming the file and the key or tensor that is wrong.
    """
    device = _device(config.device)
    tokenizer = load_tokenizer(path)
    with opened(path) as weights:
        try:
            shape = read_config(weights.config)
            _check_vocabulary(tokenizer, shape.vocab_size)
            choose_context(shape, config)  # refuses before the weights are read
            llama = read_llama(shape, weights, _DTYPES[config.dtype], device)
        except ModelLoadError as e:
            raise ModelLoadError(_located(path, str(e))) from e
        digest = _digest(weights.digest, tokenizer.digest, config.dtype)
    return Model(path.name, digest, tokenizer, _runner_of(llama, config))


def _runner_of(llama: Llama, config: EngineConfig) -> Runner:
    """Give the fastest runner for a model where it lies."""
    if uses_triton(llama.embedding):
        return CudaRunner(llama, config)
    return TorchRunner(llama, config)


def _device(name: str) -> torch.device:
    try:
        device = torch.device(name)
    except RuntimeError as e:
        raise ModelLoadError(f"device {name!r} is unknown; give cpu, cuda or cuda:N") from e
    if device.type not in ("cpu", "cuda"):
        raise ModelLoadError(f"device {name!r} is not supported; give cpu, cuda or cuda:N")
    if device.type == "cuda" and not (device.index or 0) < torch.cuda.device_count():
        raise ModelLoadError(
            f"device {name!r}: torch finds {torch.cuda.device_count()} CUDA devices; give cpu"
        )
    return device


def _located(path: Path, message: str) -> str:
    return message if str(path) in message else f"{path}: {message}"


def _check_vocabulary(tokenizer: Tokenizer, num_rows: int) -> None:
    if tokenizer.vocab_size > num_rows:
        raise ModelLoadError(
            f"the tokenizer has ids up to {tokenizer.vocab_size - 1} and the embedding "
            f"{num_rows} rows; they do not belong together"
        )


def _digest(*parts: str) -> str:
    """Name all that a cached K and V depends on."""
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()
