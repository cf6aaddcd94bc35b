"""In which order waiting sequences are admitted."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from .sequence import Sequence

FAIR_TURN = 32

Turn: TypeAlias = tuple[int, int]


class WaitingQueue:
    """Waiting sequences, the next one first.

    Those that were preempted or passed over come first; then those that say nothing of their
    future, in order of arrival; then those that go on from another request; then those that
    begin something new. Of the last two the shortest way to the end goes first: what is begun
    ends, and gives its blocks back. Each FAIR_TURN-th turn is that of the one that waits
    longest, so nobody waits for ever.
    """

    def __init__(self) -> None:
        self._queue: deque[Sequence] = deque()
        self._num_added = 0
        self._num_turns = 0
        self._is_plain = True  # nobody in it says anything of the future
        self._is_sorted = True

    def __len__(self) -> int:
        return len(self._queue)

    def __iter__(self) -> Iterator[Sequence]:
        return iter(self._queue)

    def append(self, sequence: Sequence) -> None:
        """Add a sequence that has just arrived."""
        sequence.arrival = self._num_added
        self._num_added += 1
        self._is_plain = sequence.hint is None and (self._is_plain or not self._queue)
        self._is_sorted = self._is_plain
        self._queue.append(sequence)

    def appendleft(self, sequence: Sequence) -> None:
        """Put a preempted sequence first."""
        self._queue.appendleft(sequence)

    def extendleft(self, sequences: Iterable[Sequence]) -> None:
        """Put sequences back that did not fit; the last one given is the first."""
        self._queue.extendleft(sequences)

    def remove(self, sequence: Sequence) -> None:
        """Take a sequence out."""
        self._queue.remove(sequence)

    def popleft(self) -> Sequence:
        """Take the next sequence out."""
        if not self._is_sorted:
            self._queue = deque(sorted(self._queue, key=_turn))  # stable: else as they came
            self._is_sorted = True
        self._num_turns += 1
        if self._is_plain or self._num_turns % FAIR_TURN:
            return self._queue.popleft()
        oldest = min(self._queue, key=lambda sequence: sequence.arrival)
        self._queue.remove(oldest)
        return oldest


def _turn(sequence: Sequence) -> Turn:
    """Give what a sequence is sorted by."""
    hint = sequence.hint
    if sequence.num_preemptions or sequence.num_skips:
        return 0, 0
    if hint is None:
        return 1, 0
    return 3 if hint.continues is None else 2, hint.remaining_tokens
