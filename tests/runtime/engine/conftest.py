"""A rig for each test that asks for one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .rig import Rig


@pytest.fixture
def rig() -> Iterator[Rig]:
    rig = Rig()
    yield rig
    rig.grammars.gate.set()
    rig.thread.close()
