"""From what went wrong at a backend to the errors that a program sees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from ..lang.errors import BackendDied, BackendError, NodeError, node_error
from ..lang.graph import Node
from ..lang.tape import Tape
from ..lang.words import spell
from .backend import Done, Failed

Outcome: TypeAlias = Done | Failed


def failure_error(failure: Failed, tape: Tape, outcomes: Mapping[int, Outcome]) -> NodeError:
    """Give the error for a failed node; names it, its line, and where the failure began."""
    node = tape.node(failure.node)
    message = _told(node, failure.message)
    if failure.origin != failure.node:
        origin = tape.node(failure.origin)
        first = outcomes.get(failure.origin)
        reason = first.message if isinstance(first, Failed) else failure.message
        line = f"{origin.where}: " if origin.where is not None else ""
        message = f"{spell(node.op)} cannot run, because of {line}{_told(origin, reason)}"
    return node_error(failure.code, message, node=node.id, where=node.where, origin=failure.origin)


def backend_died(error: Exception) -> BackendError:
    """Give each waiter an error of its own: one that is shared would mix their tracebacks."""
    died = BackendDied(str(error) or type(error).__name__)
    died.__cause__ = error
    return died


def _told(node: Node, message: str) -> str:
    """Say which node a backend's message is about, unless it says so itself."""
    label = spell(node.op)
    return message if message.startswith(label) else f"{label}: {message}"
