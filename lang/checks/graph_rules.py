"""Rules about a traced graph: variables, branches, joins, options."""

from __future__ import annotations

from collections.abc import Iterator

from ..graph import Node, Where, variables_of
from ..ops import Gen, Select
from ..words import spell
from .problem import Finding
from .subject import Subject


def duplicate_name(subject: Subject) -> Iterator[Finding]:
    """A variable is set again in the same branch, and nobody has read what it was."""
    last: dict[tuple[str, str], Node] = {}
    for node in subject.graph.nodes:
        for name in variables_of(node):
            before = last.get((node.branch, name))
            is_lost = before is not None and before.id not in subject.read
            # A loop that sets its variable each time means its text, not the variable.
            if is_lost and before is not None and before.where != node.where:
                yield Finding(
                    node.where,
                    f'"{name}" is set again; what {_at(before)} wrote can no longer be read',
                    "give each its own name, or read the first one before",
                    node.id,
                )
            last[node.branch, name] = node


def join_collides(subject: Subject) -> Iterator[Finding]:
    """A branch sets a name that the branch it came from, or a fork before, has set."""
    if not subject.is_whole:
        return
    own = _own_names(subject)
    taken: dict[tuple[str, str], str] = {}  # (parent, name) -> fork
    for fork in subject.graph.forks:
        parent = _parent(fork.path)
        names = [own.get(f"{fork.path}.{i}", {}) for i in range(fork.width)]
        for name, node in {name: node for each in names for name, node in each.items()}.items():
            if name in own.get(parent, {}):
                other = "the body" if not parent else f"branch {parent}"
                message = f'a branch and {other} both set "{name}": after a join it is {other}\'s'
            elif (parent, name) in taken and not _is_read(subject, taken[parent, name], name):
                message = f'"{name}" is set by two forks: the later join replaces the first list'
            else:
                taken[parent, name] = fork.path
                continue
            taken[parent, name] = fork.path
            yield Finding(node.where, message, "give them names of their own", node.id)


def never_joined(subject: Subject) -> Iterator[Finding]:
    """What a fork inside a branch writes is never joined, and nothing reads it."""
    for path, nodes in _nested_forks(subject):
        if path not in _joined(subject) and not _any_used(subject, nodes):
            yield Finding(
                nodes[0].where,
                f"the branches of fork {path} are never joined, and nothing reads them",
                "call join() on the fork, or read its branches: forks[i][name]",
                nodes[0].id,
            )


def unused_variable(subject: Subject) -> Iterator[Finding]:
    """A fork inside a branch is joined, and nothing reads a variable of it."""
    for path, nodes in _nested_forks(subject):
        if path not in _joined(subject):
            continue
        names = list(dict.fromkeys(name for node in nodes for name in variables_of(node)))
        for name in names:
            setters = [node for node in nodes if name in variables_of(node)]
            if not _any_used(subject, setters):
                unnamed = _unnamed(setters[0])
                yield Finding(
                    setters[0].where,
                    f'"{name}" is never read: a result has the lists of the body\'s own forks only',
                    f"read it after the join, return it, or leave the name out: {unnamed}",
                    setters[0].id,
                )


def idle_fork(subject: Subject) -> Iterator[Finding]:
    """A fork is made, and its branches write nothing."""
    if not subject.is_whole:
        return
    busy = {node.branch for node in subject.graph.nodes}
    for fork in subject.graph.forks:
        inside = [path for path in busy if path.startswith(f"{fork.path}.")]
        if not inside:
            yield Finding(
                subject.watched.fork_places.get(fork.path),
                f"fork({fork.width}) is made, and nothing is appended to its branches",
                "append to the branches: forks += ...; or take the fork out",
            )


def greedy_twins(subject: Subject) -> Iterator[Finding]:
    """Branches that are alike ask the same at temperature 0, and get the same."""
    graph = subject.graph
    step_of = {node: index for index, step in enumerate(graph.prefix_tree()) for node in step.nodes}
    first: dict[tuple[int | None, object], Node] = {}
    told: set[int] = set()
    for node in graph.nodes:
        if not isinstance(node.op, Gen) or node.op.sampling.temperature != 0:
            continue
        before = None if node.prev is None else step_of[node.prev]
        twin = first.setdefault((before, (node.op.sampling, node.op.constraint)), node)
        if twin is not node and twin.branch != node.branch and twin.id not in told:
            told.add(twin.id)
            yield Finding(
                node.where,
                f"{spell(node.op)} in branch {node.branch} asks what branch {twin.branch} asks, "
                "at temperature 0: both get the same text",
                "set a temperature above 0, or let the branches ask different things",
                node.id,
            )


