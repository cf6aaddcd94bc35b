"""Seeds: 63 bits, fresh or derived from another one and a place; never from time or order."""

from __future__ import annotations

import json
import os

from ..lang.options import MAX_INT as MAX_SEED


def fresh_seed() -> int:
    """Draw a seed from the system's randomness."""
    return _seed(os.urandom(8))


def row_seed(batch_seed: int, row: int) -> int:
    """Give the seed of a row of a batch.

    Row 0 has the batch's own, so a batch of one is a run.
    """
    return batch_seed if row == 0 else _hashed(f"{batch_seed}/{row}")


def place_seed(run_seed: int, branch: str, ordinal: int) -> int:
    """Give the seed of the gen with this ordinal in its branch.

    It depends on the place in the program alone, so how a run is cut into segments, and
    what else runs beside it, changes nothing.
    """
    return _hashed(json.dumps([run_seed, branch, ordinal]))


class Places:
    """Counts the places of one run that draw, each of which has a seed of its own."""

    def __init__(self, run_seed: int) -> None:
        self._run_seed = run_seed
        self._counts: dict[str, int] = {}

    def next_seed(self, branch: str) -> int:
        """Give the seed of the next place in `branch`, as `place_seed` does."""
        ordinal = self._counts.get(branch, 0)
        self._counts[branch] = ordinal + 1
        return place_seed(self._run_seed, branch, ordinal)


def _hashed(text: str) -> int:
    from hashlib import blake2b  # a program that only starts a single run does without

    return _seed(blake2b(text.encode(), digest_size=8).digest())


def _seed(drawn: bytes) -> int:
    return int.from_bytes(drawn, "big") & MAX_SEED
