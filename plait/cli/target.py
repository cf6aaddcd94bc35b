"""`FILE.py:function` and `name=value`: what the command line names, as Python objects."""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from ..lang.errors import UsageError
from ..lang.program import Program


def load_attribute(target: str) -> object:
    """Import the object that `FILE.py:name` or `package.module:name` names.

    Raises: UsageError, listing the programs of the module if `name` is not among them.
    """
    place, colon, name = target.rpartition(":")
    if not colon or not place or not name:
        raise UsageError(f"{target!r}: write FILE.py:function, such as examples/hello.py:hello")
    module = _load_file(Path(place)) if place.endswith(".py") else _load_module(place)
    if not hasattr(module, name):
        known = sorted(key for key, item in vars(module).items() if isinstance(item, Program))
        raise UsageError(f"{place} has no {name!r}; its programs: {', '.join(known) or 'none'}")
    found: object = getattr(module, name)
    return found


def load_program(target: str) -> Program:
    """Import the program that `target` names. Raises: UsageError if it is not one."""
    found = load_attribute(target)
    if not isinstance(found, Program):
        raise UsageError(f"{target}: not a program; put @plait.function above its `def`")
    return found


def parse_arguments(program: Program, words: Sequence[str]) -> dict[str, object]:
    """Turn `name=text` and `name:=json` into arguments for `program`.

    `name=text` is a str, or an int, float or bool where the parameter is annotated so.
    """
    arguments: dict[str, object] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name.strip(":"):
            raise UsageError(f"--arg {word!r}: write name=text, or name:=JSON")
        if name.endswith(":"):
            arguments[name[:-1]] = _parse_json(word, text)
        else:
            arguments[name] = _convert(program, name, text)
    return arguments


def _parse_json(word: str, text: str) -> object:
    try:
        value: object = json.loads(text)
    except json.JSONDecodeError as error:
        raise UsageError(f"--arg {word!r}: not JSON after := ({error})") from error
    return value


def _convert(program: Program, name: str, text: str) -> object:
    kind = program.annotation(name)
    try:
        if kind == "int":
            return int(text)
        if kind == "float":
            return float(text)
    except ValueError as error:
        raise UsageError(f"--arg {name}={text!r}: {name} is {kind}") from error
    if kind == "bool":
        if text.lower() not in ("true", "false"):
            raise UsageError(f"--arg {name}={text!r}: {name} is bool; write true or false")
        return text.lower() == "true"
    return text


def _load_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise UsageError(f"{path}: no such file")
    name = f"plait_target_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(
        0, str(path.parent.resolve())
    )  # the file's neighbours import as in `python FILE`
    spec.loader.exec_module(module)
    return module


def _load_module(name: str) -> ModuleType:
    sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not (name == error.name or name.startswith(f"{error.name}.")):
            raise
        raise UsageError(f"{name}: no such module; a file is named FILE.py:function") from error
