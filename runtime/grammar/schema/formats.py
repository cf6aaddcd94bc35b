"""The formats of JSON Schema that are regular, as expressions over the string's characters."""

from __future__ import annotations

from ..expr import Expr


def format_language(name: str) -> Expr | None:
    """Give the texts of a format; None for one that only a check at the end can judge."""
    raise NotImplementedError
