"""The definition of paged attention, one query row after the other."""

from __future__ import annotations

import torch
from torch import Tensor


def paged_attention(
    q: Tensor,  # [T, H, D]
    k_cache: Tensor,  # [num_blocks, block_size, KVH, D]
    v_cache: Tensor,  # [num_blocks, block_size, KVH, D]
    cu_seqlens: Tensor,  # [n + 1]
    seq_lens: Tensor,  # [n]
    block_tables: Tensor,  # [n, max blocks]
    scale: float,
    window: int | None = None,
) -> Tensor:
    """Attend each new token to its own sequence, up to and including itself; [T, H, D].

    The new tokens of a sequence are the last of its `seq_lens` tokens, and their K and V are
    in the cache already. Heads share KV heads in groups of H / KVH neighbours. With a `window`
    a token sees that many of them, itself included.
    """
    out = torch.empty_like(q)
    block_size, group = k_cache.shape[1], q.shape[1] // k_cache.shape[2]
    for seq_id, seq_len in enumerate(seq_lens.tolist()):
        begin, end = cu_seqlens[seq_id].item(), cu_seqlens[seq_id + 1].item()
        for row in range(int(begin), int(end)):
            seen = seq_len - int(end) + row + 1
            first = 0 if window is None else max(0, seen - window)
            positions = torch.arange(first, seen, device=q.device)
            blocks = block_tables[seq_id].to(q.device)[positions // block_size].long()
            k = k_cache[blocks, positions % block_size].repeat_interleave(group, dim=1)
            v = v_cache[blocks, positions % block_size].repeat_interleave(group, dim=1)
            scores = torch.einsum("hd,lhd->hl", q[row].double(), k.double()) * scale
            out[row] = torch.einsum("hl,lhd->hd", scores.softmax(-1), v.double()).to(q.dtype)
    return out


def merge(parts: Tensor, lse: Tensor) -> Tensor:
    """Merge parts [d, H, P, D] of attention by their log2-sum-exp2 `lse` [d, H, P]; [d, H, D].

    A part with an lse of -inf is empty, whatever stands in it; rows of empty parts are zero.
    """
    sizes = torch.where(lse == -torch.inf, 0.0, torch.exp2(lse - lse.amax(-1, keepdim=True)))
    values = torch.where((lse == -torch.inf)[..., None], 0.0, parts)
    total = sizes.sum(-1, keepdim=True)
    weights = sizes / torch.where(total == 0, 1.0, total)
    return (values * weights[..., None]).sum(2)
