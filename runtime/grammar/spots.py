"""What is found of the tokens over a terminal: those inside, and where others leave it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from .frontier import Frontier
from .spec import Bitmask
from .state import Guards
from .terminal import LocalState

Exits: TypeAlias = tuple[tuple[Guards, Frontier], ...]  # what forbids how to go on, and from where


class Spot(NamedTuple):
    """A place in a terminal, and what the text from here on may not begin with."""

    local: LocalState
    guards: Guards


class Tokens(NamedTuple):
    """Some tokens: those of a mask, if there is one, and a few more."""

    mask: Bitmask | None
    ids: tuple[int, ...]


NO_TOKENS = Tokens(None, ())


class Inside(NamedTuple):
    """The tokens that stay in a terminal, and where others leave it."""

    tokens: Tokens
    exits: Exits


class Passage(NamedTuple):
    """What a lexer may take from a place in the trie on, ignored text before it passed over."""

    terminals: Mapping[str, Sequence[Inside]]
    ignored: Tokens
    starts: Exits  # where ignored text may be over, the place itself included


def joined(parts: Sequence[Tokens]) -> Tokens:
    """Give the tokens of all parts."""
    masks = [part.mask for part in parts if part.mask is not None]
    ids = tuple({i for part in parts for i in part.ids})
    if len(masks) < 2:
        return Tokens(masks[0] if masks else None, ids)
    return Tokens(np.bitwise_or.reduce(masks), ids)
