"""One trace: its tape, its stand-ins, and what they were used for.

Inside a real str, such as an f-string's, a hole is spelled as a sentinel of private-use
characters, and split out again when the str is appended. Python can read a real str before
that, and what it makes of a sentinel is not what it makes of the value. So a hole counts as
used only where the statement that appends the str, or returns it, is the one that formed it:
no name, no list and no call in between holds it. Any other is a break where it was formed.
"""

from __future__ import annotations

import re
import secrets
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from types import CoroutineType
from typing import NoReturn, cast

from .driver import Bodies, TaskGroup
from .graph import Break, ForkKind, Graph, Node, Where
from .inline import InlineGroup
from .ops import Gen, Op, Select, Source, Value
from .recorder import Step
from .standin import Hole, ParsedStandIn, StandIn
from .state import State
from .statements import Moment, is_inside, under_way
from .tape import Tape
from .where import caller, suspended_at

MAX_NODES = 100_000

_INTO_TEXT = "read into text; s.ref keeps it in the graph without waiting"
_LOST = "put into a str that is not appended: the trace cannot see what Python does with it"
_KEPT = (
    "formatted here and kept: Python may have read it; "
    "append it in the same statement, build it by +, or use s.ref"
)
_OPEN, _CLOSE = "\U0010fffc", "\U0010fffd"


class Stop(BaseException):
    """The trace ends here. Not an Exception: no body catches it by accident."""


class Recording(Tape):
    """A tape with a limit, that ends with its trace."""

    def __init__(self) -> None:
        super().__init__()
        self.is_stopped = False
        self.is_full = False

    def append(
        self,
        op: Op,
        *,
        prev: int | None,
        reads: tuple[int, ...] = (),
        branch: str = "",
        where: Where | None = None,
    ) -> Node:
        """Record one node. Raises: Stop at the limit, and after the end."""
        self.is_full = self.is_full or len(self) >= MAX_NODES
        if self.is_stopped or self.is_full:
            raise Stop
        return super().append(op, prev=prev, reads=reads, branch=branch, where=where)

    def fork(
        self,
        path: str,
        width: int,
        where: Where | None = None,
        *,
        kind: ForkKind = "fork",
        place: int = 0,
        is_concurrent: bool = False,
    ) -> None:
        """Record a fork. Raises: Stop after the end."""
        if self.is_stopped:
            raise Stop
        super().fork(path, width, where, kind=kind, place=place, is_concurrent=is_concurrent)


@dataclass(frozen=True, slots=True)
class _Read:
    """A place where a run waits for a value; `num_nodes` were recorded before it."""

    hole: Hole
    num_nodes: int


@dataclass(slots=True)
class _Spelled:
    """A hole inside a real str; `formed` is what the author's frames were doing then."""

    hole: Hole
    where: Where | None
    num_nodes: int
    num_forks: int
    formed: tuple[Moment, ...]
    is_used: bool = False
    is_kept: bool = False

    def append_in(self, statement: Moment | None) -> None:
        """Count it as used by an append; the frame that appends is in the midst of `statement`."""
        self.is_used = True
        for moment in self.formed:
            if statement is not None and moment.frame is statement.frame:
                self.is_kept |= moment.is_named or not is_inside(moment.span, statement.span)
                return
            # A helper or a comprehension has had it in its hands before.
            self.is_kept |= moment.is_named or not moment.gives
        self.is_kept = True

    def give_back(self) -> None:
        """Count it as used by the body's `return`."""
        self.is_used = True
        self.is_kept |= any(moment.is_named or not moment.gives for moment in self.formed)


