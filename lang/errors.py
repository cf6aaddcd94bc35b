"""Every error that plait raises on purpose, one tree.

PlaitError
├── ProgramError              the program is wrong: raised at the line that is
│   ├── InvalidArgument       (ValueError) an argument has no meaning
│   ├── UnknownVariable       (KeyError) no such name in this state
│   ├── RoleError             roles nested or left open
│   └── NotSupported          a known feature that this version refuses by name
├── GraphError                a graph's JSON is not one of ours
├── JournalError              a journal that is in use, damaged, or not one of ours
├── NodeError                 a node failed while running; knows node, line, code
│   ├── ContextExceeded       prompt plus output longer than the model's context
│   ├── PoolExceeded          more KV blocks than the pool has
│   ├── GrammarError          a constraint that does not compile or cannot be met
│   ├── Truncated             a value of a schema that a limit has cut; has its text
│   ├── Invalid               a value that does not match its schema; has its text
│   ├── NotRecorded           a replay came to a node that its journal does not have
│   ├── TemplateError         the model has no chat template, or it refuses the talk
│   └── Cancelled             cancelled by a sibling's failure or by the caller
├── BackendError              the backend as a whole
│   ├── BackendUnavailable    cannot be started or reached
│   └── BackendDied           was there, and is gone
├── ModelError                a model that is missing, damaged or not supported
└── UsageError                the command line was used wrongly
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .graph import Where


class PlaitError(Exception):
    """The root of the tree; `except PlaitError` catches all that plait raises on purpose."""


class ProgramError(PlaitError):
    """A mistake in a program, raised in the author's frame."""


class InvalidArgument(ProgramError, ValueError):
    """An argument that has no meaning; the message names it and says what to pass."""


class UnknownVariable(ProgramError, KeyError):
    """A name that the state does not hold; the message lists those it does."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class RoleError(ProgramError):
    """A role opened inside another, or closed twice."""


class NotSupported(ProgramError):
    """A known feature that this version refuses by name."""


class GraphError(PlaitError):
    """A graph's JSON that is damaged, of another version, or breaks the graph's rules."""


class JournalError(PlaitError):
    """A journal that cannot be used: held by another run, of another version, no journal."""


class NodeError(PlaitError):
    """A node failed while running.

    `node` is its id, `where` its source line, `code` the runtime's word for the kind
    of fault, `origin` the id of the node whose failure caused this one (itself if none).
    """

    def __init__(
        self,
        message: str,
        *,
        node: int | None = None,
        where: Where | None = None,
        code: str = "internal",
        origin: int | None = None,
    ) -> None:
        super().__init__(message)
        self.node = node
        self.where = where
        self.code = code
        self.origin = node if origin is None else origin


class ContextExceeded(NodeError):
    """The prompt does not fit the model's context; the message has both numbers."""


class PoolExceeded(NodeError):
    """The request can never fit the KV pool; the message has both numbers."""


class GrammarError(NodeError):
    """A constraint that does not compile, is too large, or cannot be met."""


class Truncated(NodeError):
    """A value of a schema that `max_tokens` or the context has cut.

    `text` is what there is of it, `reason` what cut it.
    """

    def __init__(
        self,
        message: str,
        *,
        text: str = "",
        reason: str = "",
        node: int | None = None,
        where: Where | None = None,
    ) -> None:
        super().__init__(message, node=node, where=where, code="truncated")
        self.text = text
        self.reason = reason


class Invalid(NodeError):
    """A finished value that does not match its schema, or that a stop string has cut.

    `text` is what the model wrote, `reason` what is wrong with it, and where.
    """

    def __init__(
        self,
        message: str,
        *,
        text: str = "",
        reason: str = "",
        node: int | None = None,
        where: Where | None = None,
    ) -> None:
        super().__init__(message, node=node, where=where, code="invalid_value")
        self.text = text
        self.reason = reason


class NotRecorded(NodeError):
    """A replay came to a node that its journal does not have."""


class TemplateError(NodeError):
    """The model has no chat template, or its template refuses this sequence of roles."""


class Cancelled(NodeError):
    """The node was cancelled: by a sibling's failure, or by the caller."""


class BackendError(PlaitError):
    """The backend as a whole failed."""


class BackendUnavailable(BackendError):
    """The backend cannot be started or reached."""


class BackendDied(BackendError):
    """The backend was there and is gone; every waiter gets this."""


class ModelError(PlaitError):
    """A model that is missing, damaged or not supported; the message says what to do."""


class UsageError(PlaitError):
    """The command line was used wrongly."""


# The runtime's codes for a failed request, and the class that an author catches.
_BY_CODE: dict[str, type[NodeError]] = {
    "context_exceeded": ContextExceeded,
    "pool_exceeded": PoolExceeded,
    "bad_grammar": GrammarError,
    "grammar_budget": GrammarError,
    "grammar_dead_end": GrammarError,
    "no_template": TemplateError,
    "bad_template": TemplateError,
    "cancelled": Cancelled,
    "not_recorded": NotRecorded,
}


def node_error(
    code: str, message: str, *, node: int, where: Where | None, origin: int | None = None
) -> NodeError:
    """Give the error for a failed node, by the runtime's `code`."""
    kind = _BY_CODE.get(code, NodeError)
    place = f"{where}: " if where is not None else ""
    return kind(f"{place}{message}", node=node, where=where, code=code, origin=origin)
