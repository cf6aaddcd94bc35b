"""The options of a scripted backend: those of every engine, and its own."""

from __future__ import annotations

import pytest

import plait
from plait.interpreter.backends.scripted import ScriptedBackend


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"block_sise": 1}, "block_sise.*block_size"),
        ({"max_context": 0}, "max_context=0"),
        ({"kv_cache_tokens": -1}, "kv_cache_tokens=-1"),
        ({"template": 3}, "template=3"),
    ],
)
def test_a_wrong_option_is_refused_by_name(options: dict[str, object], message: str) -> None:
    with pytest.raises(plait.InvalidArgument, match=message):
        plait.scripted(lambda text: "ok", **options)  # type: ignore[arg-type]


def test_a_script_that_is_no_function_is_refused() -> None:
    with pytest.raises(plait.InvalidArgument, match="script='ok': pass a function"):
        plait.scripted("ok")  # type: ignore[arg-type]


def test_the_engines_options_reach_the_engine() -> None:
    backend = plait.scripted(lambda text: "ok", max_context=64, kv_cache_tokens=128, block_size=32)
    assert isinstance(backend, ScriptedBackend)
    assert backend.capabilities().max_context == 64
    assert backend.stats().num_blocks == 4
    backend.close()
