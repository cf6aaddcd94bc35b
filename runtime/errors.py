"""The runtime's errors. Each has a `code`, which crosses the wire in its place."""

from __future__ import annotations

import logging
from typing import Literal, TypeAlias

_log = logging.getLogger(__name__)

RequestCode: TypeAlias = Literal[
    "invalid_request",  # a field without meaning
    "empty_prompt",  # no token to start from
    "context_exceeded",  # prompt (plus one) over the model's context
    "pool_exceeded",  # can never fit the KV pool
    "queue_full",  # bounded queue is full
    "duplicate_id",  # a live request has this id
    "bad_grammar",  # the constraint does not parse or is not supported
    "grammar_budget",  # compiling it takes too long or too much
    "grammar_dead_end",  # no token may follow
    "non_finite_logits",  # the model gave NaN or infinities for this row
    "cancelled",
    "no_template",
    "bad_template",
    "internal",
]


class RequestError(Exception):
    """One request cannot be served; the others are not touched."""

    def __init__(self, code: RequestCode, message: str) -> None:
        super().__init__(message)
        self.code: RequestCode = code


class ModelLoadError(Exception):
    """A model that is missing, damaged or not supported; the message says what to do."""


class LinkError(Exception):
    """The peer on a socket cannot be reached, speaks another version, or is gone."""


class EngineDied(Exception):
    """The engine's thread ended by a bug of ours: nothing can be served any more."""


class InvariantError(Exception):
    """One of the runtime's own invariants is broken: a bug of ours, never a user's fault."""


def as_request_error(error: Exception) -> RequestError:
    """Give the error of a request that `error` ended; what is a bug of ours is logged."""
    if isinstance(error, RequestError):
        return error
    _log.error("a request met a bug", exc_info=error)
    return RequestError("internal", f"{type(error).__name__}: {error}")
