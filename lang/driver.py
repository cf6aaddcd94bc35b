"""What a state needs from whoever runs it, and what it can say of a finished node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from .ops import Source


class Driver(Protocol):
    """Runs the nodes of one program; every method is thread-safe."""

    def value(self, source: Source) -> object:
        """Submit what is pending, wait for a gen or select, and give its value, or a capture.

        It is a str, or what a schema's JSON was read to, or of a capture without a text None.

        Raises: NodeError if the node failed, BackendError if the backend did.
        """
        ...

    def text(self, node: int) -> str:
        """Give the text that a node of any kind added to its branch; submits and waits."""
        ...

    def meta(self, node: int) -> object:
        """Give a `Meta` of a gen or select; submits and waits."""
        ...

    def wait(self, nodes: Sequence[int]) -> None:
        """Submit what is pending and wait until all of `nodes` are finished.

        Raises: the first failure, after cancelling the rest.
        """
        ...


class Meta(Protocol):
    """What is known of a finished gen or select besides its value."""

    @property
    def finish_reason(self) -> str | None:
        """Say why the output ended: "stop", "length", ..."""
        ...

    @property
    def stop_reason(self) -> str | None:
        """Give the stop string that ended the output, if one did."""
        ...

    @property
    def probabilities(self) -> Mapping[str, float]:
        """Give a select's probabilities by choice; they sum to 1."""
        ...

    @property
    def logprobs(self) -> Sequence[float]:
        """Give the log-probability of each token that a score asked for."""
        ...

    @property
    def scores(self) -> Mapping[str, float]:
        """Give a select's scores by choice, as its method defines them."""
        ...
