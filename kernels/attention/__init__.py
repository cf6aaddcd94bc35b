"""Attention over a paged KV cache: prefill chunks and decodes, mixed, in one call.

A device with its own kernels is told apart here. Until one has them, `cpu.py` serves all:
it is made of torch's own operations.
"""

from __future__ import annotations

from .cpu import paged_attention
from .plan import AttentionGroup, AttentionPlan, plan_attention

__all__ = ["AttentionGroup", "AttentionPlan", "paged_attention", "plan_attention"]
