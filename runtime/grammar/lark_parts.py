"""Terminals of a Lark grammar that other grammars stand for: `%declare ARGS`, and a part ARGS."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from ..errors import RequestError
from .node import PartNode


def check_declared(source: str, declared: Collection[str], parts: Collection[str]) -> None:
    """Refuse a part that the grammar does not declare. Raises: RequestError."""
    for name in parts:
        if name in declared:
            continue
        if _definition(source, name) is not None:
            reason = is_defined_twice(source, name)
        elif not name.isupper():
            reason = f"part {name}: it stands for a terminal, whose name is in capitals"
        else:
            reason = f"part {name}: write %declare {name}, and name it in a rule"
        raise RequestError("bad_grammar", f"lark: {reason}")


def is_defined_twice(source: str, name: str) -> str:
    """Say that a part's name has a definition in the grammar too."""
    where = _definition(source, name)
    line = "" if where is None else f"line {source.count(chr(10), 0, where.end()) + 1}: "
    return f"{line}{name} is defined here and in parts; rename one of them"


def _definition(source: str, name: str) -> re.Match[str] | None:
    return re.search(rf"^\s*[?!]*{re.escape(name)}\s*[.:{{]", source, re.MULTILINE)


def check_used(source: str, undefined: Collection[str], parts: Collection[str]) -> None:
    """Refuse declared terminals that no part defines, and parts that no rule names.

    `undefined` are the terminals in rules that the grammar itself does not define.
    Raises: RequestError.
    """
    for name in undefined:
        if name not in parts:
            where = re.search(rf"^\s*%declare\b.*\b{re.escape(name)}\b", source, re.MULTILINE)
            line = "" if where is None else f"line {source.count(chr(10), 0, where.end()) + 1}: "
            reason = f"{line}%declare {name}: a terminal needs a definition here, or a part"
            raise RequestError("bad_grammar", f"lark: {reason} of this name")
    for name in parts:
        if name not in undefined:
            reason = f"part {name}: no rule names it; name it, or leave the part out"
            raise RequestError("bad_grammar", f"lark: {reason}")


def check_solid(parts: Mapping[str, PartNode]) -> None:
    """Refuse a part whose text may be empty, as lark does with terminals. Raises: RequestError."""
    for part in parts.values():
        if part.is_nullable:
            reason = "its text may be empty, which no terminal's may; make it optional in the rule"
            raise RequestError("bad_grammar", f"lark: part {part.name}: {reason}")
