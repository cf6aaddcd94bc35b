"""Norm, activation, cache, rotation, products, mask and sampling against their definitions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from unittest import mock

import numpy as np
import torch
from torch import Tensor

from plait.kernels import device as dispatch
from plait.kernels.activation import reference as activation
from plait.kernels.kv import reference as kv
from plait.kernels.linear import QuantizedFormat, from_blocks
from plait.kernels.linear import reference as linear
from plait.kernels.linear.quantized import BLOCK_BYTES
from plait.kernels.mask import reference as mask_reference
from plait.kernels.norm import reference as norm
from plait.kernels.rope import reference as rope
from plait.kernels.sampling import POINTS, DrawRow
from plait.kernels.sampling.gpu import SamplingRows, draw_as_defined
from plait.kernels.sampling.reference import draw as draw_one_by_one
from plait.runtime.sample_gpu import draw_rows

from .case import Case, bound_of, exact, random, relative_rms
from .random_blocks import FORMATS


def norm_error(num_rows: int, size: int, dtype: torch.dtype, device: torch.device) -> float:
    """Norm rows, rows of heads in a wider tensor, and sums."""
    from plait.kernels.norm.triton import add_rms_norm, rms_norm

    wide = random(num_rows, 5, size, dtype=dtype).to(device)
    weight, weights = random(size, dtype=dtype).to(device), random(3, size, dtype=dtype).to(device)
    x, residual = wide[:, 1], random(num_rows, size, dtype=dtype, seed=1).to(device)
    total = residual.clone()
    errors = [
        relative_rms(rms_norm(x, weight, 1e-5), norm.rms_norm(x, weight, 1e-5)),
        relative_rms(
            rms_norm(wide[:, 1:4], weights, 1e-5), norm.rms_norm(wide[:, 1:4], weights, 1e-5)
        ),
        relative_rms(
            add_rms_norm(x, total, weight, 1e-5), norm.rms_norm(residual + x, weight, 1e-5)
        ),
        relative_rms(total, residual + x),
    ]
    return max(errors)


def silu_error(num_rows: int, size: int, dtype: torch.dtype, device: torch.device) -> float:
    """Activate some rows."""
    from plait.kernels.activation.triton import silu_mul

    gate_up = random(num_rows, 2 * size, dtype=dtype).to(device)
    return relative_rms(silu_mul(gate_up), activation.silu_mul(gate_up))


def kv_error(block_size: int, num_tokens: int, device: torch.device) -> float:
    """Store parts of a wider tensor, copy in a cycle, gather; the rest of the pool stays NaN."""
    from plait.kernels.kv.triton import copy, gather, store

    num_blocks = -(-num_tokens // block_size) + 2
    k_cache = torch.full((num_blocks, block_size, 2, 48), torch.nan)
    v_cache = k_cache.clone()
    k_found, v_found = k_cache.to(device), v_cache.to(device)
    order = torch.Generator().manual_seed(0)
    slots = torch.randperm(num_blocks * block_size, generator=order)[:num_tokens]
    qkv = random(num_tokens, 7, 48)
    kv.store(qkv[:, 3:5], qkv[:, 5:], k_cache, v_cache, slots)
    moved = qkv.to(device)
    store(moved[:, 3:5], moved[:, 5:], k_found, v_found, slots.to(device))
    kv.copy(k_cache, v_cache, slots, slots.roll(1))
    copy(k_found, v_found, slots.to(device), slots.roll(1).to(device))
    gathered = gather(k_found, slots.to(device))
    return max(
        exact(k_found, k_cache), exact(v_found, v_cache), exact(gathered, kv.gather(k_cache, slots))
    )


def rope_error(num_tokens: int, head_dim: int, dtype: torch.dtype, device: torch.device) -> float:
    """Turn and store tokens at high positions; the rest of the pool stays NaN."""
    from plait.kernels.rope.triton import rope_and_store

    k_cache = torch.full((num_tokens + 1, 1, 2, head_dim), torch.nan)
    v_cache = k_cache.clone()
    k_found, v_found = k_cache.to(device, dtype), v_cache.to(device, dtype)
    slots = torch.arange(num_tokens).flip(0)
    positions = torch.arange(num_tokens) * 61
    inv_freq = 1.0 / 10000.0 ** (torch.arange(0, head_dim, 2) / head_dim)
    qkv = random(num_tokens, 3 + 2 * 2, head_dim, dtype=dtype)
    wanted = rope.rope_and_store(qkv.float(), positions, inv_freq, k_cache, v_cache, slots)
    q = rope_and_store(
        qkv.to(device),
        positions.int().to(device),
        inv_freq.to(device),
        k_found,
        v_found,
        slots.int().to(device),
    )
    return max(
        relative_rms(q, wanted),
        relative_rms(k_found.nan_to_num(9.0), k_cache.nan_to_num(9.0)),
        relative_rms(v_found.nan_to_num(9.0), v_cache.nan_to_num(9.0)),
    )


def quantized_error(
    form: QuantizedFormat,
    num_rows: int,
    sizes: tuple[int, int],
    dtype: torch.dtype,
    device: torch.device,
) -> float:
    """Multiply by random blocks, with a bias."""
    from plait.kernels.linear.triton import quantized_linear

    rng = np.random.default_rng(0)
    raw = rng.integers(0, 256, (sizes[0], sizes[1] // 32, BLOCK_BYTES[form])).astype(np.uint8)
    scales = rng.uniform(0.01, 0.1, (*raw.shape[:2], 2)).astype(np.float16)
    num_scales = 2 if form == "Q4_1" else 1
    raw[..., : 2 * num_scales] = scales[..., :num_scales].copy().view(np.uint8)
    x = random(num_rows, sizes[1], dtype=dtype).to(device)
    layer = from_blocks(
        torch.from_numpy(raw.reshape(sizes[0], -1)).to(device),
        form,
        random(sizes[0], dtype=dtype).to(device),
    )
    return relative_rms(quantized_linear(x, layer), linear.quantized_linear(x, layer))


def mask_error(width: int, device: torch.device) -> float:
    """Mask two of five rows with random bits."""
    from plait.kernels.mask.triton import apply_bitmask

    logits, rows = random(5, width).to(device), torch.tensor([3, 1], device=device)
    words = np.random.default_rng(0).integers(-(2**31), 2**31, (2, -(-width // 32)))
    bits = torch.from_numpy(words.astype(np.int32)).to(device)
    wanted = logits.clone()
    mask_reference.apply_bitmask(wanted, bits, rows)
    apply_bitmask(logits, bits, rows)
    return exact(logits, wanted)


def sampling_error(width: int, device: torch.device) -> float:
    """Give the share of rows drawn otherwise than defined, over many settings."""
    from plait.kernels.sampling.triton import draw

    settings = [
        (1.0, 0, 1.0, 0.0),
        (0.7, 1, 1.0, 0.0),
        (1.3, 5, 1.0, 0.0),
        (1.0, 0, 0.9, 0.0),
        (1.0, 50, 0.5, 0.0),
        (1.0, 0, 0.01, 0.0),
        (2.0, 7, 0.8, 0.1),
        (1e30, 3, 1.0, 0.0),
        (1e30, 0, 0.4, 0.0),
        (0.01, 0, 0.99, 0.0),
        (1.0, 10**6, 1.0, 0.3),
    ]
    logits = random(len(settings) * 2, width) * 3
    logits[1] = -torch.inf
    logits[2, : width // 2] = -torch.inf
    logits[len(settings) :] = logits[len(settings) :].round()  # many ties
    columns = torch.tensor(settings + settings)
    points = torch.rand(len(columns), generator=torch.Generator().manual_seed(width))
    rows = SamplingRows(
        temperature=columns[:, 0].contiguous(),
        top_k=columns[:, 1].int(),
        top_p=columns[:, 2].contiguous(),
        min_p=columns[:, 3].contiguous(),
        point=points,
    )
    wanted = draw_as_defined(logits, rows)
    moved = SamplingRows(*(_field(rows, name).to(device) for name in SamplingRows.__slots__))
    found = draw(logits.to(device), moved).cpu()
    return float((found != wanted).float().mean())


def rows_error(width: int, device: torch.device) -> float:
    """Give the share of rows that the runtime draws otherwise than defined, masks and all."""
    rng = np.random.default_rng(width)
    words = rng.integers(-(2**31), 2**31, (3, -(-width // 32))).astype(np.int32)
    known = np.full(-(-width // 32), -1, np.int32)
    # In tokens' order: what is past the width does not come.
    known[-1] = np.uint32((1 << (width - 1) % 32 + 1) - 1).astype(np.int32)
    rows = [
        DrawRow(known, mask, temperature, top_k, top_p, min_p, int(rng.integers(POINTS)))
        for mask in (None, *words)
        for temperature, top_k, top_p, min_p in (
            (0.0, 0, 1.0, 0.0), (0.7, 0, 1.0, 0.0), (1.5, 9, 1.0, 0.0), (1.0, 0, 0.8, 0.05)
        )
    ]  # fmt: skip
    logits = random(len(rows), width) * 3
    wanted = draw_one_by_one(logits.numpy(), rows)
    with mock.patch.object(dispatch, "uses_triton", return_value=True):
        found = draw_rows(logits.to(device), rows)
    return float(np.mean(np.array(found) != wanted))


def _field(rows: SamplingRows, name: str) -> Tensor:
    tensor = getattr(rows, name)
    assert isinstance(tensor, Tensor)
    return tensor


def small_cases(*, is_tiny: bool) -> Iterator[Case]:
    """Give the checks of all kernels but attention; the tiny ones are for the interpreter."""
    sizes = ((1, 16), (17, 130)) if is_tiny else ((1, 16), (17, 130), (130, 2048), (63, 5000))
    for dtype in (torch.float32, torch.bfloat16):
        bound, suffix = bound_of(dtype), str(dtype)[6:]
        for rows, size in sizes:
            name = f"{rows}x{size} {suffix}"
            yield Case(f"norm {name}", partial(norm_error, rows, size, dtype), bound)
            yield Case(f"silu_mul {name}", partial(silu_error, rows, size, dtype), bound)
        for rows, head_dim in ((1, 16), (17, 48), (5, 128)):
            name = f"rope_and_store {rows}x{head_dim} {suffix}"
            # Angles of some thousand radians have errors of 1e-4 in fp32, wherever computed.
            check = partial(rope_error, rows, head_dim, dtype)
            yield Case(name, check, max(bound, 1e-4))
        shapes = [(1, (17, 64)), (17, (130, 96)), (63, (16, 32))]
        for rows, shape in shapes if is_tiny else [*shapes, (1, (2048, 4096)), (500, (4096, 1024))]:
            for form in FORMATS:
                name = f"linear {form} {rows}x{shape[1]}x{shape[0]} {suffix}"
                yield Case(name, partial(quantized_error, form, rows, shape, dtype), bound)
    for block_size in (1, 16, 32, 64):
        yield Case(f"kv block {block_size}", partial(kv_error, block_size, 17), 0.0)
    for width in (1, 31, 63, 500) if is_tiny else (1, 31, 63, 500, 49152):
        yield Case(f"mask {width}", partial(mask_error, width), 0.0)
    for width in (17, 130) if is_tiny else (17, 130, 5000, 131072):
        # A weight at the edge of top-p may fall either side: one row in twenty, in wide rows.
        bound = 0.0 if is_tiny else 0.1
        yield Case(f"sampling {width}", partial(sampling_error, width), bound)
        yield Case(f"sampled rows {width}", partial(rows_error, width), bound)
