"""The default backend: started once, replaced, closed by its owner alone."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

import pytest

from plait.interpreter.backend import (
    Backend,
    Capabilities,
    Listener,
    Session,
    SessionConfig,
)
from plait.interpreter.defaults import (
    DefaultBackend,
    OwnBackend,
    checked_backend,
    set_default_backend,
)
from plait.interpreter.program import function
from plait.lang.errors import InvalidArgument
from plait.lang.state import State


class Closable:
    """A backend that counts how often it is closed."""

    def __init__(self) -> None:
        self.num_closed = 0
        self.is_lost = False

    def capabilities(self) -> Capabilities:
        raise NotImplementedError

    def open(
        self, config: SessionConfig, listener: Listener, on_lost: Callable[[Exception], None]
    ) -> Session:
        raise NotImplementedError

    def close(self) -> None:
        self.num_closed += 1


class Owner(DefaultBackend):
    """An owner whose own backends are counted instead of started."""

    def __init__(self) -> None:
        super().__init__()
        self.started: list[Closable] = []

    def _start(self) -> OwnBackend:
        time.sleep(0.01)
        self.started.append(Closable())
        return self.started[-1]


def test_the_first_use_starts_one_for_all_threads() -> None:
    owner = Owner()
    assert not owner.is_ready
    found: list[Backend] = []
    threads = [threading.Thread(target=lambda: found.append(owner.get())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(owner.started) == 1
    assert found == owner.started * 8
    assert owner.is_ready


def test_a_replaced_one_is_closed_and_a_foreign_one_is_not() -> None:
    owner, foreign = Owner(), Closable()
    owner.get()
    owner.set(foreign)
    assert owner.started[0].num_closed == 1
    assert owner.get() is foreign
    owner.set(None)
    assert foreign.num_closed == 0
    assert owner.get() is owner.started[1]


def test_one_that_died_is_started_again() -> None:
    owner = Owner()
    owner.get()
    owner.started[0].is_lost = True
    assert not owner.is_ready
    assert owner.get() is owner.started[1]
    assert owner.started[0].num_closed == 1


def test_close_is_idempotent() -> None:
    owner = Owner()
    owner.close()
    owner.get()
    owner.close()
    owner.close()
    assert owner.started[0].num_closed == 1


def test_a_forked_child_starts_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    owner = Owner()
    owner.get()
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert not owner.is_ready
    assert owner.get() is owner.started[1]
    owner.close()
    assert [backend.num_closed for backend in owner.started] == [0, 1]


@pytest.mark.parametrize("value", ["smollm2", 3, Closable])
def test_what_is_no_backend_is_refused_at_the_call(value: object) -> None:
    def program(s: State) -> None:
        raise AssertionError("it must not run")

    for call in (
        lambda: set_default_backend(value),  # type: ignore[arg-type]
        lambda: function(program).options(backend=value),
        lambda: function(program).run(backend=value),
        lambda: function(program).run_batch([{}], backend=value),
    ):
        with pytest.raises(InvalidArgument, match="is not a backend; pass one") as caught:
            call()
        assert repr(value) in str(caught.value)


def test_a_models_name_in_place_of_a_backend_says_how_to_load_it() -> None:
    with pytest.raises(InvalidArgument, match=r"plait\.local\('smollm2'\)"):
        checked_backend("smollm2")
