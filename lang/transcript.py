"""The text of a branch, and the talk that it is: read off the chain of `prev` edges."""

from __future__ import annotations

from .driver import Driver
from .graph import Node
from .ops import Role, RoleBegin, RoleEnd, Text
from .tape import Tape


def chain(tape: Tape, tip: int | None) -> list[Node]:
    """Give the nodes from the start of the text to `tip`."""
    nodes: list[Node] = []
    while tip is not None:
        node = tape.node(tip)
        nodes.append(node)
        tip = node.prev
    nodes.reverse()
    return nodes


def text_of(tape: Tape, driver: Driver, tip: int | None) -> str:
    """Give the whole text up to `tip`, template text included; waits for it."""
    return "".join(_text(node, driver) for node in chain(tape, tip))


def messages_of(tape: Tape, driver: Driver, tip: int | None) -> list[dict[str, str]]:
    """Give the turns up to `tip`, an open one with its text so far; waits for them.

    Text outside of turns is not part of the talk.
    """
    messages: list[dict[str, str]] = []
    role: Role | None = None
    for node in chain(tape, tip):
        match node.op:
            case RoleBegin(role=role):
                messages.append({"role": role, "content": ""})
            case RoleEnd():
                role = None
            case _ if role is not None:
                messages[-1]["content"] += _text(node, driver)
            case _:
                continue
    return messages


def html_of(tape: Tape, driver: Driver, tip: int | None, branch: str) -> str:
    """Give the turns up to `tip` for a notebook; waits for them."""
    from .show_html import talk_html

    title = f"State {branch}".rstrip()
    return talk_html(title, chain(tape, tip), lambda node: _text(node, driver))


def _text(node: Node, driver: Driver) -> str:
    # Literal text is known: reading a branch made of it alone waits for nothing.
    return node.op.text if isinstance(node.op, Text) else driver.text(node.id)
