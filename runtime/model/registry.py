"""A model from its files, ready to serve."""

from __future__ import annotations

import hashlib
import logging
import re
from pathlib import Path

from ...kernels.native import load_library, why_absent
from ..config import EngineConfig
from ..errors import ModelLoadError
from ..load.weights import Weights, opened
from .config import ModelConfig, read_config
from .host import return_freed_memory
from .interface import Model, Runner, Tokenizer
from .limits import choose_context
from .native import NativeRunner
from .native_weights import is_native, read_native
from .tokenizer import load_tokenizer

_log = logging.getLogger(__name__)

_DEVICE = re.compile(r"cpu|cuda(:\d+)?")


def load_model(path: Path, config: EngineConfig) -> Model:
    """Load a GGUF file, a pulled model's folder, or a Hugging Face folder.

    Raises: ModelLoadError, naming the file and the key or tensor that is wrong.
    """
    _check_device(config.device)
    tokenizer = load_tokenizer(path)
    with opened(path) as weights:
        try:
            shape = read_config(weights.config)
            _check_vocabulary(tokenizer, shape.vocab_size)
            choose_context(shape, config)  # refuses before the weights are read
            runner = _runner(shape, weights, config)
        except ModelLoadError as e:
            raise ModelLoadError(_located(path, str(e))) from e
        numerics = (config.is_exact, config.is_quantized)
        digest = _digest(weights.digest, tokenizer.digest, config.dtype, *map(str, numerics))
    return_freed_memory()  # of a tokenizer alone 30 MB: its JSON
    return Model(path.name, digest, tokenizer, runner)


def _runner(shape: ModelConfig, weights: Weights, config: EngineConfig) -> Runner:
    """Give the fastest runner for a model on a device; only one on torch imports torch."""
    is_able = config.is_native and config.device == "cpu" and config.dtype == "float32"
    window = shape.window_of(choose_context(shape, config))
    is_known = window is None and is_native(shape)
    library = load_library() if is_able and is_known else None
    if library is not None:
        return NativeRunner(read_native(shape, weights, library), library, config)
    if is_able and not library:
        reason = why_absent() or (
            "they do not know models of this shape"
            if window is None
            else f"they have no sliding_window, and the model's is {window}"
        )
        _log.warning("without plait's own kernels the model runs several times slower: %s", reason)
    from .on_torch import torch_runner

    return torch_runner(shape, weights, config)


def _check_device(name: str) -> None:
    if not _DEVICE.fullmatch(name):
        raise ModelLoadError(f"device {name!r} is unknown; give cpu, cuda or cuda:N")
    if name == "cpu":
        return
    from .on_torch import num_cuda_devices

    if int(name.partition(":")[2] or 0) >= num_cuda_devices():
        raise ModelLoadError(
            f"device {name!r}: torch finds {num_cuda_devices()} CUDA devices; give cpu"
        )


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
