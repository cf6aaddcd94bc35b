"""The engine's settings: each is checked, and each crosses a command line."""

from __future__ import annotations

import argparse
from dataclasses import fields

import pytest

from plait.runtime.config import EngineConfig, engine_config, options
from plait.runtime.flags import add_engine_flags, engine_flags, read_engine_flags

# One value that is not the default for every setting.
CHANGED: dict[str, object] = {
    "block_size": 32,
    "token_budget": 7,
    "max_running": 2,
    "max_waiting": 3,
    "kv_cache_tokens": 640,
    "max_context": 320,
    "is_prefix_caching": False,
    "jump_forward": False,
    "max_draft_tokens": 0,
    "grammar_timeout_s": 0.5,
    "grammar_max_states": 10,
    "is_grammar_cache_on_disk": False,
    "dtype": "bfloat16",
    "is_native": False,
    "is_exact": True,
    "is_quantized": False,
    "device": "cuda:1",
    "num_threads": 1,
}
WRONG: list[tuple[str, object]] = [
    *(("block_size", value) for value in (0, 7, 16.0, "16", True, None)),
    *(("token_budget", value) for value in (0, -1, 1.5, True, None)),
    *(("max_running", value) for value in (0, "2")),
    *(("max_waiting", value) for value in (0, None)),
    *(("kv_cache_tokens", value) for value in (0, -16, 1e6)),
    *(("max_context", value) for value in (0, "long")),
    *(("is_prefix_caching", value) for value in (1, "no", None)),
    *(("jump_forward", value) for value in (0, "off", None)),
    *(("max_draft_tokens", value) for value in (-1, 65, True, 2.0)),
    *(("grammar_timeout_s", value) for value in (0, -1.0, float("nan"), float("inf"), "2")),
    *(("grammar_max_states", value) for value in (0, 1.5)),
    *(("is_grammar_cache_on_disk", value) for value in (0, "off", None)),
    *(
        (name, value)
        for name in ("is_native", "is_exact", "is_quantized")
        for value in (0, "off", None)
    ),
    *(("dtype", value) for value in ("float16", "", None, 32)),
    *(("device", value) for value in ("tpu", "mps", "cuda:x", "", None)),
    *(("num_threads", value) for value in (0, -2, 10**6, 1.0)),
]


def parsed(words: list[str]) -> EngineConfig:
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_engine_flags(parser)
    return read_engine_flags(parser.parse_args(words))


def test_every_setting_is_in_the_table_and_says_what_it_is_for() -> None:
    assert options().keys() == {field.name for field in fields(EngineConfig)} == CHANGED.keys()
    assert all(option.help for option in options().values())


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_a_wrong_setting_is_refused_by_name_value_and_remedy(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=r": pass ") as caught:
        engine_config({name: value})
    assert str(caught.value).startswith(f"{name}={value!r}: pass ")


def test_the_remedy_says_what_is_allowed() -> None:
    allowed = {name: option.allowed for name, option in options().items()}
    assert allowed["token_budget"] == "a whole number, 1 or more"
    assert allowed["dtype"] == "one of float32, bfloat16"
    assert allowed["num_threads"] == "a whole number, 1 to 1024, or None"
    assert allowed["device"] == "cpu, cuda or cuda:N"


def test_an_unknown_setting_lists_the_known() -> None:
    with pytest.raises(ValueError, match=r"block_sise.*block_size, token_budget"):
        engine_config({"block_sise": 16})


@pytest.mark.parametrize("name", CHANGED)
def test_a_setting_crosses_the_command_line(name: str) -> None:
    config = engine_config({name: CHANGED[name]})
    assert config != EngineConfig()
    assert parsed(engine_flags(config)) == config


def test_defaults_need_no_flags() -> None:
    assert engine_flags(EngineConfig()) == []
    assert parsed([]) == EngineConfig()


@pytest.mark.parametrize("words", [["--threads", "0"], ["--token-budget", "x"], ["--dtype", "f16"]])
def test_a_wrong_flag_is_refused_by_its_name(words: list[str]) -> None:
    with pytest.raises(argparse.ArgumentError, match=rf"{words[0]}: '{words[1]}': pass "):
        parsed(words)
