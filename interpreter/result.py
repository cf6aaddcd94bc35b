"""What a run leaves behind: its text, its variables, what it cost, or its error."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass
from typing import Any

from ..lang.errors import InvalidArgument, UnknownVariable
from ..lang.forks import Gathered, gather, read
from ..lang.graph import Graph, Node, variables_of
from ..lang.ops import Gen, Score, Select, Source
from ..lang.tape import Tape
from ..lang.transcript import chain, messages_of, text_of
from .backend import Done, Failed, NodeMeta, NodeUsage
from .driver import LiveDriver


@dataclass(frozen=True, slots=True)
class Written:
    """What one gen or select wrote, or a gen captured.

    `branch` is its branch's path, "" for the body itself.
    """

    branch: str
    variable: str | None
    value: Any  # a str; of a schema, what its JSON was read to; of a capture without text None


class Result:
    """One finished run. Readable for as long as it lives; the backend is not asked again.

    A run that failed has its exception in `error`, and raises it from everything else that
    reads what the program made. The end of a run joins every fork of the body, as
    `forks.join()` would, so that a result follows from its graph alone.
    """

    def __init__(
        self,
        program: str,
        tape: Tape,
        driver: LiveDriver | None,
        *,
        seed: int,
        value: object = None,
        error: Exception | None = None,
    ) -> None:
        self.seed = seed
        self.error = error
        self._program = program
        self._tape = tape
        self._driver = driver
        self._value = value
        self._names = _names(tape)

    @property
    def ok(self) -> bool:
        """Say whether the run came to its end."""
        return self.error is None

    @property
    def value(self) -> Any:
        """Give what the body returned; its type is the author's, so the checker takes any."""
        self.check()
        return self._value

    @property
    def variables(self) -> tuple[str, ...]:
        """Give the names that can be read."""
        self.check()
        return tuple(self._names)

    @property
    def graph(self) -> Graph:
        """Give the graph that this run recorded; `run_graph` repeats it whole."""
        nodes, forks = self._tape.ordered()
        return Graph(self._program, nodes, forks=forks)

    @property
    def usage(self) -> NodeUsage:
        """Give the tokens and seconds of all nodes together, also those of a failed run."""
        outcomes = {} if self._driver is None else self._driver.outcomes
        return _sum(o.meta.usage for o in outcomes.values() if isinstance(o, Done))

    def __getitem__(self, name: str) -> Any:
        """Give a variable: text, what a schema's JSON was read to, or after a fork the list of
        the branches' values by index. A branch that did not set it has None in its place, and
        a capture that has no text is None.

        Raises: UnknownVariable; the run's error; the error of a node that failed although
        the run went on.
        """
        driver, found = self._find(name)
        if isinstance(found, Source):
            return driver.value(found)
        return read(driver, found)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def outputs(self) -> tuple[Written, ...]:
        """Give every gen and select of the run, those of all branches, in the
        program's order.

        What a gen captures follows it. What a branch that was cancelled, skipped, collected or
        run again did not finish is left out.
        """
        driver, lost = self._ready(), self._tape.lost_branches
        found: list[Written] = []
        for node in self._tape.by_place():
            if isinstance(node.op, Gen | Select) and not (
                node.branch and _is_lost(node, driver, lost)
            ):
                captures = node.op.captures if isinstance(node.op, Gen) else ()
                values = {capture: driver.value(Source(node.id, capture)) for capture in captures}
                own = Written(node.branch, node.op.name, driver.value(Source(node.id)))
                found += [own, *(Written(node.branch, *item) for item in values.items())]
        return tuple(found)

    def meta(self, name: str) -> NodeMeta:
        """Give finish reason, probabilities and usage of a variable of the body itself."""
        driver, found = self._find(name)
        if not isinstance(found, Source):
            raise InvalidArgument(
                f'meta("{name}"): a fork or samples made it a list; metas("{name}") gives all'
            )
        return driver.meta(found.node)

    def metas(self, name: str) -> list[NodeMeta | None]:
        """Give `meta` by branch of a variable that a fork, or samples, made a list.

        None stands where a branch did not set it.
        """
        driver, found = self._find(name)
        sources = (found,) if isinstance(found, Source) else found
        return [driver.meta(each.node) if isinstance(each, Source) else None for each in sources]

    def text(self) -> str:
        """Give the whole text of the body's own branch, turns as the model sees them."""
        return text_of(self._tape, self._ready(), self._tip())

    def messages(self) -> list[dict[str, str]]:
        """Give the turns of the body's own branch, with role and content."""
        return messages_of(self._tape, self._ready(), self._tip())

    def check(self) -> None:
        """Raise the run's error, if it failed."""
        if self.error is not None:
            raise self.error

    def __repr__(self) -> str:
        state = f"error={self.error!r}" if self.error is not None else f"{list(self._names)}"
        return f"<Result of {self._program}: {state}>"

    def _repr_html_(self) -> str:
        """Show the body's own turns in a notebook, of a failed run what there is of them."""
        from ..lang.show_html import fault_html, talk_html

        outcomes = {} if self._driver is None else self._driver.outcomes

        def text(node: Node) -> str:
            found = outcomes.get(node.id)
            return found.text if isinstance(found, Done) else ""

        shown = talk_html(self._program, chain(self._tape, self._tip()), text)
        return shown if self.error is None else shown + fault_html(self.error)

    def _ready(self) -> LiveDriver:
        self.check()
        assert self._driver is not None
        return self._driver

    def _tip(self) -> int | None:
        own = (node for node in self._tape.nodes if node.branch == "")
        # A score stands beside the text, wherever that has got to.
        return max((node.id for node in own if not isinstance(node.op, Score)), default=None)

    def _find(self, name: str) -> tuple[LiveDriver, Source | Gathered]:
        driver = self._ready()
        if name not in self._names:
            known = ", ".join(self._names) or "none"
            raise UnknownVariable(f'no variable "{name}" in this result; known: {known}')
        return driver, self._names[name]


