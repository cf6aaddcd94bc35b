"""The tokens that close a JSON string, by the text that they close it with."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

_CLOSED = re.compile(rb'(?:[^"\\]|\\.)*"', re.DOTALL)


def closings(tokens: Iterable[bytes]) -> Mapping[str, tuple[bytes, ...]]:
    """Give all ways to write a text with its closing quote that some token begins with."""
    spelt = {found[0] for data in tokens if b'"' in data and (found := _CLOSED.match(data))}
    by_text: dict[str, tuple[bytes, ...]] = {}
    for data in sorted(spelt):
        try:
            text = json.loads(f'"{data.decode()}')
        except ValueError:  # it begins inside a character, or is no JSON
            continue
        by_text[text] = (*by_text.get(text, ()), data)
    return by_text
