"""What the radix tree answers."""

from __future__ import annotations

from dataclasses import dataclass

from ..sequence import Int32
from .node import Node


@dataclass(frozen=True, slots=True)
class Partial:
    """A match that ends inside a block: `num_tokens` of `block` can be copied.

    Lock `node` until the copy is made.
    """

    node: Node
    block: int
    num_tokens: int


@dataclass(frozen=True, slots=True)
class Match:
    """The longest cached prefix: whole blocks, then perhaps some tokens of one more.

    `blocks` stay what they are while `node` is locked.
    """

    node: Node
    blocks: Int32
    num_tokens: int  # in whole blocks
    partial: Partial | None = None

    @property
    def num_usable(self) -> int:
        """Count its tokens, those that must be copied included."""
        return self.num_tokens + (0 if self.partial is None else self.partial.num_tokens)


@dataclass(frozen=True, slots=True)
class Inserted:
    """The deepest node that covers what was inserted, and the blocks that were there before."""

    node: Node
    blocks: Int32
