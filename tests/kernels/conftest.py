"""The compiled kernels, once for each kind of processor that this machine is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from plait.kernels.native import Library, load_library


@pytest.fixture(params=["avx512", "avxvnni", "avx2", "portable"])
def library(request: pytest.FixtureRequest) -> Iterator[Library]:
    """Give the kernels for one kind, and set back afterwards what was chosen."""
    loaded = load_library()
    if loaded is None:
        pytest.skip("plait was installed without a C++ compiler")
    before = loaded.isa
    if not loaded.choose(request.param):
        pytest.skip(f"this processor does not know {request.param}")
    loaded.set_threads(2)
    yield loaded
    assert loaded.choose(before)
