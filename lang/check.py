"""The rules that every graph obeys, as a table; what authors get wrong is in checks/."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from .checked_ops import check_op
from .errors import InvalidArgument
from .graph import Graph, Node, Where
from .ops import Gen, Input, Op, Role, RoleBegin, RoleEnd, Score, Select, Source, Value, reads_of


@dataclass(frozen=True, slots=True)
class Breach:
    """A breach of one rule at one node; `node` is None if it is the graph's forks."""

    rule: str
    node: int | None
    where: Where | None
    message: str

    def __str__(self) -> str:
        place = "forks" if self.node is None else f"node {self.node}"
        return f"{place if self.where is None else f'{self.where}, {place}'}: {self.message}"


_NUMBER = "(?:0|[1-9][0-9]{0,8})"
_BRANCH = re.compile(f"(?:{_NUMBER}[.]{_NUMBER}(?:/{_NUMBER}[.]{_NUMBER})*)?")
_FORK = re.compile(f"(?:{_NUMBER}[.]{_NUMBER}/)*{_NUMBER}")

Finding: TypeAlias = tuple[Node | None, str]  # None: a breach at no node
Rule: TypeAlias = Callable[[Graph], Iterator[Finding]]


def ids_are_places(graph: Graph) -> Iterator[Finding]:
    """Ids count from 0 in order."""
    for place, node in enumerate(graph.nodes):
        if node.id != place:
            yield (
                node,
                f"its id is {node.id}, its place {place}; ids count up from 0 in the order "
                "of the nodes",
            )


def edges_point_back(graph: Graph) -> Iterator[Finding]:
    """Edges point to smaller ids that exist."""
    for node in graph.nodes:
        for name, target in [("prev", node.prev), *(("reads", read) for read in node.reads)]:
            if target is not None and not 0 <= target < node.id:
                yield node, f"{name} is {target}; an edge points to an earlier node"


def values_have_sources(graph: Graph) -> Iterator[Finding]:
    """Values and scores read their sources, which are gens or selects; nothing else reads."""
    for node in graph.nodes:
        source = _source(node.op)
        if node.reads != reads_of(node.op):
            asked = None if source is None else source.node
            yield node, f"it reads {list(node.reads)}; its operation asks for {asked}"
        elif source is not None and 0 <= source.node < node.id:
            yield from ((node, fault) for fault in _without_value(source, graph.nodes))


def _source(op: Op) -> Source | None:
    match op:
        case Value(source=source):
            return source
        case Score(source=int(node)):
            return Source(node)
        case _:
            return None


def _without_value(source: Source, nodes: Sequence[Node]) -> Iterator[str]:
    op = nodes[source.node].op
    if not isinstance(op, Gen | Select):
        yield f"its source {source.node} is a {type(op).__name__}, which has no value"
    elif source.capture not in (None, *(op.captures if isinstance(op, Gen) else ())):
        yield f'its source {source.node} does not capture "{source.capture}"'


def turns_are_balanced(graph: Graph) -> Iterator[Finding]:
    """Along every chain of prev edges turns do not nest, and end with the role they began."""
    turn_at: list[Role | None] = []
    for place, node in enumerate(graph.nodes):
        prev = node.prev
        turn = turn_at[prev] if prev is not None and 0 <= prev < place else None
        match node.op:
            case RoleBegin(role=role):
                if turn is not None:
                    yield node, f"a {role} turn begins inside a {turn} turn"
                turn = role
            case RoleEnd(role=role):
                if turn != role:
                    yield node, f"a {role} turn ends where {turn or 'no'} turn is open"
                turn = None
            case _:
                pass
        turn_at.append(turn)


def inputs_are_declared(graph: Graph) -> Iterator[Finding]:
    """An Input names one of the graph's inputs."""
    for node in graph.nodes:
        if isinstance(node.op, Input) and node.op.name not in graph.inputs:
            yield node, f'the input "{node.op.name}" is not one of the graph\'s'


def is_branch_path(path: str) -> bool:
    """Say whether `path` has the form of a branch's: "", "0.2", "0.2/1.0"."""
    return _BRANCH.fullmatch(path) is not None


def branches_have_forks(graph: Graph) -> Iterator[Finding]:
    """A branch is one of those of its fork, and its fork is one of the graph's."""
    widths = {fork.path: fork.width for fork in graph.forks}
    known = {""}
    for node in graph.nodes:
        path = node.branch
        if path in known:
            continue
        known.add(path)
        if not is_branch_path(path):
            yield node, f'the branch "{path}" is not of the form "0.2" or "0.2/1.0"'
            continue
        yield from ((node, fault) for fault in _without_fork(path, widths))


def forks_are_places(graph: Graph) -> Iterator[Finding]:
    """A fork has a path of its own, in a branch of an earlier fork, and at least one branch."""
    widths: dict[str, int] = {}
    for fork in graph.forks:
        if _FORK.fullmatch(fork.path) is None:
            yield None, f'the fork "{fork.path}" is not of the form "0" or "0.2/1"'
        if fork.width < 1:
            yield None, f'the fork "{fork.path}" has width {fork.width}; it is 1 or more'
        if fork.path in widths:
            yield None, f'the fork "{fork.path}" is there twice'
        parent, is_nested, _ = fork.path.rpartition("/")
        if is_nested:
            yield from ((None, fault) for fault in _without_fork(parent, widths))
        widths[fork.path] = fork.width


def _without_fork(branch: str, widths: Mapping[str, int]) -> Iterator[str]:
    fork, _, index = branch.rpartition(".")
    if fork not in widths:
        yield f'the branch "{branch}" has no fork "{fork}" among the graph\'s forks'
    elif index.isdecimal() and int(index) >= widths[fork]:
        yield f'the branch "{branch}" is past the {widths[fork]} branches of its fork'


def options_have_meaning(graph: Graph) -> Iterator[Finding]:
    """The options of gens and selects are those that gen() and select() take."""
    for node in graph.nodes:
        try:
            check_op(node.op)
        except InvalidArgument as error:
            yield node, str(error)


RULES: tuple[Rule, ...] = (
    ids_are_places,
    edges_point_back,
    values_have_sources,
    turns_are_balanced,
    inputs_are_declared,
    branches_have_forks,
    forks_are_places,
    options_have_meaning,
)


def check(graph: Graph, rules: Sequence[Rule] = RULES) -> list[Breach]:
    """Give all breaches of the rules, those at no node first, then in order of node."""
    found = [
        Breach(rule.__name__, None, None, message)
        if node is None
        else Breach(rule.__name__, node.id, node.where, message)
        for rule in rules
        for node, message in rule(graph)
    ]
    return sorted(found, key=lambda found: -1 if found.node is None else found.node)
