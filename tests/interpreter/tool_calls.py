"""A grammar of tool calls, and programs run on a model that says a given text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import plait
from plait import Grammar


@dataclass
class Args:
    """The arguments of a call."""

    city: str
    days: int = 1


EVEN = {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}
CALL = Grammar(
    ebnf='root ::= tool "(" args ")" when?',
    parts={
        "tool": Grammar(choices=["weather", "time"]),
        "args": Grammar(schema=Args),
        "when": Grammar(regex=r" at \d+"),
    },
)
TEXT = 'weather({"city":"Oslo","days":3})'


def script(text: str) -> Callable[[str], str]:
    return lambda prompt: text if prompt.endswith("?") else ""


def run(program: Any, text: str, **arguments: Any) -> plait.Result:
    opened = plait.scripted(script(text))
    try:
        result: plait.Result = program.run(**arguments, backend=opened, temperature=0)
    finally:
        opened.close()
    return result
