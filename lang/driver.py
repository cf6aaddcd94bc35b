"""What a state needs from whoever runs it, and what it can say of a finished node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from .ops import Source

if TYPE_CHECKING:
    from .outcomes import Outcome


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

    def cancel(self, nodes: Sequence[int]) -> None:
        """Stop those of `nodes` that still run; none of them counts as a failure."""
        ...

    def start(self, bodies: Bodies, times: int, timeout: float | None) -> TaskGroup:
        """Run the bodies of branches as tasks; a failed one again, up to `times` times.

        `timeout` ends each attempt after so many seconds.
        """
        ...

    def drive(self, result: object) -> object:
        """Give what a body returned; of an async body, what its coroutine gives."""
        ...


class Bodies(Protocol):
    """The bodies of the branches of one fork."""

    def __len__(self) -> int: ...

    def path(self, index: int) -> str:
        """Give the path of a branch."""
        ...

    def run(self, index: int, attempt: int) -> object:
        """Run one body to its end, with all that it starts; after the first time afresh."""
        ...

    def nodes(self, index: int) -> list[int]:
        """Give all nodes of a branch, those of earlier attempts and branches below included."""
        ...


class TaskGroup(Protocol):
    """The bodies of one fork while they run, and how they ended."""

    @property
    def finished(self) -> Sequence[Outcome]:
        """Give the outcomes so far, in order of time."""
        ...

    def wait(self, num: int, stops_at_failure: bool = False) -> None:
        """Wait until `num` have ended, or if `stops_at_failure` one has failed."""
        ...

    def cancel(self, indices: Sequence[int] | None = None) -> None:
        """End those that still run, all or some; does not wait for them."""
        ...

    def end(self) -> None:
        """End all, and wait for that whatever happens."""
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
