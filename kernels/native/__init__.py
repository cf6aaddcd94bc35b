"""A whole forward pass in C++, for CPUs: packed weights, a tiled KV cache, one call a step.

Optional: `load_library` gives None where plait was installed without a C++ compiler.
"""

from __future__ import annotations

from .cache import TiledCache
from .groups import Groups, Reader, plan_groups
from .library import Library, load_library, why_absent
from .packed import FORMATS, Arena, Packed, aligned, pack

__all__ = [
    "FORMATS",
    "Arena",
    "Groups",
    "Library",
    "Packed",
    "Reader",
    "TiledCache",
    "aligned",
    "load_library",
    "pack",
    "plan_groups",
    "why_absent",
]