def one_choice(subject: Subject) -> Iterator[Finding]:
    """A select has one choice, and so decides nothing."""
    for node in subject.writers:
        if isinstance(node.op, Select) and len(node.op.choices) == 1:
            yield Finding(
                node.where,
                f"{spell(node.op)} has one choice: {node.op.choices[0]!r}",
                "append it as text, or add the others",
                node.id,
            )


def idle_options(subject: Subject) -> Iterator[Finding]:
    """Options that shape a draw are given at temperature 0, where nothing is drawn."""
    for node in subject.writers:
        if not isinstance(node.op, Gen) or node.op.sampling.temperature != 0:
            continue
        sampling = node.op.sampling
        given = {"top_k": sampling.top_k, "top_p": sampling.top_p, "min_p": sampling.min_p}
        idle = [
            name for name, value in {**given, "seed": node.op.seed}.items() if value is not None
        ]
        if idle:
            yield Finding(
                node.where,
                f"{spell(node.op)}: {', '.join(idle)} {'do' if idle[1:] else 'does'} nothing at "
                "temperature 0, which takes the likeliest token",
                "leave it out, or set a temperature above 0",
                node.id,
            )


def writes_nothing(subject: Subject) -> Iterator[Finding]:
    """A gen may write no token at all."""
    for node in subject.writers:
        if isinstance(node.op, Gen) and node.op.sampling.max_tokens == 0:
            yield Finding(
                node.where,
                f"{spell(node.op)}: with max_tokens=0 it writes nothing",
                "pass max_tokens=1 or more, or leave it out",
                node.id,
            )


def nothing_before(subject: Subject) -> Iterator[Finding]:
    """A gen or select has no text before it: the model starts from nothing."""
    for node in subject.writers:
        if node.prev is None:
            yield Finding(
                node.where,
                f"no text stands before {spell(node.op)}",
                "append what the model shall go on from, first",
                node.id,
            )


def _nested_forks(subject: Subject) -> Iterator[tuple[str, list[Node]]]:
    """Give the forks inside branches, with the named gens and selects of their branches.

    None where a caller can still read them: the body gives its branches away, or goes on.
    """
    if not subject.is_whole or subject.watched.gives_states:
        return
    for fork in subject.graph.forks:
        branches = {f"{fork.path}.{i}" for i in range(fork.width)}
        nodes = [each for each in subject.graph.nodes if each.branch in branches]
        named = [each for each in nodes if variables_of(each)]
        if _parent(fork.path) and named:
            yield fork.path, named


def _any_used(subject: Subject, nodes: list[Node]) -> bool:
    return any(node.id in subject.used for node in nodes)


def _is_read(subject: Subject, fork: str, name: str) -> bool:
    nodes = [n for n in subject.graph.nodes if n.branch.rpartition(".")[0] == fork]
    return any(node.id in subject.read for node in nodes if name in variables_of(node))


def _joined(subject: Subject) -> set[str]:
    """Give the paths of the forks that the body joins."""
    nodes = subject.graph.nodes
    found: set[str] = set()
    for join in subject.watched.joins:
        branches = [nodes[node].branch for node in join.nodes if node < len(nodes)]
        top = min(branches, key=lambda path: path.count("/"), default="")
        found.add(top.rpartition(".")[0])
    return found


def _own_names(subject: Subject) -> dict[str, dict[str, Node]]:
    found: dict[str, dict[str, Node]] = {}
    for node in subject.graph.nodes:
        for name in variables_of(node):
            found.setdefault(node.branch, {}).setdefault(name, node)
    return found


def _parent(fork: str) -> str:
    return fork.rpartition("/")[0]


def _at(node: Node) -> str:
    place: Where | None = node.where
    return spell(node.op) if place is None else f"{spell(node.op)} at {place}"


def _unnamed(node: Node) -> str:
    return "gen(...)" if isinstance(node.op, Gen) else "select(None, ...)"
