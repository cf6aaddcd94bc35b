"""Keys and values in their paged cache: store, copy, gather.

A device with its own kernels is told apart here; until then `cpu.py`, torch's indexed
operations, serves all.
"""

from __future__ import annotations

from .cpu import copy, gather, store

__all__ = ["copy", "gather", "store"]
