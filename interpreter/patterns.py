"""JSON Schema's `pattern` by plait's own automata: in time that grows with the text alone."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Any

NUM_DIALECTS = 16


@functools.lru_cache(NUM_DIALECTS)
def with_patterns(dialect: Any) -> Any:
    """Give a dialect of `jsonschema` whose keyword `pattern` does not backtrack."""
    from jsonschema.validators import extend

    return extend(dialect, {"pattern": _pattern})


def _pattern(validator: Any, pattern: str, instance: object, schema: object) -> Iterator[object]:
    from jsonschema.exceptions import ValidationError

    from ..runtime.grammar.schema.python_pattern import finds

    if not isinstance(instance, str):
        return
    found = finds(pattern, instance)
    if found is None:
        found = re.search(pattern, instance) is not None
    if not found:
        yield ValidationError(f"{instance!r} does not match {pattern!r}")
