"""Rotary position embedding. A device with its own kernel is told apart here."""

from __future__ import annotations

from .cpu import Rotation, apply_rope, rotation

__all__ = ["Rotation", "apply_rope", "rotation"]
