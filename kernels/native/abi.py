"""What Python and the native kernels pass each other: `abi.h`, field by field."""

from __future__ import annotations

from ctypes import POINTER, Structure, c_double, c_float, c_int32, c_int64, c_uint64, c_void_p

VERSION = 3  # kVersion; a library of another version is not used
BLOCK = 32  # numbers that share a scale
TILE = 16  # output rows of a weight, or tokens of a cache, that lie side by side
CHUNK = 128  # tokens that attention looks at together
MAX_HEAD_DIM = 512

KIND_Q4, KIND_Q8, KIND_BF16, KIND_F32 = range(4)


class Linear(Structure):
    """A packed weight [rows, cols]."""

    _fields_ = (
        *(("data", c_void_p), ("bias", c_void_p)),
        *(("kind", c_int32), ("rows", c_int32), ("cols", c_int32), ("reserved", c_int32)),
    )


class Layer(Structure):
    """The weights of one layer."""

    _fields_ = (
        *(("input_norm", c_void_p), ("post_norm", c_void_p)),
        *(("q_norm", c_void_p), ("k_norm", c_void_p)),
        *((name, Linear) for name in ("q", "k", "v", "o", "gate", "up", "down")),
    )


class Model(Structure):
    """The shape and the weights of a model."""

    _fields_ = (
        *(("num_layers", c_int32), ("hidden", c_int32), ("num_heads", c_int32)),
        *(("num_kv_heads", c_int32), ("head_dim", c_int32), ("inner", c_int32)),
        *(("vocab", c_int32), ("is_exact", c_int32), ("eps", c_float), ("reserved", c_int32)),
        *(("norm", c_void_p), ("embedding", Linear), ("head", Linear)),
        ("layers", POINTER(Layer)),
    )


class Cache(Structure):
    """The tiles of K and V of all layers."""

    _fields_ = (
        *(("data", c_void_p), ("num_slots", c_int64)),
        *(("is_bf16", c_int32), ("reserved", c_int32)),
    )


COUNTS = (
    *("num_tokens", "num_seqs", "max_blocks", "block_size", "num_copies", "num_logits"),
    *("num_groups", "num_parts"),
)
ARRAYS = (
    *("token_ids", "positions", "cos", "sin", "slots", "block_tables", "copy_from", "copy_to"),
    *("logit_rows", "group_rows", "rows", "group_parts", "parts"),
)


class Batch(Structure):
    """One forward pass."""

    _fields_ = (*((name, c_int32) for name in COUNTS), *((name, c_void_p) for name in ARRAYS))


class DrawRow(Structure):
    """How a token is drawn from a row of logits."""

    _fields_ = (
        *(("known", c_void_p), ("mask", c_void_p), ("point", c_uint64)),
        *(("top_p", c_double), ("min_p", c_double), ("temperature", c_float)),
        *(("mask_len", c_int32), ("top_k", c_int32), ("reserved", c_int32)),
    )
