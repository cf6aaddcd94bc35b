"""The plain vocabulary, for what is asked of a grammar without a model: 256 single bytes."""

from __future__ import annotations

from .vocabulary import Vocabulary

TIMEOUT_S = 10.0
MAX_STATES = 200_000
NO_LIMIT = 1 << 40  # of states, where the time alone is a limit


def byte_vocabulary() -> Vocabulary:
    """Give the vocabulary of which each byte is a token; its end token is 256."""
    return Vocabulary([bytes((byte,)) for byte in range(256)], (256,), 257)
