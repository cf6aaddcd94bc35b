"""The tokens that must come next where a grammar leaves one text only: for jump-forward.

They are canonical: what the tokenizer gives for the forced text together with the token
before it. Where that would spell the token before it anew, nothing is forced. The last
tokens are held back as long as a longer token could run from them over the end of the
forced text, so that the model still has that choice.

After: SGLang's compressed FSM, and llguidance's canonical tokens in forced text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from .pool import Pool
    from .state import State

MAX_FORCED_BYTES = 4096  # looked ahead at once

Encode: TypeAlias = Callable[[str], Sequence[int]]


class Ahead:
    """What must follow a state: whole characters, as far as can be seen from there alone.

    `is_cut`: there is more of it. `tokens` has what became of it, by the token before (None
    at the start of a text).
    """

    __slots__ = ("data", "end", "is_cut", "tokens")

    def __init__(self, data: bytes, end: State, is_cut: bool) -> None:
        self.data = data
        self.end = end  # where `data` leads
        self.is_cut = is_cut
        self.tokens: dict[int | None, tuple[int, ...]] = {}


def forced_bytes(start: State, pool: Pool) -> tuple[bytes, State]:
    """Give the bytes that must follow `start`, and where they lead. Call it inside `using`."""
    found = b""
    state = start
    pushdown = pool.pushdown
    while not state.is_accepting and len(found) < MAX_FORCED_BYTES:
        data = state.chain[: MAX_FORCED_BYTES - len(found)]
        if data:
            after = pushdown.skip(state, len(data))
        elif len(state.first) == 1:
            data = bytes(state.first)
            after = pushdown.step(state, data[0])
        else:
            break
        if after is None:
            break
        found += data
        state = after
    return found, state


def forced_tokens(state: State, last_id: int | None, pool: Pool, encode: Encode) -> tuple[int, ...]:
    """Give the tokens that must follow `last_id`, which led to `state`. Call it inside `using`.

    `encode` is the tokenizer's, the same in every call for one pool.
    """
    ahead = state.ahead
    if ahead is None:
        ahead = state.ahead = _look_ahead(state, pool)
    if not ahead.data:
        return ()
    found = ahead.tokens.get(last_id)
    if found is None:
        ids = _canonical(ahead.data, last_id, pool, encode)
        found = ahead.tokens[last_id] = ids[: len(ids) - _num_held(ids, ahead, pool)]
    return found


def _look_ahead(state: State, pool: Pool) -> Ahead:
    data, end = forced_bytes(state, pool)
    whole = data[: _whole_len(data)]
    if len(whole) < len(data):
        end = pool.pushdown.advance(state, whole) or state
    return Ahead(whole, end, is_cut=len(data) == MAX_FORCED_BYTES)


def _canonical(data: bytes, last_id: int | None, pool: Pool, encode: Encode) -> tuple[int, ...]:
    """Tokenise `data` behind the token before it; nothing if that comes out otherwise.

    A token that begins inside a character is no text, and so changes nothing.
    """
    bytes_of = pool.vocabulary.bytes_of
    before = () if last_id is None else (last_id,)
    text = _text(b"".join(bytes_of(i) or b"" for i in before) + data)
    if text is None:
        before, text = (), _text(data)
    ids = () if text is None else tuple(encode(text))
    if ids[: len(before)] != before:
        return ()
    ids = ids[len(before) :]
    # Some tokenizers change the text, or have no token that may stand for a part of it.
    return ids if b"".join(bytes_of(i) or b"" for i in ids) == data else ()


def _num_held(ids: tuple[int, ...], ahead: Ahead, pool: Pool) -> int:
    """Count the last tokens from whose beginning on a longer one could come."""
    num_held, rest = 0, b""
    for count, token_id in enumerate(reversed(ids), 1):
        rest = (pool.vocabulary.bytes_of(token_id) or b"") + rest
        if len(rest) >= pool.vocabulary.longest:
            break
        if ahead.is_cut or _runs_over(rest, ahead.end, pool):
            num_held = count
    return num_held


def _runs_over(rest: bytes, end: State, pool: Pool) -> bool:
    """Say whether some token begins with `rest`, and goes on with what may follow `end`."""
    start = pool.frontiers.root
    for byte in rest:
        if byte not in start.children:
            return False
        start = start.children[byte]
    pending = [(end, start)]
    while pending:
        state, frontier = pending.pop()
        for byte in frontier.children.keys() & state.first:
            after = pool.pushdown.step(state, byte)
            if after is None:
                continue
            child = frontier.children[byte]
            if child.ids:
                return True
            pending.append((after, child))
    return False


def _text(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _whole_len(data: bytes) -> int:
    """Give the length of `data` without a last character that is not whole."""
    for length in range(1, min(3, len(data)) + 1):
        byte = data[-length]
        if byte >= 0xC0:
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return len(data) - length if length < needed else len(data)
        if byte < 0x80:
            break
    return len(data)
