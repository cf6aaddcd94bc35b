"""A model on torch: on GPUs, and wherever the compiled kernels cannot be used."""

from __future__ import annotations

import torch

from ...kernels.device import uses_triton
from ..config import EngineConfig
from .config import ModelConfig
from .cuda import CudaRunner
from .interface import Runner
from .llama import read_llama
from .runner import TorchRunner
from .tensors import BlockSource

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def torch_runner(shape: ModelConfig, weights: BlockSource, config: EngineConfig) -> Runner:
    """Read a model and give its runner.

    Raises: ModelLoadError, naming the key or tensor that is wrong.
    """
    device = torch.device(config.device)
    has_kernels = uses_triton(torch.empty(0, device=device))
    llama = read_llama(
        shape,
        weights,
        _DTYPES[config.dtype],
        device,
        is_quantized=config.is_quantized and has_kernels,
    )
    return CudaRunner(llama, config) if has_kernels else TorchRunner(llama, config)


def num_cuda_devices() -> int:
    """Count the GPUs that torch finds."""
    return torch.cuda.device_count()