class Tracing:
    """The driver of the states of a trace, and the owner of its stand-ins."""

    def __init__(self) -> None:
        self._base = sys._getframe(1)  # the author's frames above it are the body's
        self.tape = Recording()
        self.reads: list[_Read] = []
        self.appended: set[Hole] = set()
        self._end: Break | None = None
        self._spelled: list[_Spelled] = []
        self._nonce = f"{secrets.randbelow(10**12):012}"  # digits have no case to lose
        self._sentinel = re.compile(f"{_OPEN}{self._nonce}:([0-9]+){_CLOSE}")

    def value(self, source: Source) -> object:
        """Give a stand-in, and note the read: here a run waits."""
        name = source.capture or self._name(source.node)
        hole = Hole(name, Value(source), self, caller())
        self.reads.append(_Read(hole, len(self.tape)))
        op = self.tape.node(source.node).op
        is_parsed = isinstance(op, Gen) and op.schema_of(source.capture) is not None
        is_parsed = is_parsed or (isinstance(op, Select) and not op.is_text)
        return (ParsedStandIn if is_parsed else StandIn)(self, (hole,))

    def text(self, node: int) -> str:
        """End the trace: a branch's text needs its values."""
        self.stop((), "the text of a branch needs its values")

    def meta(self, node: int) -> object:
        """End the trace: only a run knows how a gen ended."""
        hole = Hole(self._name(node), Value(Source(node)), self, caller())
        self.stop((hole,), "meta() needs the value")

    def wait(self, nodes: Sequence[int]) -> None:
        """Do nothing: a join needs no value."""

    def cancel(self, nodes: Sequence[int]) -> None:
        """Do nothing: what was recorded is what may run."""

    def start(self, bodies: Bodies, times: int, timeout: float | None) -> TaskGroup:
        """Record the bodies one after the other, as if none failed."""
        return InlineGroup(bodies)

    def drive(self, result: object) -> object:
        """Run an async body to its end; one that waits for something real ends the trace."""
        if not issubclass(type(result), CoroutineType):  # a stand-in answers isinstance()
            return result
        coroutine = cast("CoroutineType[object, None, object]", result)
        try:
            coroutine.send(None)
        except StopIteration as done:
            value: object = done.value
            return value
        self.note_end(suspended_at(coroutine), "", "awaits something that only a run has")
        with suppress(Stop):
            coroutine.close()
        raise Stop

    def spell(self, parts: Sequence[str | Hole]) -> str:
        """Give a real str with a sentinel for each hole."""
        return "".join(p if isinstance(p, str) else self._spell(p) for p in parts)

    def stop(self, holes: Sequence[Hole], reason: str) -> NoReturn:
        """End the trace at the author's line: Python needs a value."""
        name = holes[0].name if holes else ""
        if self._end is None:
            self.reads = [read for read in self.reads if read.hole not in holes]
        self.note_end(caller(), name, reason)
        raise Stop

    def note_failure(self, where: Where | None, error: Exception) -> None:
        """End where Python's own code failed on a stand-in: one that was read, and not appended."""
        blamed = [read for read in self.reads if read.hole not in self.appended]
        self.reads = [read for read in self.reads if read.hole in self.appended]
        name = blamed[-1].hole.name if blamed else ""
        self.note_end(where, name, f"{type(error).__name__} for want of the value: {error}")

    def note_end(self, where: Where | None, name: str, reason: str) -> None:
        """Keep the first reason to end; nothing is recorded after it."""
        if self._end is None:
            self._end = Break(where, name, reason)
        self.tape.is_stopped = True

    def split(self, text: str) -> list[str | Hole]:
        """Give the text and the holes of a str that is appended, and may have sentinels in it."""
        pieces = self._split(text)
        if len(pieces) > 1:
            statement = next(iter(under_way(self._base)), None)
            for piece in pieces:
                if isinstance(piece, _Spelled):
                    piece.append_in(statement)
        return [piece if isinstance(piece, str) else piece.hole for piece in pieces]

    def _split(self, text: str) -> list[str | _Spelled]:
        if _OPEN not in text:
            return [text]
        pieces = self._sentinel.split(text)
        return [self._spelled[int(p)] if i % 2 else p for i, p in enumerate(pieces)]

    def take_result(self, result: object) -> None:
        """Count what the body returns as used: a run hands it to the caller as it is."""
        pending, seen = [result], set[int]()
        while pending:
            item = pending.pop()
            kind = type(item)  # not isinstance(): a stand-in answers that for its value
            if id(item) in seen:
                continue
            seen.add(id(item))
            if issubclass(kind, str):
                for piece in self._split(cast(str, item)):
                    if isinstance(piece, _Spelled):
                        piece.give_back()
            elif issubclass(kind, list | tuple | set):
                pending += cast(Iterable[object], item)
            elif issubclass(kind, dict):
                pending += cast(Mapping[object, object], item).values()
            elif is_dataclass(kind):
                pending += [getattr(item, field.name) for field in fields(kind)]

    @property
    def has_escaped(self) -> bool:
        """Say whether Python may have read a str with a hole in it."""
        return any(spelled.is_kept or not spelled.is_used for spelled in self._spelled)

    @property
    def _lost(self) -> _Spelled | None:
        """Give the first hole in a str that neither was appended nor returned."""
        return next((spelled for spelled in self._spelled if not spelled.is_used), None)

    def graph(self, program: str, inputs: tuple[str, ...]) -> Graph:
        """Give what was recorded, up to where it can be trusted."""
        nodes, forks, reads, end = self.tape.nodes, self.tape.forks, self.reads, self._end
        lost = self._lost
        # A str that was under way when the trace ended is not lost: the end came first.
        if lost is not None and not (end is not None and lost.num_nodes == len(nodes)):
            nodes, forks = nodes[: lost.num_nodes], forks[: lost.num_forks]
            reads = [r for r in reads if r.num_nodes <= len(nodes) and r.hole != lost.hole]
            end = Break(lost.where, lost.hole.name, _LOST)
        kept = [s for s in self._spelled if s.is_kept and s.num_nodes <= len(nodes)]
        breaks = [Break(read.hole.where, read.hole.name, _INTO_TEXT) for read in reads]
        breaks += [Break(spelled.where, spelled.hole.name, _KEPT) for spelled in kept]
        breaks = list(dict.fromkeys(breaks))  # one a line, however often a loop passes it
        if end is not None:
            breaks.append(end)
        nodes, forks = self.tape.arranged(nodes, forks)
        return Graph(program, nodes, tuple(breaks), end is None and not kept, inputs, forks)

    def _name(self, node: int) -> str:
        op = self.tape.node(node).op
        return (op.name or "") if isinstance(op, Gen | Select) else ""

    def _spell(self, hole: Hole) -> str:
        num_nodes, num_forks = len(self.tape), len(self.tape.forks)
        formed = under_way(self._base)
        self._spelled.append(_Spelled(hole, caller(), num_nodes, num_forks, formed))
        return f"{_OPEN}{self._nonce}:{len(self._spelled) - 1}{_CLOSE}"


class TracedState(State):
    """A state whose texts may have holes."""

    def _text_steps(self, text: str) -> list[Step]:
        steps: list[Step] = []
        for piece in cast(Tracing, self._driver).split(text):
            if isinstance(piece, Hole):
                steps.append(self._hole_step(piece))
            else:
                steps += super()._text_steps(piece)
        return steps

    def _hole_step(self, hole: Hole) -> Step:
        tracing = cast(Tracing, self._driver)
        if hole.owner is not tracing:
            return super()._hole_step(hole)
        tracing.appended.add(hole)
        return hole.op, (hole.op.source.node,) if isinstance(hole.op, Value) else ()
