"""Small recursive grammars."""

from __future__ import annotations

from plait.runtime.grammar.build import build_language
from plait.runtime.grammar.node import Node, Rule
from plait.runtime.grammar.pool import IDLE, Pool
from plait.runtime.grammar.regex import parse


def terminal(pattern: str, pool: Pool) -> Node:
    """Give the texts of a regex."""
    with pool.using(IDLE):
        return pool.nodes.terminal(
            pool.locals.start(build_language(parse(pattern), pool.languages), "plain")
        )


def literal(data: bytes, pool: Pool) -> Node:
    """Give one text."""
    return pool.nodes.terminal(pool.locals.literal(data))


def string(pattern: str, pool: Pool) -> Node:
    """Give the JSON strings of the texts of a regex."""
    with pool.using(IDLE):
        language = build_language(parse(pattern), pool.languages)
        body = pool.nodes.terminal(pool.locals.start(language, "json"))
    return pool.nodes.sequence(literal(b'"', pool), body)


def brackets(pool: Pool) -> Node:
    """Give balanced round and square brackets, none at all included."""
    rule = Rule("brackets")
    pairs = [tuple(literal(b, pool) for b in pair) for pair in ((b"(", b")"), (b"[", b"]"))]
    nested = pool.nodes.choice(*(pool.nodes.sequence(a, rule, b) for a, b in pairs))
    rule.body = pool.nodes.times(nested, 0, None)
    return rule


def arrays(pool: Pool) -> Node:
    """Give nested JSON arrays of `a` and of strings of two to four characters or one é."""
    nodes, rule = pool.nodes, Rule("array")
    texts = string(r"(?s)(?!.*b).{2,4}|é", pool)
    item = nodes.choice(literal(b"a", pool), texts, rule)
    more = nodes.times(nodes.sequence(literal(b",", pool), item), 0, None)
    items = nodes.times(nodes.sequence(item, more), 0, 1)
    rule.body = nodes.sequence(literal(b"[", pool), items, literal(b"]", pool))
    return rule
