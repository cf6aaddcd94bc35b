"""What a session knows of each node."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from ..lang.graph import Node
from ..lang.ops import reads_of
from .backend import Done, Failed
from .branch import BranchText
from .calls import Call
from .scoring import Scoring
from .selection import Selection

Status: TypeAlias = Literal["waiting", "running", "done", "failed"]


@dataclass(slots=True, eq=False, repr=False)
class NodeState:
    """A submitted node; its session alone changes it.

    `branch` is the text up to and with this node once it is done (while a gen runs: its
    prompt), `text` what the node added, and `value` what a use of it is given.
    """

    node: Node
    status: Status = "waiting"
    num_waiting: int = 0  # sources that are not done
    dependants: list[NodeState] = field(default_factory=list)
    branch: BranchText = BranchText()
    text: str = ""
    value: str = ""
    seed: int = 0
    failure: Failed | None = None
    known: Done | None = None  # what an earlier run made of it
    call: Call | None = None
    selection: Selection | None = None
    scoring: Scoring | None = None


def sources_of(node: Node) -> list[int]:
    """Give the nodes that this one waits for, each once."""
    sources = [] if node.prev is None else [node.prev]
    sources += (*node.reads, *reads_of(node.op))
    return list(dict.fromkeys(sources))
