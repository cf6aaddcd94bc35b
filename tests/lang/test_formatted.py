"""Formatted text in a trace: used by the statement that forms it, or a break."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from plait.lang.api import gen, select, user
from plait.lang.expr import Expr
from plait.lang.forks import Forks
from plait.lang.graph import Graph
from plait.lang.ops import Gen, Text, Value
from plait.lang.program import Program
from plait.lang.state import State

KEPT = "formatted here and kept"
LOST = "put into a str that is not appended"


def trace(body: Callable[..., object], **arguments: object) -> Graph:
    return Program(body).trace(**arguments)


def bullet(value: str) -> str:
    return f"- {value}\n"


def nested_bullet(value: str) -> str:
    return "".join([
        bullet(value),
        "!",
    ])  # fmt: skip


def two_statements(value: str) -> str:
    line = f"- {value}\n"
    return line


def bullets(values: list[str]) -> Iterator[str]:
    for value in values:
        yield f"- {value}\n"


def ask(s: State, question: str) -> None:
    s += user(question)


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


def read_by_a_test(s: State) -> None:
    line = f"look up {s['x']}"
    s += line
    if "foo" in line:
        s += "!"


def read_by_a_tool(s: State) -> None:
    line = f"look up {s['x']}"
    json.dumps(line)
    s += line


def on_the_same_line(s: State) -> None:
    line = f"{s['x']}"; s += line  # noqa: E702  # fmt: skip


def by_a_name_inside(s: State) -> None:
    s += (line := f"{s['x']}")
    s += "foo" if "foo" in line else "bar"


def by_a_name_inside_a_helper(s: State) -> None:
    line = ""
    s += "".join([line := f"{v}" for v in [s["x"]] if s.fork(1)])
    s += "foo" if "foo" in line else "bar"


def through_a_list(s: State) -> None:
    lines = [f"{s['x']}" for _ in range(2)]
    s += "\n".join(lines)


def through_a_display(s: State) -> None:
    lines = [*"ab", f"{s['x']}"]
    s += "\n".join(lines)


def through_an_expression(s: State) -> None:
    turn: Expr = user(f"{s['x']}")
    s += turn


def through_an_argument(s: State) -> None:
    ask(s, f"what of {s['x']}?")


def through_a_helper(s: State) -> None:
    s += two_statements(s["x"])


def through_a_loop(s: State) -> None:
    lines: list[str] = []
    for _ in range(2):
        s += lines.pop() if lines else "first"
        lines.append(f"{s['x']}")
    s += lines[0]


def through_a_callback(s: State) -> None:
    line = f"{s['x']}"
    forks: Forks = s.fork(2)
    forks += lambda i: line


def returned_later(s: State) -> str:
    line = f"{s['x']}"
    return line


EACH_KEPT = [
    *(by_a_name_inside, by_a_name_inside_a_helper),
    *(read_by_a_test, read_by_a_tool, on_the_same_line, through_a_list, through_a_display),
    *(through_an_expression, through_an_argument, through_a_helper, through_a_loop),
    *(through_a_callback, returned_later),
]


@pytest.mark.parametrize("body", EACH_KEPT)
def test_text_that_is_kept_before_it_is_appended_is_a_break(
    body: Callable[[State], object],
) -> None:
    def start(s: State) -> object:
        s += gen("x")
        return body(s)

    graph = trace(start)
    assert not graph.is_complete
    assert KEPT in graph.breaks[-1].reason
    assert graph.breaks[-1].name == "x"


def test_the_break_is_where_the_text_was_formed_and_the_graph_is_kept() -> None:
    def body(s: State) -> None:
        s += gen("x")
        line = f"look up {s['x']}"
        s += line

    graph = trace(body)
    assert [node.op for node in graph.nodes] == [Gen("x"), Text("look up "), Value(0)]
    found = graph.breaks[-1]
    assert str(found.where) == f"test_formatted.py:{body.__code__.co_firstlineno + 2}"
    assert "append it in the same statement" in found.reason
    assert "s.ref" in found.reason


@pytest.mark.parametrize(
    "use",
    [
        lambda s, x: gen("y", stop=f"{x}"),
        lambda s, x: gen("y", regex=f"{x}"),
        lambda s, x: gen(f"{x}"),
        lambda s, x: select("y", [f"{x}", "b"]),
        lambda s, x: "yes" if "foo" in f"{x}" else "no",
        lambda s, x: f"{x}"[:3],
    ],
)
def test_text_that_goes_elsewhere_is_a_break(use: Callable[[State, Any], Any]) -> None:
    def body(s: State) -> None:
        s += gen("x")
        s += use(s, s["x"])
        s += "after"

    graph = trace(body)
    assert not graph.is_complete
    assert [node.op for node in graph.nodes] == [Gen("x")]
    assert LOST in graph.breaks[-1].reason


def test_a_failure_over_kept_text_ends_the_trace() -> None:
    def body(s: State) -> None:
        s += gen("x")
        line = f"{s['x']}"
        s += line
        json.loads(line)

    graph = trace(body)
    assert not graph.is_complete
    assert "JSONDecodeError" in graph.breaks[-1].reason


def test_text_built_by_addition_may_be_kept() -> None:
    def body(s: State) -> None:
        s += gen("x")
        line = "look up " + s["x"]
        s += line

    assert trace(body).is_complete
