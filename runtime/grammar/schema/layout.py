"""How JSON is laid out: compact, or with blanks where JSON allows them."""

from __future__ import annotations

import json

from ..node import Node, Row
from ..pool import Pool

BLANKS = ((9, 10), (13, 13), (32, 32))


class Layout:
    """Makes the rows of punctuation. `max_blanks` may stand at each place: 0 is compact."""

    def __init__(self, pool: Pool, max_blanks: int) -> None:
        self._pool = pool
        self._blanks: Row = ()
        self._keys: dict[tuple[str, bool], tuple[bytes, Row]] = {}
        if max_blanks:
            languages = pool.languages
            blank = languages.chars(languages.sets.get(BLANKS))
            start = pool.locals.start(languages.repeat(blank, 0, max_blanks), "plain")
            self._blanks = (pool.nodes.terminal(start),)

    def literal(self, text: str) -> Node:
        """Give the node of exactly `text`."""
        return self._pool.nodes.terminal(self._pool.locals.literal(text.encode()))

    def key(self, name: str, is_first: bool) -> tuple[bytes, Row]:
        """Give a property's name with what belongs to it, and what follows it."""
        found = self._keys.get((name, is_first))
        if found is None:
            found = self._keys[name, is_first] = self._key(name, is_first)
        return found

    def _key(self, name: str, is_first: bool) -> tuple[bytes, Row]:
        text = json.dumps(name, ensure_ascii=False)
        if self._blanks:
            return text.encode(), self.colon()
        return (text + ":" if is_first else "," + text + ":").encode(), ()

    def before_key(self, is_first: bool) -> Row:
        """Give what stands before a property's name, and does not belong to `key`."""
        return self.comma() if self._blanks and not is_first else ()

    def comma(self) -> Row:
        """Give the comma between two items."""
        return (*self._blanks, self.literal(","), *self._blanks)

    def colon(self) -> Row:
        """Give the colon after a name."""
        return (*self._blanks, self.literal(":"), *self._blanks)

    def open(self, bracket: str) -> Row:
        """Give an opening bracket."""
        return (self.literal(bracket), *self._blanks)

    def close(self, bracket: str, is_empty: bool) -> Row:
        """Give a closing bracket; behind an opening one, the blanks are there already."""
        return (*(() if is_empty else self._blanks), self.literal(bracket))
