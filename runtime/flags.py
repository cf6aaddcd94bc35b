"""The engine's settings as flags of a command line, both ways."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import MISSING, fields

from .config import EngineConfig, Option, engine_config, options


def add_engine_flags(parser: argparse.ArgumentParser) -> None:
    """Declare one flag for each setting of `EngineConfig`."""
    group = parser.add_argument_group("engine")
    for item in fields(EngineConfig):
        option: Option = item.metadata["option"]
        flag = flag_of(item.name, option)
        if option.kind is bool:
            group.add_argument(
                flag,
                dest=item.name,
                action="store_false" if item.default else "store_true",
                help=option.help,
                default=argparse.SUPPRESS,
            )
            continue
        assert item.default is not MISSING
        default = "" if item.default is None else f" (default: {item.default})"
        group.add_argument(
            flag,
            dest=item.name,
            type=_reader(option),
            metavar="|".join(map(str, option.choices)) or option.kind.__name__.upper(),
            help=option.help + default,
            default=argparse.SUPPRESS,
        )


def read_engine_flags(args: argparse.Namespace) -> EngineConfig:
    """Make a config of what `add_engine_flags` parsed."""
    return engine_config({name: getattr(args, name) for name in options() if hasattr(args, name)})


def engine_flags(config: EngineConfig) -> list[str]:
    """Give the words that another process parses into an equal config."""
    words: list[str] = []
    for item in fields(config):
        value = getattr(config, item.name)
        if value == item.default:
            continue
        flag = flag_of(item.name, item.metadata["option"])
        words += [flag] if isinstance(value, bool) else [flag, str(value)]
    return words


def flag_of(name: str, option: Option) -> str:
    """Give the flag of a setting."""
    return option.flag or f"--{name.replace('_', '-')}"


def _reader(option: Option) -> Callable[[str], object]:
    def read(word: str) -> object:
        try:
            value = option.kind(word)
        except ValueError:
            value = None
        if value is None or not option.accepts(value):
            allowed = option.allowed.removesuffix(", or None")
            raise argparse.ArgumentTypeError(f"{word!r}: pass {allowed}")
        return value

    return read
