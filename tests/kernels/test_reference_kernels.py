"""The definitions that only GPUs have fast versions of are what they say."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from plait.kernels.activation import silu_mul
from plait.kernels.activation.reference import silu_mul as reference_silu_mul
from plait.kernels.attention import reference as attention
from plait.kernels.linear import from_blocks, quantized_linear
from plait.kernels.linear.quantized import BLOCK_BYTES, QuantizedFormat
from plait.kernels.linear.reference import dequantize
from plait.kernels.norm import add_rms_norm
from plait.kernels.norm.reference import rms_norm
from plait.kernels.rope import apply_rope, rope_and_store, rotation
from plait.kernels.sampling.gpu import SamplingRows, draw
from plait.runtime.load import quants

KINDS: list[tuple[QuantizedFormat, int]] = [("Q4_0", 2), ("Q4_1", 3), ("Q8_0", 8)]


@pytest.mark.parametrize(("form", "kind"), KINDS)
def test_planes_hold_what_the_blocks_of_a_file_hold(form: QuantizedFormat, kind: int) -> None:
    rng = np.random.default_rng(0)
    raw = rng.integers(0, 256, (5, 3, BLOCK_BYTES[form])).astype(np.uint8)
    raw[..., :4] = rng.uniform(0.1, 1.0, (5, 3, 2)).astype(np.float16).view(np.uint8)
    wanted = torch.from_numpy(quants.dequantize(raw.reshape(-1), kind, (5, 96)))
    layer = from_blocks(torch.from_numpy(raw.reshape(5, -1)), form, torch.ones(5))
    torch.testing.assert_close(dequantize(layer), wanted, rtol=0, atol=0)
    x = torch.randn(2, 96)
    torch.testing.assert_close(quantized_linear(x, layer), x @ wanted.T + 1)


def test_a_window_is_the_whole_of_a_shorter_context() -> None:
    torch.manual_seed(0)
    q, k, v = torch.randn(1, 2, 8), torch.randn(4, 16, 1, 8), torch.randn(4, 16, 1, 8)
    at = torch.tensor([0, 1]), torch.tensor([64]), torch.tensor([[2, 0, 3, 1]])
    last = torch.tensor([0, 1]), torch.tensor([16]), torch.tensor([[1]])
    found = attention.paged_attention(q, k, v, *at, 0.3, 16)
    torch.testing.assert_close(found, attention.paged_attention(q, k, v, *last, 0.3))
    whole = attention.paged_attention(q, k, v, *at, 0.3)
    torch.testing.assert_close(attention.paged_attention(q, k, v, *at, 0.3, 64), whole)


def test_merged_parts_are_the_attention_of_all_keys() -> None:
    torch.manual_seed(0)
    scores, values = torch.randn(3, 2, 20), torch.randn(20, 8)
    cuts = (slice(0, 7), slice(7, 7), slice(7, 20))
    parts = torch.stack([scores[..., cut].softmax(-1) @ values[cut] for cut in cuts], 2)
    parts[:, :, 1] = torch.nan
    lse = torch.stack([scores[..., cut].logsumexp(-1) for cut in cuts], 2) / np.log(2)
    torch.testing.assert_close(attention.merge(parts, lse), scores.softmax(-1) @ values)
    assert not attention.merge(parts, torch.full_like(lse, -torch.inf)).any()


def test_the_fused_operations_are_their_parts() -> None:
    torch.manual_seed(0)
    x, residual, weight = torch.randn(3, 16), torch.randn(3, 16), torch.randn(16)
    total = residual.clone()
    found = add_rms_norm(x, total, weight, 1e-5)
    torch.testing.assert_close(total, residual + x)
    torch.testing.assert_close(found, rms_norm(residual + x, weight, 1e-5))
    torch.testing.assert_close(silu_mul(total), reference_silu_mul(total))
    qkv, positions, freq = torch.randn(3, 4, 8), torch.tensor([5, 6, 900]), torch.rand(4)
    k_cache, v_cache = torch.zeros(2, 16, 1, 8), torch.zeros(2, 16, 1, 8)
    slots = torch.tensor([20, 3, 31], dtype=torch.int32)
    q = rope_and_store(qkv, positions, freq, k_cache, v_cache, slots)
    turned = apply_rope(qkv[:, :3], rotation(positions, freq, torch.float32))
    torch.testing.assert_close(q, turned[:, :2])
    torch.testing.assert_close(k_cache.view(32, 8)[slots.long()], turned[:, 2])
    assert torch.equal(v_cache.view(32, 8)[slots.long()], qkv[:, 3])


def rows(top_k: int, top_p: float, min_p: float, point: float) -> SamplingRows:
    return SamplingRows(
        torch.ones(1),
        torch.tensor([top_k], dtype=torch.int32),
        torch.tensor([top_p]),
        torch.tensor([min_p]),
        torch.tensor([point]),
    )


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        (rows(0, 1.0, 0.0, 0.05), 0),
        (rows(0, 1.0, 0.0, 0.15), 1),
        (rows(0, 1.0, 0.0, 0.999), 4),
        (rows(1, 1.0, 0.0, 0.999), 1),
        (rows(2, 1.0, 0.0, 0.999), 2),
        (rows(0, 0.3, 0.0, 0.999), 1),
        (rows(0, 0.5, 0.0, 0.999), 2),
        (rows(0, 1.0, 0.6, 0.999), 2),
    ],
)
def test_a_draw_falls_where_the_kept_weight_says(settings: SamplingRows, wanted: int) -> None:
    logits = torch.tensor([[0.1, 0.35, 0.35, 0.0, 0.2]]).log()  # token 3 is refused
    assert draw(logits, settings).tolist() == [wanted]


def test_a_row_of_refused_tokens_draws_none() -> None:
    assert draw(torch.full((1, 4), -torch.inf), rows(0, 1.0, 0.0, 0.5)).tolist() == [-1]
