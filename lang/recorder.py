"""One branch as it is recorded: its nodes, its variables, its open turn."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

from .driver import Driver
from .errors import InvalidArgument, RoleError, UnknownVariable
from .expr import Link, Part
from .forks import Gathered
from .graph import Where, variables_of
from .ops import Op, Role, RoleBegin, RoleEnd, Source, Text, Value
from .standin import Hole, stop
from .tape import Tape
from .where import caller, place

# A variable is what a gen or select wrote or captured, or after a join the branches' by index.
Variable: TypeAlias = Source | Gathered
Step: TypeAlias = tuple[Op, tuple[int, ...]]  # an operation and what it reads

NOTHING: Mapping[str, Variable] = MappingProxyType({})


class Recorder:
    """Records what a branch appends, and knows its variables.

    A statement is recorded whole or not at all, also when several threads append.
    """

    def __init__(self, tape: Tape, driver: Driver, branch: str = "") -> None:
        self._tape = tape
        self._driver = driver
        self._branch = branch
        self._tip: int | None = None
        self._turn: tuple[Role, int] | None = None  # the open turn, and the node that began it
        self._own: dict[str, Source] = {}
        self._joined: dict[str, Gathered] = {}
        self._inherited = NOTHING
        self._nodes: list[int] = []
        self._lock = threading.RLock()

    def _append(self, parts: Sequence[Part]) -> None:
        where = caller()
        with self._lock:
            self._check(parts)
            steps = [step for part in parts for step in self._steps(part)]
            for op, reads in steps:
                self._record(op, reads, where)

    def _check(self, parts: Sequence[Part]) -> None:
        for part in parts:
            if isinstance(part, RoleBegin) and self._turn is not None:
                raise RoleError(
                    f"{place()}{part.role} inside an open {self._turn[0]} turn: turns do not "
                    "nest; leave the `with` block, or call end_turn(), first"
                )
            if isinstance(part, Link) and part.tape is not self._tape:
                raise InvalidArgument(
                    f'{place()}the reference to "{part.name}" belongs to another run; '
                    "pass the value itself: result[name]"
                )

    def _steps(self, part: Part) -> list[Step]:
        match part:
            case str():
                return self._text_steps(part)
            case Hole():
                return [self._hole_step(part)]
            case Link(source=source):
                return [(Value(source), (source.node,))]
            case _:
                return [(part, ())]

    def _text_steps(self, text: str) -> list[Step]:
        return [(Text(text), ())] if text else []

    def _hole_step(self, hole: Hole) -> Step:
        raise InvalidArgument(f"{place()}a stand-in has no meaning outside of its trace")

    def _record(self, op: Op, reads: tuple[int, ...], where: Where | None) -> int:
        node = self._tape.append(op, prev=self._tip, reads=reads, branch=self._branch, where=where)
        self._tip = node.id
        self._nodes.append(node.id)
        self._own.update(variables_of(node))
        match op:
            case RoleBegin(role=role):
                self._turn = role, node.id
            case RoleEnd():
                self._turn = None
            case _:
                pass
        return node.id

    def _open_turn(self, role: Role) -> int:
        where = caller()
        with self._lock:
            self._check([RoleBegin(role)])
            return self._record(RoleBegin(role), (), where)

    def _close_turn(self, begin: int) -> None:
        """End the turn that the node `begin` opened, if it is still the open one."""
        where = caller()
        with self._lock:
            if self._turn is not None and self._turn[1] == begin:
                self._record(RoleEnd(self._turn[0]), (), where)

    def _visible(self) -> dict[str, Variable]:
        return {**self._inherited, **self._joined, **self._own}

    def _find(self, name: str) -> Variable:
        stop(name, "a variable's name needs the value")
        with self._lock:
            for names in (self._own, self._joined, self._inherited):
                if name in names:
                    return names[name]
            known = ", ".join(self._visible()) or "none yet"
        raise UnknownVariable(f'{place()}no variable "{name}"; known: {known}')

    def _source_of(self, name: str, method: str) -> Source:
        found = self._find(name)
        if isinstance(found, tuple):
            all_of = f', or all: metas("{name}")' if method == "meta" else ""
            raise InvalidArgument(
                f'{place()}{method}("{name}"): a join or samples made it a list; '
                f'ask a branch: forks[i].{method}("{name}"){all_of}'
            )
        return found

    def _keep_joined(self, joined: Mapping[str, Gathered]) -> None:
        with self._lock:
            self._joined.update(joined)
