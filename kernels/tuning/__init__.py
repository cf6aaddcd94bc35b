"""Block sizes of the Triton kernels, by kernel, shape and device."""

from __future__ import annotations

from .configs import Config, capability_of, choose, shape_class

__all__ = ["Config", "capability_of", "choose", "shape_class"]
