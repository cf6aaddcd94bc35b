"""The `s` of a program's body: one branch of text, its variables, its open turn."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from types import MappingProxyType, TracebackType
from typing import Any, NoReturn, TypeAlias, cast, overload

from .driver import Driver, Meta
from .errors import InvalidArgument, RoleError, UnknownVariable
from .expr import Expr, Link, Part, Ref, parts_of, turn
from .forks import Forks, Gathered, Joined
from .graph import Where, variables_of
from .ops import Op, Role, RoleBegin, RoleEnd, Source, Text, Value
from .roles import RoleBlock
from .standin import Hole, stop
from .tape import Tape
from .transcript import html_of, messages_of, text_of
from .where import caller, place

# A variable is what a gen or select wrote or captured, or after a join the branches' by index.
Variable: TypeAlias = Source | Gathered
Step: TypeAlias = tuple[Op, tuple[int, ...]]  # an operation and what it reads

_NOTHING: Mapping[str, Variable] = MappingProxyType({})


class _Missing:
    """The default of a content that None must not stand for: a None is a mistake."""


_MISSING = _Missing()


class State:
    """One branch of a running program.

    `s += x` records and returns at once. `s["x"]`, `s.text()`, `s.messages()`, `s.meta("x")`
    and a join wait. A statement is recorded whole or not at all, also when several threads
    append. Belongs to one run; after that it can only be read.
    """

    def __init__(self, tape: Tape, driver: Driver, branch: str = "") -> None:
        self._tape = tape
        self._driver = driver
        self._branch = branch
        self._tip: int | None = None
        self._turn: tuple[Role, int] | None = None  # the open turn, and the node that began it
        self._own: dict[str, Source] = {}
        self._joined: dict[str, Gathered] = {}
        self._inherited = _NOTHING
        self._nodes: list[int] = []
        self._children: list[State] = []
        self._num_forks = 0
        self._lock = threading.RLock()

    # Appending

    def __iadd__(self, what: str | Expr) -> State:
        """Append text or an expression. Using a name again overwrites the variable."""
        self._append(parts_of(what))
        return self

    @overload
    def system(self) -> RoleBlock: ...
    @overload
    def system(self, content: str | Expr) -> State: ...
    def system(self, content: str | Expr | _Missing = _MISSING) -> RoleBlock | State:
        """Append a whole system turn; without content, open one: `with s.system():`."""
        return self._role("system", content)

    @overload
    def user(self) -> RoleBlock: ...
    @overload
    def user(self, content: str | Expr) -> State: ...
    def user(self, content: str | Expr | _Missing = _MISSING) -> RoleBlock | State:
        """Append a whole user turn; without content, open one: `with s.user():`."""
        return self._role("user", content)

    @overload
    def assistant(self) -> RoleBlock: ...
    @overload
    def assistant(self, content: str | Expr) -> State: ...
    def assistant(self, content: str | Expr | _Missing = _MISSING) -> RoleBlock | State:
        """Append a whole assistant turn; without content, open one: `with s.assistant():`."""
        return self._role("assistant", content)

    def end_turn(self) -> None:
        """Close the open turn, such as one that this branch was forked inside of.

        Raises: RoleError if no turn is open.
        """
        if self._turn is None:
            raise RoleError(f"{place()}end_turn(): no turn is open")
        self._close_turn(self._turn[1])

    # Reading

    def __getitem__(self, name: str) -> Any:
        """Give the value of a variable; waits for it.

        It is a str; of a gen with a schema, what its JSON was read to, whose type is the
        author's: the checker takes any. A capture that has no text is None. After a
        join, and unless this branch has set `name` itself, it is the list of the branches'
        values by index.

        Raises: UnknownVariable, or the NodeError of what failed.
        """
        found = self._find(name)
        if isinstance(found, tuple):
            return Joined(self._driver, {name: found})[name]
        return self._driver.value(found)

    def __contains__(self, name: object) -> bool:
        stop(name, "`in` needs the value")
        with self._lock:
            return name in self._own or name in self._joined or name in self._inherited

    def ref(self, name: str) -> Ref:
        """Give a variable as an expression: using it stays in the graph and waits for nothing."""
        return Ref(self._source_of(name, "ref"), name, self._tape)

    def meta(self, name: str) -> Meta:
        """Give what is known of a variable besides its value; waits for it."""
        return cast(Meta, self._driver.meta(self._source_of(name, "meta").node))

    def variables(self) -> tuple[str, ...]:
        """Give the names that can be read: inherited, joined and own."""
        with self._lock:
            return tuple(self._visible())

    def text(self) -> str:
        """Give the whole text of this branch from the start, turns as the model sees them."""
        return text_of(self._tape, self._driver, self._tip)

    def messages(self) -> list[dict[str, str]]:
        """Give the turns as [{"role": ..., "content": ...}], an open one as far as it is."""
        return messages_of(self._tape, self._driver, self._tip)

    def _repr_html_(self) -> str:
        return html_of(self._tape, self._driver, self._tip, self._branch)

    # Branching

    def fork(self, n: int) -> Forks:
        """Give `n` branches that go on from here, each with the variables and the open turn
        of this one. What a branch sets stays in the branch.
        """
        stop(n, "the number of branches needs the value")
        if isinstance(n, bool) or not isinstance(n, int):
            raise InvalidArgument(f"{place()}fork({n!r}): pass a whole number, n >= 1")
        if n < 1:
            raise InvalidArgument(
                f"{place()}fork({n}): a fork needs at least one branch; pass n >= 1"
            )
        with self._lock:
            prefix = f"{self._branch}/" if self._branch else ""
            path = f"{prefix}{self._num_forks}"
            self._tape.fork(path, n, caller())
            self._num_forks += 1
            inherited = MappingProxyType(self._visible())
            branches = [self._child(f"{path}.{i}", inherited) for i in range(n)]
            self._children += branches
        return Forks(self, branches)

    def copy(self) -> State:
        """Give one branch that goes on from here; good in a `with`, too."""
        return self.fork(1)[0]

    def __enter__(self) -> State:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return None

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a State belongs to its running program and cannot be copied or sent to another "
            "process; pass s.text(), s.messages() or values"
        )

    # For forks, roles and traces

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

    def _role(self, role: Role, content: str | Expr | _Missing) -> RoleBlock | State:
        if isinstance(content, _Missing):
            return RoleBlock(self, role)
        self._append(turn(role, content).parts)
        return self

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
            raise InvalidArgument(
                f'{place()}{method}("{name}"): a join made it a list; '
                f'ask a branch: forks[i].{method}("{name}")'
            )
        return found

    def _child(self, branch: str, inherited: Mapping[str, Variable]) -> State:
        child = type(self)(self._tape, self._driver, branch)
        child._tip, child._turn, child._inherited = self._tip, self._turn, inherited
        return child

    def _all_nodes(self) -> list[int]:
        """Give the ids of all nodes of this branch and the branches under it."""
        nodes: list[int] = []
        pending = [self]
        while pending:
            state = pending.pop()
            nodes += state._nodes
            pending += state._children
        return nodes

    def _keep_joined(self, joined: Mapping[str, Gathered]) -> None:
        with self._lock:
            self._joined.update(joined)
