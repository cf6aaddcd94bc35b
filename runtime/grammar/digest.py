"""Digests of places in terminals: equal in every process, different where the texts may be."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from .charset import CharSet
from .language import Language
from .piece import Piece
from .terminal import LocalState
from .utf8 import WHOLE, ByteClasses
from .words import Listed, Unlisted

UNKNOWN = b""  # of what holds code whose behaviour has no name
DIGEST_BYTES = 16


class Digests:
    """Finds the digests of one pool's places, each part once. Not thread-safe.

    They are of the expressions, not of the texts: equal digests mean equal texts, but one set
    of texts may be written in several ways and so have several digests.
    """

    def __init__(self, classes: ByteClasses) -> None:
        self._classes = classes
        self._nodes: dict[int, bytes] = {WHOLE: _digest("whole")}
        self._sets: dict[CharSet, bytes] = {}
        self._languages: dict[Language, bytes] = {}

    def find(self, local: LocalState) -> bytes | None:
        """Give the digest of what `local` may be followed by, up to the end of its terminal.

        None where it has none: loops over looks, lark's scans, multiples, and the states of
        switches and of kept terminals.
        """
        if type(local) is not LocalState:
            return None
        if local.language is not None:
            parts = [self._language(local.language)]
        else:
            pairs = [(self._node(node), self._language(part)) for node, part in local.parts]
            if UNKNOWN in (part for _, part in pairs):
                return None
            parts = sorted(node + part for node, part in pairs)
        if UNKNOWN in parts:
            return None
        is_border = local.language is not None
        return _digest("place", (is_border, local.spelling, local.literal), parts)

    def _language(self, start: Language) -> bytes:
        """Give a language's digest; without recursion, since words are deep."""
        known = self._languages
        pending = [start]
        while pending:
            language = pending[-1]
            missing = [part for part in _parts(language) if part not in known]
            if missing:
                pending.extend(missing)
            else:
                known[pending.pop()] = self._of_parts(language)
        return known[start]

    def _of_parts(self, language: Language) -> bytes:
        parts = [self._languages[part] for part in _parts(language)]
        if UNKNOWN in parts:
            return UNKNOWN
        extra: object = None
        match language.kind:
            case "nothing" | "empty" | "concat" | "not" | "tracked":
                pass
            case "chars":
                assert language.chars is not None
                parts = [self._set(language.chars)]
            case "union" | "both":
                parts.sort()  # they stand in the order in which this process made them
            case "repeat":
                extra = language.low, language.high
            case "behind":
                extra = language.payload  # a place among the histories of the `tracked` around
            case "machine":
                extra = _machine(language.payload)
                if extra is None:
                    return UNKNOWN
            case _:  # a loop, which is code
                return UNKNOWN
        return _digest(language.kind, extra, parts)

    def _set(self, chars: CharSet) -> bytes:
        found = self._sets.get(chars)
        if found is None:
            found = self._sets[chars] = _digest("set", chars.ranges)
        return found

    def _node(self, number: int) -> bytes:
        found = self._nodes.get(number)
        if found is None:
            edges = self._classes.nodes[number].edges
            steps = [(low, high, self._node(child)) for low, high, child in edges]
            found = self._nodes[number] = _digest("node", steps)
        return found


def _parts(language: Language) -> tuple[Language, ...]:
    if isinstance(language.payload, Piece):
        return language.payload.part, language.payload.whole
    return language.parts


def _machine(payload: object) -> object:
    """Give what tells a machine from others besides its parts; None if that is not known."""
    match payload:
        case Listed(rests, sets):
            return "Listed", sorted(rests), None if sets is None else sorted(sets.ranges.items())
        case Unlisted(rests):
            return "Unlisted", sorted(rests)
        case Piece():
            return "Piece"
        case _:
            return None


def _digest(kind: str, extra: object = None, parts: Iterable[bytes] = ()) -> bytes:
    head = repr((kind, extra)).encode("utf-8", "backslashreplace")  # ends where its bracket does
    return hashlib.blake2b(head + b"".join(parts), digest_size=DIGEST_BYTES).digest()
