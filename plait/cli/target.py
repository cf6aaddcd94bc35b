"""`FILE.py:function` and `name=value`: what the command line names, as Python objects."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import inspect
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

from ..lang import serialize
from ..lang.errors import GraphError, InvalidArgument, UsageError
from ..lang.graph import Graph, Where
from ..lang.program import Program


def add_target(parser: argparse.ArgumentParser, note: str = "") -> None:
    """Declare the program and its arguments; `note` ends the help of `--arg`."""
    parser.add_argument("target", metavar="FILE.py:function", help="the program")
    add_arguments_option(parser, note)


def add_arguments_option(parser: argparse.ArgumentParser, note: str = "") -> None:
    """Declare `--arg`; `note` ends its help."""
    parser.add_argument(
        "--arg",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help=f"an argument of the program: name=text, or name:=JSON; may be repeated{note}",
    )


def load_attribute(target: str) -> object:
    """Import the object that `FILE.py:name` or `package.module:name` names.

    Raises: UsageError, listing the programs of the module if `name` is not among them.
    """
    place, colon, name = target.rpartition(":")
    if not colon or not place or not name:
        raise UsageError(f"{target!r}: write FILE.py:function, such as examples/hello.py:hello")
    module = _load(place)
    if not hasattr(module, name):
        known = ", ".join(sorted(_programs(module))) or "none"
        raise UsageError(f"{place} has no {name!r}; its programs: {known}")
    found: object = getattr(module, name)
    return found


def load_program(target: str) -> Program:
    """Import the program that `target` names. Raises: UsageError if it is not one."""
    found = load_attribute(target)
    if not isinstance(found, Program):
        raise UsageError(f"{target}: not a program; put @plait.function above its `def`")
    return found


def load_programs(target: str) -> list[Program]:
    """Import the program that `target` names, or all those that a file or module defines.

    Raises: UsageError if there is none.
    """
    if ":" in target:
        return [load_program(target)]
    module = _load(target)
    found = [each for each in _programs(module).values() if each.__module__ == module.__name__]
    if not found:
        raise UsageError(f"{target} has no program; put @plait.function above a `def`")
    return found


def is_graph(target: str) -> bool:
    """Say whether a target is a graph's JSON, and no program."""
    return target.endswith(".json")


def load_graph(target: str, words: Sequence[str] = ()) -> Graph:
    """Read a graph's JSON, or trace the program that `target` names with the arguments given.

    Raises: UsageError; GraphError for JSON that is no graph.
    """
    if is_graph(target):
        return read_graph(target)
    program = load_program(target)
    arguments = parse_arguments(program, words)
    check_arguments(program, arguments, is_partial=True)
    return program.trace(**arguments)


def read_graph(file: str) -> Graph:
    """Read a graph's JSON. Raises: UsageError for no such file, GraphError."""
    try:
        return serialize.loads(Path(file).read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}") from error
    except (GraphError, UnicodeDecodeError) as error:
        raise GraphError(f"{file}: {error}") from error


def _programs(module: ModuleType) -> dict[str, Program]:
    return {key: item for key, item in vars(module).items() if isinstance(item, Program)}


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


def check_arguments(
    program: Program, arguments: Mapping[str, object], *, is_partial: bool = False
) -> None:
    """Check that `program` takes these arguments, and with them has all that it requires.

    Raises: UsageError, in the words of the command line.
    """
    every = {**dict.fromkeys(program.required), **arguments}
    if not _takes(program, every):
        unknown = [name for name in arguments if name not in program.parameters]
        raise UsageError(
            f"{_place(program)}{program.name} has no argument {', '.join(unknown)}; "
            f"its arguments: {', '.join(program.parameters) or 'none'}"
        )
    if is_partial:
        return
    missing = [
        name
        for name in program.required
        if name not in arguments
        and not _takes(program, {key: item for key, item in every.items() if key != name})
    ]
    if missing:
        remedy = " ".join(f"--arg {name}=..." for name in missing)
        raise UsageError(
            f"{_place(program)}{program.name} needs {', '.join(missing)}; pass {remedy}"
        )


def _takes(program: Program, arguments: Mapping[str, object]) -> bool:
    try:
        program.arguments(kwargs=arguments)
    except InvalidArgument:
        return False
    return True


def _place(program: Program) -> str:
    """Give the line of a program's `def` as the beginning of a message."""
    code = getattr(inspect.unwrap(program), "__code__", None)
    return "" if code is None else f"{Where(code.co_filename, code.co_firstlineno)}: "


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


def _load(place: str) -> ModuleType:
    return _load_file(Path(place)) if place.endswith(".py") else _load_module(place)


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
