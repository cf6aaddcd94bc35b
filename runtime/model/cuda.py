"""Execute batches on an NVIDIA GPU: fused kernels, decodes as recorded graphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from ...kernels.attention import GpuPlan, PlanShape
from ...kernels.attention.gpu_plan import TILE_WIDTH, Arrays, choose_splits
from ...kernels.tuning import choose, shape_class
from ..config import EngineConfig
from ..errors import ModelLoadError
from ..sequence import Batch
from .config import ModelConfig
from .cuda_batch import (
    BUCKETS,
    Bucket,
    batch_arrays,
    bucket_size,
    empty_arrays,
    pad_arrays,
    prefix_capacity,
)
from .cuda_layers import CudaStep, forward
from .cuda_staging import Forward, Staging, recorder
from .interface import ModelLimits
from .llama import Llama
from .runner import TorchRunner

WARM_ROWS = 64  # as many as the products with quantised weights take for many
_PLAN_ARRAYS = (
    "cu_seqlens", "seq_lens", "block_tables", "decode_ids", "decode_rows", "begins", "tiles",
    "prefix_tiles",
)  # fmt: skip


class CudaRunner(TorchRunner):
    """Runs a model of the Llama family on a GPU; owns its weights, its KV pool and its graphs.

    The pool's last block is the runner's own: padded rows write there. When the runner is made,
    the graphs are recorded, one or two for each bucket, and a prefill is run. `capture` is for
    tests.

    Raises: ModelLoadError for a context or a pool that cannot be had.
    """

    def __init__(
        self,
        model: Llama,
        config: EngineConfig,
        capture: Callable[[Forward], Forward] | None = None,
    ) -> None:
        super().__init__(model, config)
        self._enter_device()
        num_blocks = self._limits.num_blocks - 1
        if num_blocks < 1:
            raise ModelLoadError(
                "kv_cache_tokens: on a GPU the pool needs two blocks, one of them for padding; "
                f"pass {2 * config.block_size} or more"
            )
        self._limits = replace(self._limits, num_blocks=num_blocks)
        self._scratch_slot = num_blocks * config.block_size
        self._shape = _plan_shape(model.config, self._limits, self._dtype, self._device)
        self._staging = Staging(self._device)
        self._stagings: dict[Bucket, Staging] = {}
        self._graphs: dict[Bucket, Forward] = {}
        capture = capture or recorder()
        for num_seqs in reversed(BUCKETS):  # the smaller fit into the memory of the larger
            if num_seqs < 2 * config.max_running:
                for capacity in sorted({0, prefix_capacity(num_seqs, self._shape)}):
                    self._record(Bucket(num_seqs, self._max_blocks, capacity), capture)
        self._warm_up()

    def _warm_up(self) -> None:
        """Run a prefill within the scratch block: kernels are compiled now, before any request."""
        num = WARM_ROWS
        scratch = np.full(1, self._scratch_slot, np.int64)
        self.run(
            Batch(
                token_ids=np.zeros(num, np.int32),
                positions=np.arange(num, dtype=np.int32),
                slot_mapping=scratch.repeat(num),
                cu_seqlens=np.array([0, num], np.int32),
                seq_lens=np.array([num], np.int32),
                block_tables=np.full((1, num), self._limits.num_blocks, np.int32),
                copy_from=scratch,
                copy_to=scratch,
                logit_rows=np.zeros(0, np.int64),
            )
        )

    def _enter_device(self) -> None:
        """Make the model's device this thread's own, which Triton launches on."""
        if self._device.type == "cuda":
            torch.cuda.set_device(self._device)

    @property
    def graphs(self) -> Mapping[Bucket, Forward]:
        """The recorded passes of decodes; each replays what was staged for it last."""
        return self._graphs

    @property
    def _max_blocks(self) -> int:
        return -(-self._limits.max_context // self._limits.block_size)

    @torch.inference_mode()
    def run(self, batch: Batch) -> Tensor:
        """Compute one forward pass; give fp32 logits of `batch.logit_rows`, [r, width].

        Does not wait for the device. The logits of decodes are valid until the next call.
        """
        self._enter_device()
        arrays = batch_arrays(batch, self._shape)
        num_seqs = bucket_size(batch)
        if num_seqs is not None:
            has_prefix = len(arrays["prefix_tiles"]) > 0
            capacity = prefix_capacity(num_seqs, self._shape) if has_prefix else 0
            bucket = Bucket(num_seqs, self._max_blocks, capacity)
            if bucket in self._graphs:
                return self._replay(bucket, arrays)
        tensors = self._staging.send(arrays)
        longest = int(batch.seq_lens.max(initial=0))
        splits = choose_splits(len(arrays["decode_ids"]), self._shape, longest)
        return forward(self._model, self._step_of(tensors, splits), self._cache)

    def _replay(self, bucket: Bucket, arrays: Arrays) -> Tensor:
        """Run a batch of decodes as a recorded graph."""
        rows = arrays["logit_rows"]
        self._stagings[bucket].send(pad_arrays(arrays, bucket, self._scratch_slot))
        logits = self._graphs[bucket]()
        if np.array_equal(rows, np.arange(len(rows))):
            return logits[: len(rows)]
        return logits.index_select(0, self._staging.send({"logit_rows": rows})["logit_rows"])

    @torch.inference_mode()
    def _record(self, bucket: Bucket, capture: Callable[[Forward], Forward]) -> None:
        """Record the graph of a bucket, on rows that are all padding."""
        staging = self._stagings[bucket] = Staging(self._device)
        tensors = staging.send(empty_arrays(bucket, self._scratch_slot))
        none = torch.empty(0, dtype=torch.int32, device=self._device)
        tensors |= {"copy_from": none, "copy_to": none, "tiles": none.view(0, TILE_WIDTH)}
        splits = choose_splits(bucket.num_seqs, self._shape, self._limits.max_context)
        step = self._step_of(tensors, splits)
        self._graphs[bucket] = capture(lambda: forward(self._model, step, self._cache))

    def _step_of(self, tensors: dict[str, Tensor], num_splits: int) -> CudaStep:
        plan = {name: tensors[name] for name in _PLAN_ARRAYS}
        return CudaStep(
            token_ids=tensors["token_ids"],
            positions=tensors["positions"],
            slot_mapping=tensors["slot_mapping"],
            copy_from=tensors["copy_from"],
            copy_to=tensors["copy_to"],
            logit_rows=tensors.get("logit_rows"),
            plan=GpuPlan(shape=self._shape, num_splits=num_splits, **plan),
        )


def _plan_shape(
    model: ModelConfig, limits: ModelLimits, dtype: torch.dtype, device: torch.device
) -> PlanShape:
    size = shape_class(model.head_dim, dtype)
    return PlanShape(
        num_heads=model.num_heads,
        num_kv_heads=model.num_kv_heads,
        block_size=limits.block_size,
        extend_rows=choose("extend", size, device).block_m,
        prefix_rows=choose("prefix", size, device).block_m,
        window=model.window_of(limits.max_context),
    )
