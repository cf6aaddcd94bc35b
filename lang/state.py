"""The `s` of a program's body: one branch of text, its variables, its open turn."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, cast, overload

from . import forking, scores
from .bodies import Body
from .driver import Driver, Meta
from .errors import InvalidArgument, RoleError
from .expr import Expr, Ref, expr_of, turn
from .forks import Forks, Joined
from .ops import Role, Source
from .outcomes import OnError, limit_of, policy_of
from .recorder import Recorder
from .roles import RoleBlock
from .scores import LogProb
from .standin import stop
from .tape import Tape
from .transcript import html_of, messages_of, text_of
from .where import place

if TYPE_CHECKING:
    from .program import Program


class _Missing:
    """The default of a content that None must not stand for: a None is a mistake."""


_MISSING = _Missing()


class State(Recorder):
    """One branch of a running program.

    `s += x` records and returns at once. `s["x"]`, `s.text()`, `s.messages()`, `s.meta("x")`
    and a join wait. A statement is recorded whole or not at all, also when several threads
    append. Belongs to one run; after that it can only be read.
    """

    def __init__(self, tape: Tape, driver: Driver, branch: str = "") -> None:
        super().__init__(tape, driver, branch)
        self._children: list[State] = []
        self._num_forks = 0
        self._forks: list[Forks] = []  # of this body, those of branches without one included
        self._has_body = False
        self._forked_by: tuple[Forks, int] | None = None

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
        return forking.fork(self, n, body, on_error, timeout)

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
        policy, limit = policy_of(on_error, "map"), limit_of(timeout, "map")
        return forking.branch_out(self, arguments, body, policy, limit)

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
        return forking.call(self, program, program.arguments(args, kwargs), keep)

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

    def _role(self, role: Role, content: str | Expr | _Missing) -> RoleBlock | State:
        if isinstance(content, _Missing):
            return RoleBlock(self, role)
        self._add(turn(role, content))
        return self
