"""How likely texts are: log-probabilities that a state asks for, and that stay in the graph."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, cast

from .driver import Driver, Meta
from .errors import InvalidArgument
from .expr import Link, Ref
from .ops import Score, Source
from .options import text as checked_text
from .standin import stop
from .where import caller, place

if TYPE_CHECKING:
    from .state import State


class LogProb:
    """The log-probability of a text, token by token. Making one waits for nothing, reading does.

    It is the model's own, without temperature and without grammar. Where the tokenizer merges
    the end of the text before with the beginning of this one, that token counts as this one's.
    """

    def __init__(self, driver: Driver, node: int) -> None:
        self._driver = driver
        self._node = node

    @property
    def tokens(self) -> tuple[float, ...]:
        """Give one number for each token; waits. Raises: NodeError."""
        return tuple(cast(Meta, self._driver.meta(self._node)).logprobs)

    @property
    def total(self) -> float:
        """Give the sum: the log-probability of the whole text; waits."""
        return math.fsum(self.tokens)

    @property
    def num_tokens(self) -> int:
        """Give the number of tokens; waits."""
        return len(self.tokens)

    @property
    def mean(self) -> float:
        """Give the mean of a token, 0 of no token; waits."""
        return self.total / max(1, self.num_tokens)

    def __float__(self) -> float:
        return self.total

    def __repr__(self) -> str:
        return f"LogProb(node {self._node})"


def score(state: State, what: str | Ref) -> LogProb:
    """Record the score of a text, or of what a gen or select wrote, after the state's text."""
    if isinstance(what, Ref):
        (link,) = what.parts
        assert isinstance(link, Link)
        if link.tape is not state._tape:
            raise InvalidArgument(f"{place()}score(...): the reference belongs to another run")
        return _recorded(state, _score_of(link.source, link.name), state._tip)
    stop(what, "score() needs the text")
    try:
        given = checked_text("text", what)
    except InvalidArgument as error:
        raise InvalidArgument(f"{place()}score(...): {error}") from None
    if not given:
        raise InvalidArgument(f"{place()}score(''): no text, no score; pass at least a character")
    return _recorded(state, Score(given), state._tip)


def log_prob(state: State, name: str) -> LogProb | list[LogProb | None]:
    """Record the score of what the variable's gen wrote, where it wrote it; a list of a list.

    None stands where a branch did not set the variable.
    """
    found = state._find(name)
    if isinstance(found, Source):
        return _of_variable(state, found, name)
    return [_of_variable(state, each, name) if isinstance(each, Source) else None for each in found]


def _of_variable(state: State, source: Source, name: str) -> LogProb:
    return _recorded(state, _score_of(source, name), state._tape.node(source.node).prev)


def _score_of(source: Source, name: str) -> Score:
    if source.capture is not None:
        raise InvalidArgument(
            f'{place()}"{name}" is a capture, a part of what a gen wrote; score the gen itself'
        )
    return Score(source=source.node)


def _recorded(state: State, op: Score, prev: int | None) -> LogProb:
    """Record a score beside the text: the state goes on from where it was."""
    reads = () if op.source is None else (op.source,)
    with state._lock:
        node = state._tape.append(op, prev=prev, reads=reads, branch=state._branch, where=caller())
        state._nodes.append(node.id)
    return LogProb(state._driver, node.id)
