"""The `s` of a program's body: one branch of text, its variables, its open turn."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, cast, overload

from . import scores
from .bodies import Body, BranchBodies, complete, takes_index
from .driver import Driver, Meta
from .errors import InvalidArgument, RoleError, UnknownVariable
from .expr import Expr, Link, Part, Ref, expr_of, turn
from .forks import Forks, Gathered, Joined
from .graph import ForkKind, Where, variables_of
from .ops import Op, Role, RoleBegin, RoleEnd, Source, Text, Value
from .outcomes import OnError, Retry, limit_of, policy_of
from .roles import RoleBlock
from .scores import LogProb
from .standin import Hole, stop
from .tape import Tape
from .transcript import html_of, messages_of, text_of
from .where import caller, place

if TYPE_CHECKING:
    from .program import Program

# A variable is what a gen or select wrote or captured, or after a join the branches' by index.
Variable: TypeAlias = Source | Gathered
# Where a branch begins: its tip, its open turn, and the variables that it inherits.
Beginning: TypeAlias = tuple[int | None, tuple[Role, int] | None, Mapping[str, Variable]]
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
        self._forks: list[Forks] = []  # of this body, those of branches without one included
        self._has_body = False
        self._forked_by: tuple[Forks, int] | None = None
        self._lock = threading.RLock()

    # Appending

    def __iadd__(self, what: str | Expr) -> State:
        """Append text or an expression. Using a name again overwrites the variable."""
        self._add(expr_of(what))
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

    def metas(self, name: str) -> list[Meta | None]:
        """Give `meta` by branch of a variable that a join, or samples, made a list; waits."""
        found = self._find(name)
        sources = found if isinstance(found, tuple) else (found,)
        known = (
            self._driver.meta(each.node) if isinstance(each, Source) else None for each in sources
        )
        return [cast("Meta | None", meta) for meta in known]

    def score(self, text: str | Ref) -> LogProb:
        """Say how likely `text` is here; the state stays as it is. Waits where it is read."""
        return scores.score(self, text)

    def log_prob(self, name: str) -> Any:
        """Say how likely what a variable's gen wrote was: a LogProb, after a join a list."""
        return scores.log_prob(self, name)

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

    def fork(
        self,
        n: int,
        body: Body | None = None,
        *,
        on_error: OnError = "raise",
        timeout: float | None = None,
    ) -> Forks:
        """Give `n` branches that go on from here, each with the variables and the open turn
        of this one. What a branch sets stays in the branch.

        With a `body` each branch runs `body(branch)`, or `body(branch, i)` if it takes a second
        argument, as a task of its own: from the next wait on, while this body waits. What is
        not joined is waited for at the end of this body.

        Args:
            n: How many.
            body: A function, sync or async, or a program.
            on_error: What a join does with a branch that failed: "raise", "skip" or "collect"
                it, or `retry(times)` to run it again before.
            timeout: Seconds after which a body's attempt is TimedOut.
        """
        stop(n, "the number of branches needs the value")
        if isinstance(n, bool) or not isinstance(n, int):
            raise InvalidArgument(f"{place()}fork({n!r}): pass a whole number, n >= 1")
        if n < 1:
            raise InvalidArgument(
                f"{place()}fork({n}): a fork needs at least one branch; pass n >= 1"
            )
        if body is None and timeout is not None:
            raise InvalidArgument(f"{place()}fork({n}, timeout=...): a time limit is for a body")
        has_index = body is not None and takes_index(body)
        arguments = [(i,) if has_index else () for i in range(n)]
        return self._forked(arguments, body, policy_of(on_error, "fork"), limit_of(timeout, "fork"))

    def map(
        self,
        body: Body,
        items: Iterable[object],
        *,
        on_error: OnError = "raise",
        timeout: float | None = None,
    ) -> Forks:
        """Fork one branch an item, and run `body(branch, item)` on each; see `fork`."""
        stop(items, "map() needs the list: one branch an item")
        if not callable(body):
            raise InvalidArgument(f"{place()}map({body!r}, ...): pass a function first")
        arguments = [(item,) for item in items]
        return self._forked(arguments, body, policy_of(on_error, "map"), limit_of(timeout, "map"))

    def call(self, program: Program, /, *args: object, keep: bool = True, **kwargs: object) -> Any:
        """Run another program from here, with variables of its own, and give what it returns.

        It runs on this run's backend, with its sampling, and has the open turn of this branch, but
        none of its variables, and leaves it none. An async one needs no await.

        Args:
            program: The program; its own run options do not count.
            args: Its arguments by position.
            keep: Go on after its text; False drops the text.
            kwargs: Its arguments by name.

        Raises: what its body raises, and the first failure of what it has asked for.
        """
        from .program import Program  # which imports this module

        if not isinstance(program, Program):
            raise InvalidArgument(
                f"{place()}call({program!r}): pass a program: what @function gives"
            )
        arguments = program.arguments(args, kwargs)
        with self._lock:
            child = self._child(f"{self._fork_path(1, 'call')}.0", _NOTHING)
            child._forks = []
            self._children.append(child)
        value = complete(child, lambda: program.body(child, **arguments))
        if keep:
            self._go_on_after(child)
        return value

    def cancel(self) -> None:
        """End this branch, if it still runs, and what it has asked for. Not a failure."""
        if self._forked_by is None:
            raise InvalidArgument(
                f"{place()}cancel(): this is no branch of a fork; raise an exception to end a body"
            )
        forks, index = self._forked_by
        forks._cancel((index,))

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

    def _add(self, what: Expr) -> None:
        if what.num_samples is None:
            self._append(what.parts)
        else:
            from .samples import sample  # most programs take none

            sample(self, what.parts, what.num_samples)

    def _forked(
        self,
        arguments: Sequence[tuple[object, ...]],
        body: Body | None,
        policy: Retry,
        timeout: float | None,
    ) -> Forks:
        branches: list[State] = []
        if arguments:
            with self._lock:
                path = self._fork_path(len(arguments), is_concurrent=body is not None)
                inherited = MappingProxyType(self._visible())
                branches = [self._child(f"{path}.{i}", inherited) for i in range(len(arguments))]
                self._children += branches
        bodies = BranchBodies(branches, body, arguments)
        forks = Forks(self, branches, bodies, policy, timeout)
        for i, branch in enumerate(branches):
            branch._forked_by = forks, i
            if body is not None:
                branch._has_body = True
                branch._forks = []  # what a body forks ends with that body
        self._forks.append(forks)
        return forks

    def _fork_path(self, width: int, kind: ForkKind = "fork", is_concurrent: bool = False) -> str:
        prefix = f"{self._branch}/" if self._branch else ""
        path = f"{prefix}{self._num_forks}"
        at = len(self._nodes)
        self._tape.fork(path, width, caller(), kind=kind, place=at, is_concurrent=is_concurrent)
        self._num_forks += 1
        return path

    def _go_on_after(self, child: State) -> None:
        """Let the text of a nested program be this branch's, which has a node after it."""
        with self._lock:
            if child._tip != self._tip:
                self._tip, self._turn = child._tip, child._turn
                self._record(Text(""), (), caller())

    def _beginning(self) -> Beginning:
        return self._tip, self._turn, self._inherited

    def _again(self, beginning: Beginning) -> State:
        """Give the branch of a new attempt, which begins where this branch began."""
        with self._lock:
            child = self._child(f"{self._fork_path(1, 'retry', True)}.0", self._inherited)
            child._tip, child._turn, child._inherited = beginning
            child._forked_by, child._forks, child._has_body = self._forked_by, [], True
            self._children.append(child)
            return child

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
        self._add(turn(role, content))
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
            all_of = f', or all: metas("{name}")' if method == "meta" else ""
            raise InvalidArgument(
                f'{place()}{method}("{name}"): a join or samples made it a list; '
                f'ask a branch: forks[i].{method}("{name}"){all_of}'
            )
        return found

    def _child(self, branch: str, inherited: Mapping[str, Variable]) -> State:
        child = type(self)(self._tape, self._driver, branch)
        child._tip, child._turn, child._inherited = self._tip, self._turn, inherited
        child._forks = self._forks
        return child

    def _all_nodes(self) -> list[int]:
        """Give the ids of all nodes of this branch and the branches under it."""
        return self._nodes_below(has_bodies=True)

    def _nodes_below(self, *, has_bodies: bool) -> list[int]:
        """Give the nodes of this branch and those under it; perhaps without those with bodies.

        What becomes of a branch with a body is its fork's to tell.
        """
        nodes: list[int] = []
        pending = [self]
        while pending:
            state = pending.pop()
            nodes += state._nodes
            pending += [c for c in state._children if has_bodies or not c._has_body]
        return nodes

    def _keep_joined(self, joined: Mapping[str, Gathered]) -> None:
        with self._lock:
            self._joined.update(joined)
