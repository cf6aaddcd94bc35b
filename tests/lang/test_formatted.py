"""Formatted text in a trace: used by the statement that forms it, it stays in the graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from plait.lang.api import gen, user
from plait.lang.graph import Graph
from plait.lang.program import Program
from plait.lang.state import State


def trace(body: Callable[..., object], **arguments: object) -> Graph:
    return Program(body).trace(**arguments)


def bullet(value: str) -> str:
    return f"- {value}\n"


def nested_bullet(value: str) -> str:
    return "".join([
        bullet(value),
        "!",
    ])  # fmt: skip


def bullets(values: list[str]) -> Iterator[str]:
    for value in values:
        yield f"- {value}\n"


def one_line(s: State) -> None:
    s += f"<{s['x']}>"


def several_lines(s: State) -> None:
    s += (
        "once "
        f"<{s['x']}> "
        f"and <{s['x']}>"
        + "!"
        + gen("y")
        + f"{s['x']}"
    )  # fmt: skip


def triple_quoted(s: State) -> None:
    s += f"""
    once {s["x"]}
    through helpers {bullet(s["x"])}
      {nested_bullet(s["x"])}
    """


def in_a_turn(s: State) -> None:
    s += user(
        f"so {s['x']}"
    ) + user("and " + f"{s['x']}")  # fmt: skip


def by_method(s: State) -> None:
    s.user(
        f"so {s['x']}",
    )  # fmt: skip
    s = s.assistant(content=f"so {s['x']}")


def in_a_block(s: State) -> None:
    with s.user():
        s += "%s." % s["x"]  # noqa: UP031
        s += "{}.".format(s["x"])
        s += "{}".format(str(s["x"]))


def by_helpers(s: State) -> None:
    s += bullet(s["x"])
    s += nested_bullet(s["x"])
    s += "".join(bullets([s["x"], s["x"]]))
    s += "".join([*bullets([s["x"]])])


def by_comprehensions(s: State) -> None:
    s += "\n".join(f"{i}: {s['x']}" for i in range(2))
    s += "\n".join([f"{i}: {s['x']}" for i in range(2)])
    s += "\n".join({i: f"{i}: {s['x']}" for i in range(2)}.values())
    s += "\n".join(map(str, [s["x"]]))


def by_a_lazy_generator(s: State) -> None:
    lines = (f"{i}: {s['x']}" for i in range(2))
    s += "\n".join(lines)


def by_conditional(s: State) -> None:
    s += f"{s['x']}" if s.fork(1) else "none"
    s += (lambda: f"{s['x']}" if s.fork(1) else "none")()


def into_branches(s: State) -> None:
    forks = s.fork(2)
    forks += f"all {s['x']} "
    forks += lambda i: f"{i} {s['x']}" + gen("z")
    forks += [
        f"{i} {s['x']}"
        for i in range(2)
    ]  # fmt: skip
    forks[0] += f"{s['x']}"
    for branch in forks:
        branch += f"{s['x']}"


def returned(s: State) -> str:
    return f"{s['x']}"


def returned_by_a_helper(s: State) -> list[str]:
    return [bullet(s["x"]), f"{s['x']}"]


async def inner(s: State) -> str:
    return f"{s['x']}"


async def awaited(s: State) -> str:
    s += f"{s['x']}"
    s += await inner(s)
    return f"{s['x']}"


@pytest.mark.parametrize(
    "body",
    [
        *(one_line, several_lines, triple_quoted, in_a_turn, by_method, in_a_block, by_helpers),
        *(by_comprehensions, by_a_lazy_generator, by_conditional, into_branches, returned),
        *(returned_by_a_helper, awaited),
    ],
)
def test_text_appended_by_the_statement_that_forms_it_is_traced_whole(
    body: Callable[[State], object],
) -> None:
    def start(s: State) -> object:
        s += gen("x")
        return body(s)

    async def begin(s: State) -> object:
        s += gen("x")
        return await awaited(s)

    graph = trace(begin if body is awaited else start)
    assert [found.reason for found in graph.breaks if not found.reason.startswith("read")] == []
    assert graph.is_complete


def test_text_built_by_addition_may_be_kept() -> None:
    def body(s: State) -> None:
        s += gen("x")
        line = "look up " + s["x"]
        s += line

    assert trace(body).is_complete
