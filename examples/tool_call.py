"""Tool calls: one gen writes the whole call, and its parts come back as variables.

The name is one of a list, the arguments are JSON of a dataclass; a grammar puts both together.

Run it: python examples/tool_call.py
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Annotated

from plait import Grammar, State, function, gen


@dataclass
class Arguments:
    """What both tools take."""

    item: Annotated[str, {"pattern": "^[a-z]{2,12}$"}]
    count: Annotated[int, {"minimum": 1, "maximum": 99}]


CALL = Grammar(
    ebnf='root ::= " " tool "(" arguments ")"',  # as in the examples below, a blank before it
    parts={
        "tool": Grammar(choices=["add", "remove"]),
        "arguments": Grammar(schema=Arguments, whitespace=1),
    },
)
SHOTS = """Say: Please remove 1 melon.
Call: remove({"item": "melon", "count": 1})

Say: Please add 12 rolls.
Call: add({"item": "rolls", "count": 12})

Say: Please remove 3 onions.
Call: remove({"item": "onions", "count": 3})

Say: Please add 5 apples.
Call: add({"item": "apples", "count": 5})
"""
WISHES = ("Please add 8 eggs.", "Please add 2 apples.", "Please remove 3 eggs.")


@function
def change(s: State, shopping: Counter[str], wish: str) -> None:
    """Let the model choose a tool for `wish`, and change the shopping list."""
    s += f"{SHOTS}\nSay: {wish}\nCall:"
    s += gen("call", grammar=CALL, captures=["tool", "arguments"], temperature=0)
    arguments: Arguments = s["arguments"]
    sign = 1 if s["tool"] == "add" else -1
    shopping[arguments.item] += sign * arguments.count


def main() -> None:
    """Print each wish with the call that the model wrote, and the list that they make."""
    shopping: Counter[str] = Counter()
    for wish in WISHES:
        result = change.run(shopping=shopping, wish=wish)
        print(f"{wish}\n {result['call']}")
    print(", ".join(f"{count} {item}" for item, count in shopping.items()))


if __name__ == "__main__":
    main()
