"""The way of a batch to a GPU: one copy from pinned memory, and passes recorded as graphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Forward: TypeAlias = Callable[[], Tensor]
ALIGNMENT = 4  # numbers: kernels read 16 bytes at a time


class Staging:
    """Sends arrays as int32 in one copy; owns the buffers on both sides.

    Arrays of the same shapes land at the same addresses each time, which graphs need. There are
    two buffers on the host, so that one can be filled while the other is still being read.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._host: list[Tensor] = []
        self._is_sent: list[torch.cuda.Event] = []
        self._target = torch.empty(0, dtype=torch.int32, device=device)
        self._turn = 0

    def send(self, arrays: Mapping[str, npt.NDArray[np.integer]]) -> dict[str, Tensor]:
        """Start copying; give the tensors on the device, valid until the next `send`.

        Waits only for the copy before the last, which the last result has passed already.
        """
        bounds = np.cumsum([0, *(-(-a.size // ALIGNMENT) * ALIGNMENT for a in arrays.values())])
        self._reserve(int(bounds[-1]))
        self._turn = 1 - self._turn
        if self._is_sent:
            self._is_sent[self._turn].synchronize()
        host = self._host[self._turn].numpy()
        sent: dict[str, Tensor] = {}
        for (name, array), begin in zip(arrays.items(), bounds.tolist(), strict=False):
            host[begin : begin + array.size] = array.reshape(-1)
            sent[name] = self._target[begin : begin + array.size].view(array.shape)
        num = int(bounds[-1])
        self._target[:num].copy_(self._host[self._turn][:num], non_blocking=True)
        if self._is_sent:
            self._is_sent[self._turn].record()
        return sent

    def _reserve(self, num: int) -> None:
        """Make room for `num` numbers."""
        if num <= len(self._target) and self._host:
            return
        size = 1 << max(10, (num - 1).bit_length())
        is_cuda = self._device.type == "cuda"
        self._target = torch.empty(size, dtype=torch.int32, device=self._device)
        self._host = [torch.zeros(size, dtype=torch.int32, pin_memory=is_cuda) for _ in range(2)]
        if is_cuda:
            make = torch.cuda.Event
            self._is_sent = [make(), make()]  # type: ignore[no-untyped-call]


def recorder() -> Callable[[Forward], Forward]:
    """Give a function that records passes as CUDA graphs, which share memory on the way.

    It gives what replays a pass, always into the same output. Each pass is run twice first:
    kernels are compiled, and libraries make their workspaces.
    """
    pool = torch.cuda.graph_pool_handle()

    def record(forward: Forward) -> Forward:
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(2):
                forward()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool):
            out = forward()
        return partial(_replay, graph, out)

    return record


def _replay(graph: torch.cuda.CUDAGraph, out: Tensor) -> Tensor:
    graph.replay()
    return out
