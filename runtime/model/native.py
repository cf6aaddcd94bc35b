"""A model of the Llama family on the CPU's own kernels: one call of them a step."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ...kernels.native import Groups, Library, Reader, TiledCache, abi, aligned, plan_groups
from ..config import EngineConfig
from ..errors import ModelLoadError
from ..load.quants import Floats
from ..sequence import Batch
from .host import physical_cores
from .interface import ModelLimits
from .limits import limits_of
from .native_weights import NativeWeights
from .rope import inverse_frequencies

Arrays: TypeAlias = dict[str, npt.NDArray[np.generic]]

MOST_KEPT_ROWS = 64  # of logits, whose room is used again


class NativeRunner:
    """Runs a model on the compiled kernels; owns its weights and its KV pool.

    Sets the kernels' number of threads, once, for the whole process.
    """

    def __init__(self, weights: NativeWeights, library: Library, options: EngineConfig) -> None:
        config = self._config = weights.config
        self._weights, self._library = weights, library
        self._limits = limits = limits_of(config, options, 4 if options.is_exact else 2)
        self._inv_freq = inverse_frequencies(config.rope, config.head_dim)
        try:
            self.cache = TiledCache.make(
                config.num_layers,
                limits.num_blocks * limits.block_size,
                config.num_kv_heads,
                config.head_dim,
                is_bf16=not options.is_exact,
            )
        except MemoryError as e:
            raise ModelLoadError(
                f"no memory for a KV pool of {limits.num_blocks * limits.block_size} tokens; "
                "set kv_cache_tokens to fewer"
            ) from e
        self._layers = weights.layers()
        self._model = weights.struct(self._layers, is_exact=options.is_exact)
        self._cache_struct = self.cache.struct
        self._logits = self._new_room(0)
        self._largest = (ctypes.c_int64 * 0)()
        self._buffers = library.functions.plait_make_buffers()
        drop = weakref.finalize(self, library.functions.plait_drop_buffers, self._buffers)
        drop.atexit = False  # an engine's thread may still be in a step when the process ends
        library.set_threads(options.num_threads or physical_cores())

    @property
    def limits(self) -> ModelLimits:
        """Numbers the scheduler must know."""
        return self._limits

    @property
    def largest_ids(self) -> Sequence[int]:
        """The id of the largest logit in each row of the last pass; below 0: not all are finite."""
        return self._largest[:]

    def run(self, batch: Batch) -> Floats:
        """Compute one forward pass; give fp32 logits of `batch.logit_rows`, [r, width].

        The next pass may overwrite them.
        """
        logits = self._logits_room(len(batch.logit_rows))
        self._largest = (ctypes.c_int64 * len(logits))()
        arrays = self._arrays(batch)
        struct = abi.Batch(
            num_tokens=len(batch.token_ids),
            num_seqs=len(batch.seq_lens),
            max_blocks=batch.block_tables.shape[1],
            block_size=self._limits.block_size,
            num_copies=len(batch.copy_from),
            num_logits=len(batch.logit_rows),
            num_groups=len(arrays["group_rows"]) - 1,
            num_parts=len(arrays["parts"]),
            **{name: array.ctypes.data for name, array in arrays.items()},
        )
        self._library.functions.plait_step(
            ctypes.byref(self._model),
            ctypes.byref(self._cache_struct),
            ctypes.byref(struct),
            self._buffers,
            logits.ctypes.data,
            self._largest,
        )
        return logits

    def _logits_room(self, num_rows: int) -> Floats:
        """Give room for logits: new memory costs a page fault for each 1,024 numbers."""
        if num_rows > MOST_KEPT_ROWS:  # a prefill that is scored
            return self._new_room(num_rows)
        if num_rows > len(self._logits):
            self._logits = self._new_room(num_rows)
        return self._logits[:num_rows]

    def _new_room(self, num_rows: int) -> Floats:
        width = self._config.vocab_size
        return aligned(4 * num_rows * width).view(np.float32).reshape(num_rows, width)

    def _arrays(self, batch: Batch) -> Arrays:
        angles = batch.positions[:, None].astype(np.float32) * self._inv_freq
        groups = self._groups(batch)
        given = {
            "token_ids": (batch.token_ids, np.int32),
            "positions": (batch.positions, np.int32),
            "cos": (np.cos(angles), np.float32),
            "sin": (np.sin(angles), np.float32),
            "slots": (batch.slot_mapping, np.int64),
            "block_tables": (batch.block_tables, np.int32),
            "copy_from": (batch.copy_from, np.int64),
            "copy_to": (batch.copy_to, np.int64),
            "logit_rows": (batch.logit_rows, np.int64),
            "group_rows": (groups.group_rows, np.int32),
            "rows": (groups.rows, np.int32),
            "group_parts": (groups.group_parts, np.int32),
            "parts": (groups.parts, np.int32),
        }
        return {name: np.ascontiguousarray(array, kind) for name, (array, kind) in given.items()}

    def _groups(self, batch: Batch) -> Groups:
        bounds, lengths = batch.cu_seqlens.tolist(), batch.seq_lens.tolist()
        paths = batch.paths or ((),) * len(lengths)
        spans = zip(bounds[:-1], bounds[1:], lengths, paths, strict=True)
        readers = [Reader(*span) for span in spans]
        config = self._config
        return plan_groups(readers, config.num_heads // config.num_kv_heads)
