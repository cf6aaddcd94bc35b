"""Turn tokens into text as they come: whole characters, and nothing of a stop string.

One path for streams, single runs and batches. Everything is linear in the bytes and does
not depend on where the tokens' borders are.
"""

from __future__ import annotations

import codecs
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field


class Detokenizer:
    """Decodes tokens' bytes as UTF-8, holding back a character that is not whole yet.

    All that it gives, laid end to end, equals `bytes.decode("utf-8", "replace")` of all bytes
    but those that `skip` left out. Ids without bytes (control tokens) and ids out of range
    add nothing.
    """

    def __init__(self, token_bytes: Sequence[bytes | None]) -> None:
        self._token_bytes = token_bytes
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._num_skipping = 0

    def skip(self, num_bytes: int) -> None:
        """Leave the next bytes out: the tokens to come spell text that is not the output's."""
        self._num_skipping = num_bytes

    @property
    def num_skipping(self) -> int:
        """Bytes still to come that are left out."""
        return self._num_skipping

    def push(self, token_id: int) -> str:
        """Give the characters that `token_id` makes whole; invalid bytes become U+FFFD."""
        in_range = 0 <= token_id < len(self._token_bytes)
        data = (self._token_bytes[token_id] if in_range else None) or b""
        skipped = min(self._num_skipping, len(data))
        self._num_skipping -= skipped
        return self._decoder.decode(data[skipped:])

    @property
    def is_mid_character(self) -> bool:
        """True while bytes are held that may still become a character."""
        return bool(self._decoder.getstate()[0])

    def finish(self) -> str:
        """Give what was held: one U+FFFD for an unfinished character, else nothing."""
        return self._decoder.decode(b"", final=True)


@dataclass(frozen=True, slots=True)
class StopMatch:
    """A stop string that was found; `end` counts the characters of the text so far."""

    stop: str
    end: int

    @property
    def start(self) -> int:
        """Give the number of characters before the stop."""
        return self.end - len(self.stop)


@dataclass(slots=True)
class _Node:
    """What was read so far is a prefix of some stop: this one."""

    depth: int
    after: dict[str, _Node] = field(default_factory=dict)
    fallback: _Node | None = None  # longest proper suffix that is a prefix of some stop
    stop: str = ""  # longest stop that ends here


class StopMatcher:
    """Finds the first stop string in a text that comes in pieces (Aho and Corasick).

    The stop that is complete first wins; of those that end at the same character, the
    longest. So the result is that of reading character by character, wherever the pieces
    are cut, and no token is generated past a complete stop.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._root = _build(stops)
        self._node = self._root
        self._num_read = 0

    @property
    def held_len(self) -> int:
        """Give the length of the longest suffix that may still become a stop."""
        return self._node.depth

    def feed(self, text: str) -> StopMatch | None:
        """Read on; give the match, after which the matcher must not be fed."""
        if not self._root.after:
            return None
        for char in text:
            self._num_read += 1
            self._node = _advance(self._node, char)
            if self._node.stop:
                return StopMatch(self._node.stop, self._num_read)
        return None


def _build(stops: Sequence[str]) -> _Node:
    root = _Node(0)
    for stop in stops:
        node = root
        for char in stop:
            node = node.after.setdefault(char, _Node(node.depth + 1))
        node.stop = stop
    queue = deque([root])
    while queue:
        node = queue.popleft()
        for char, child in node.after.items():
            child.fallback = root if node.fallback is None else _advance(node.fallback, char)
            child.stop = child.stop or child.fallback.stop
            queue.append(child)
    return root


def _advance(node: _Node, char: str) -> _Node:
    while char not in node.after:
        if node.fallback is None:
            return node
        node = node.fallback
    return node.after[char]


class TextStream:
    """The text of one output: detokenised, cut before the first stop string, or behind it.

    After the end, what the first `num_kept` tokens spell, but for the bytes that `skip`
    leaves out, and `tail` are the whole text: what follows an output can go on from the kept
    tokens without tokenising them again. A token is kept only if it ends with a character, or
    is the last of an unstopped output; none is kept before all that is skipped is spelled.
    """

    def __init__(
        self,
        token_bytes: Sequence[bytes | None],
        stops: Sequence[str] = (),
        keeps_stop: bool = False,
    ) -> None:
        self._keeps_stop = keeps_stop
        self._detokenizer = Detokenizer(token_bytes)
        self._matcher = StopMatcher(stops)
        self._has_stops = bool(stops)
        self._match: StopMatch | None = None
        self._num_tokens = 0
        self._num_chars = 0
        self._num_shown = 0
        # The text since the oldest border that the cut may still need, and the places
        # (tokens, characters) where a token ends together with a character.
        self._recent = ""
        self._borders: deque[tuple[int, int]] = deque([(0, 0)])

    @property
    def is_stopped(self) -> bool:
        """True once a stop string was found; what is pushed after that is ignored."""
        return self._match is not None

    @property
    def stop_reason(self) -> str | None:
        """Give the stop string that was found."""
        return None if self._match is None else self._match.stop

    @property
    def num_kept(self) -> int:
        """Give the number of tokens that lie wholly before the cut, or of all tokens."""
        if self._detokenizer.num_skipping:
            return 0
        return self._num_tokens if self._match is None else self._borders[0][0]

    @property
    def tail(self) -> str:
        """Give the text between the kept tokens and the cut."""
        if self._match is None:
            return ""
        return self._recent[: self._end(self._match) - self._borders[0][1]]

    def skip(self, num_bytes: int) -> None:
        """Leave the next bytes out: the tokens to come spell text that is not the output's."""
        self._detokenizer.skip(num_bytes)

    def push(self, token_id: int) -> str:
        """Take the next token; give the text that is now safe to show."""
        if self.is_stopped:
            return ""
        self._num_tokens += 1
        return self._read(self._detokenizer.push(token_id))

    def finish(self) -> str:
        """End the output; give the text that was held back. A second call gives nothing."""
        if self.is_stopped:
            return ""
        shown = self._read(self._detokenizer.finish())
        if self.is_stopped or not self._has_stops:
            return shown
        return shown + self._show(self._num_chars)

    def _read(self, text: str) -> str:
        if not self._has_stops:  # nothing is ever cut or held back
            return text
        self._recent += text
        self._num_chars += len(text)
        detokenizer = self._detokenizer
        if not detokenizer.is_mid_character and not detokenizer.num_skipping:
            self._borders.append((self._num_tokens, self._num_chars))
        self._match = self._matcher.feed(text)
        if self._match is not None:
            return self._show(self._end(self._match))
        return self._show(max(self._num_shown, self._num_chars - self._matcher.held_len))

    def _end(self, match: StopMatch) -> int:
        """Give the number of characters before the cut."""
        return match.end if self._keeps_stop else match.start

    def _show(self, end: int) -> str:
        """Give the text up to character `end`, and forget the borders before the last of it."""
        oldest = self._borders[0][1]
        shown = self._recent[self._num_shown - oldest : end - oldest]
        self._num_shown = end
        while len(self._borders) > 1 and self._borders[1][1] <= end:
            self._borders.popleft()
        self._recent = self._recent[self._borders[0][1] - oldest :]
        return shown
