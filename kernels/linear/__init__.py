"""Matrix products with a model's weights. A device or format with its own kernel goes here."""

from __future__ import annotations

from .reference import linear

__all__ = ["linear"]
