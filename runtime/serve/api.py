"""What a worker asks of the service that it serves. Payloads are the service's own affair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class ServiceStats:
    """Numbers for the heartbeat."""

    num_steps: int = 0  # engine steps since the start
    num_running: int = 0
    num_waiting: int = 0


class Send(Protocol):
    """Gives answers of a session to its client. Called on the worker's loop; never raises."""

    def __call__(self, payload: bytes, finished: Sequence[int]) -> None:
        """Send `payload`, and give back the credits of the `finished` segments."""
        ...


class ServiceSession(Protocol):
    """One session of one client. All calls come on the worker's loop."""

    def submit(self, seq: int, payload: bytes) -> None:
        """Take segment `seq`. Raises: RequestError, and then knows nothing of the segment."""
        ...

    def cancel(self, payload: bytes) -> None:
        """Stop the part that the payload names. Raises: RequestError if it names none."""
        ...

    def close(self) -> None:
        """Stop everything and give all resources back; nothing is sent after it. Idempotent."""
        ...


class Service(Protocol):
    """Executes what clients send."""

    def describe(self) -> bytes:
        """Give the description that each client gets with its welcome."""
        ...

    def open(self, payload: bytes, send: Send) -> ServiceSession:
        """Start a session. Raises: RequestError."""
        ...

    def stats(self) -> ServiceStats:
        """Give the numbers for the heartbeat."""
        ...
