"""JSON objects from a model's files."""

from __future__ import annotations

import json
from pathlib import Path

from ..errors import ModelLoadError


def read_json(path: Path) -> dict[str, object]:
    """Read a JSON object.

    Raises: ModelLoadError, naming the file.
    """
    try:
        value = json.loads(path.read_text("utf-8"))
    except OSError as e:
        raise ModelLoadError(f"{path}: cannot be read: {e.strerror}") from e
    except ValueError as e:
        raise ModelLoadError(f"{path}: not valid JSON: {e}") from e
    if not isinstance(value, dict):
        raise ModelLoadError(f"{path}: not a JSON object")
    return value