def _names(tape: Tape) -> dict[str, Source | Gathered]:
    """Give the body's variables: its own, and those of its branches as lists, by fork."""
    by_branch: dict[str, dict[str, Source]] = {}
    for node in tape.nodes:
        by_branch.setdefault(node.branch, {}).update(variables_of(node))
    # Of a branch that ran again the last attempt counts.
    again = {fork.path.rpartition("/")[0]: fork.path for fork in tape.forks if fork.kind == "retry"}
    joined: dict[str, Source | Gathered] = {}
    for fork in tape.forks:
        if "/" in fork.path or fork.kind != "fork":  # not the body's own fork
            continue
        paths = [f"{fork.path}.{i}" for i in range(fork.width)]
        fills = {i: tape.replaced[path] for i, path in enumerate(paths) if path in tape.replaced}
        for i, path in enumerate(paths):
            while path in again:
                path = f"{again[path]}.0"
            paths[i] = path
        joined |= gather([by_branch.get(path, {}) for path in paths], fills)
    return {**joined, **by_branch.get("", {})}


def _is_lost(node: Node, driver: LiveDriver, lost: Container[str]) -> bool:
    """Say whether a node failed, in a branch whose failure the author took as a value."""
    path, has_failed = node.branch, isinstance(driver.outcomes.get(node.id), Failed)
    while has_failed and path:
        if path in lost:
            return True
        path = path.rpartition("/")[0]
    return False


def _sum(usages: Iterable[NodeUsage]) -> NodeUsage:
    total = NodeUsage()
    for usage in usages:
        total = NodeUsage(
            total.prompt_tokens + usage.prompt_tokens,
            total.cached_tokens + usage.cached_tokens,
            total.output_tokens + usage.output_tokens,
            total.forced_tokens + usage.forced_tokens,
            total.queue_s + usage.queue_s,
            total.prefill_s + usage.prefill_s,
            total.decode_s + usage.decode_s,
            total.drafted_tokens + usage.drafted_tokens,
            total.accepted_tokens + usage.accepted_tokens,
        )
    return total
