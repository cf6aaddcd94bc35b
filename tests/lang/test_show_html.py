"""What graphs and talks show of themselves in a notebook."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from plait.lang.errors import NodeError
from plait.lang.graph import Graph, Node, Where
from plait.lang.ops import Gen, Op, RoleBegin, RoleEnd, Select, Text
from plait.lang.show_html import MAX_ROWS, graph_html, talk_html

EVIL = '<script>alert("x")</script><img src=x onerror=y>&amp;'
VOID = {"img", "br"}


class Reader(HTMLParser):
    """Keeps a page's tags, texts and attributes; every tag must be closed in its order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.marked: list[str] = []
        self.roles: list[str] = []
        self._open: list[tuple[str, str]] = []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        title = dict(attrs).get("title") or ""
        self._open.append((tag, title))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._open and self._open[-1][1]:
            self.marked.append(f"{self._open[-1][1]}={data}")


def line(*ops: Op) -> tuple[Node, ...]:
    return tuple(Node(i, op, i - 1 if i else None) for i, op in enumerate(ops))


def evil_talk() -> str:
    nodes = line(RoleBegin("user"), Text(EVIL), RoleEnd("user"), Gen(EVIL))
    return talk_html(EVIL, nodes, lambda _: EVIL)


def evil_graph() -> str:
    nodes = (
        Node(0, Text(EVIL), None, where=Where(f"{EVIL}.py", 3)),
        Node(1, Select(EVIL, (EVIL, "b")), 0, branch="0.0"),
    )
    return graph_html(Graph(EVIL, nodes, inputs=(EVIL,)))


@pytest.mark.parametrize("page", [evil_talk(), evil_graph()], ids=["talk", "graph"])
def test_text_is_never_markup(page: str) -> None:
    read = Reader(page)
    assert read.tags <= {"div", "b", "span", "table", "tr", "td"}
    assert read.attributes <= {"style", "class", "title"}
    assert "<script>alert(" in read.text


@pytest.mark.parametrize("page", [evil_talk(), evil_graph()], ids=["talk", "graph"])
def test_nothing_runs_and_nothing_is_fetched(page: str) -> None:
    assert not re.search(r"<script|http|url\(|@import|<link|<style", page, re.IGNORECASE)


@pytest.mark.parametrize("page", [evil_talk(), evil_graph()], ids=["talk", "graph"])
def test_colours_are_the_pages_own_or_see_through(page: str) -> None:
    colours = re.findall(r"(?:color|background):([^;\"]+)", page)
    assert colours
    assert all(c in ("inherit", "none") or c.startswith("rgba(") for c in colours)


def test_a_talk_has_its_turns_and_marks_what_was_written() -> None:
    nodes = line(
        RoleBegin("user"),
        Text("Why?\n"),
        RoleEnd("user"),
        RoleBegin("assistant"),
        Gen("a"),
        RoleEnd("assistant"),
    )
    read = Reader(talk_html("ask", nodes, lambda node: {1: "Why?\n", 4: "So."}[node.id]))
    assert read.text == "askuserWhy?\nassistantSo."
    assert read.marked == ['gen("a")=So.']


def test_text_that_cannot_be_had_shows_its_error() -> None:
    def text(node: Node) -> str:
        raise NodeError("the engine <stopped> it")

    read = Reader(talk_html("ask", line(Gen("a")), text))
    assert "NodeError: the engine <stopped> it" in read.text


def test_a_branch_is_indented_under_its_fork() -> None:
    nodes = (
        Node(0, Text("a"), None),
        Node(1, Gen("x"), 0, branch="0.0"),
        Node(2, Gen("x"), 0, branch="0.1"),
    )
    page = graph_html(Graph("f", nodes))
    assert page.count("padding-left:8px") == 1
    assert page.count("padding-left:28px") == 2
    assert "[0.1] gen x <- 0" in Reader(page).text


def test_a_long_graph_is_cut_and_says_so() -> None:
    page = graph_html(Graph("f", line(*[Text("a")] * (MAX_ROWS + 7))))
    assert page.count("<tr") == MAX_ROWS
    assert "and 7 more nodes" in Reader(page).text
