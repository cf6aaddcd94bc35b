"""The backend of tests that need no particular one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from plait import Backend, scripted

from .programs import replies


@pytest.fixture(scope="module")
def backend() -> Iterator[Backend]:
    """A model that answers by how the prompt ends."""
    opened = scripted(replies, max_context=4096)
    yield opened
    opened.close()
