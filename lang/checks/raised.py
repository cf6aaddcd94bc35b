"""Rules about what a body raises while it is traced: no run would come further."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..errors import (
    InvalidArgument,
    NotSupported,
    PlaitError,
    ProgramError,
    RoleError,
    UnknownVariable,
)
from ..options import nearest
from ..where import raised_at
from .problem import Finding
from .source import ProgramSource, text_of
from .subject import Subject

_PLACE = re.compile(r"^[^\s:]+:\d+: ")
_NAME = re.compile(r'no variable "(.*?)"; known: (.*)', re.DOTALL)


def undefined_variable(subject: Subject) -> Iterator[Finding]:
    """A variable is read that nothing sets."""
    name, known = _unknown(subject)
    if name is not None and not _is_set_in(subject.source, name):
        near = nearest([name], known).removeprefix(" (").removesuffix("?)")
        yield _found(
            subject,
            f'no variable "{name}" is set; known here: {", ".join(known) or "none"}',
            near.replace("did you mean", "perhaps it is") or f'set it first: gen("{name}")',
        )


def read_before_gen(subject: Subject) -> Iterator[Finding]:
    """A variable is read before the gen or select that sets it."""
    name, _ = _unknown(subject)
    if name is not None and _is_set_in(subject.source, name):
        yield _found(
            subject,
            f'"{name}" is read before the gen or select that sets it',
            f'append gen("{name}") before this line, to this branch or to the one it came from',
        )


def nested_turn(subject: Subject) -> Iterator[Finding]:
    """A turn begins inside another one, or ends where none is open."""
    if isinstance(subject.watched.error, RoleError):
        yield _found(subject, _message(subject), "close each turn before the next one begins")


def records_without_end(subject: Subject) -> Iterator[Finding]:
    """The body appends without end while it is traced."""
    error = subject.watched.error
    if type(error) is ProgramError:
        remedy = "bound the loop: for _ in range(MAX_STEPS)"
        last = subject.graph.nodes[-1].where if subject.graph.nodes else subject.start()
        yield Finding(last, _message(subject), remedy)


def wrong_argument(subject: Subject) -> Iterator[Finding]:
    """An option of gen, select or another call has no meaning."""
    error = subject.watched.error
    is_unknown = isinstance(error, UnknownVariable)
    if isinstance(error, InvalidArgument | NotSupported) and not is_unknown:
        yield _found(subject, _message(subject), "correct the option that the message names")


def body_raises(subject: Subject) -> Iterator[Finding]:
    """The body raises an error of its own before any model is asked."""
    error = subject.watched.error
    if error is not None and not isinstance(error, PlaitError):
        message = f"the body raises {type(error).__name__}: {error}"
        yield _found(subject, message, "correct it, or pass the arguments that it needs")


def _unknown(subject: Subject) -> tuple[str | None, list[str]]:
    """Give the name that the body read in vain, and the names that it could have read."""
    error = subject.watched.error
    found = _NAME.search(str(error)) if isinstance(error, UnknownVariable) else None
    if found is None:
        return None, []
    known = [] if found[2] == "none yet" else found[2].split(", ")
    return found[1], known


def _is_set_in(source: ProgramSource | None, name: str) -> bool:
    """Say whether the program's own source has a gen or select of this name."""
    if source is None:
        return False
    for node in source.walk():
        if source.expression_of(node) in ("gen", "select"):
            given = [*node.args[:1], *(k.value for k in node.keywords if k.arg == "name")]  # type: ignore[attr-defined]
            if name in [text_of(each) for each in given]:
                return True
    return False


def _found(subject: Subject, message: str, remedy: str) -> Finding:
    error = subject.watched.error
    where = None if error is None else raised_at(error.__traceback__)
    return Finding(where or subject.start(), message, remedy)


def _message(subject: Subject) -> str:
    return _PLACE.sub("", str(subject.watched.error))
