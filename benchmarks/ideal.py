"""The best hit rate that any prefix cache could have on a list of requests."""

from __future__ import annotations

from collections.abc import Iterable

Trie = dict[int, "Trie"]


def ideal_cached_tokens(requests: Iterable[tuple[list[int], list[int], int]]) -> int:
    """Count the prompt tokens that an infinite token-exact cache would not compute.

    A request is (prompt, output, num_needed): the last `num_needed` prompt tokens have to be
    computed in any case (one for a continuation, since the cache holds no logits). The last
    output token is never computed, so it is never cached.
    """
    root: Trie = {}
    total = 0
    for prompt, output, num_needed in requests:
        total += min(_match(root, prompt), len(prompt) - num_needed)
        _insert(root, [*prompt, *output[:-1]])
    return total


def _match(root: Trie, tokens: list[int]) -> int:
    node, length = root, 0
    while length < len(tokens) and tokens[length] in node:
        node = node[tokens[length]]
        length += 1
    return length


def _insert(root: Trie, tokens: list[int]) -> None:
    node = root
    for token in tokens:
        node = node.setdefault(token, {})
