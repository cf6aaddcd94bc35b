"""Regular languages byte by byte: where a text stands inside a terminal of a grammar."""

from __future__ import annotations

from collections.abc import Callable, Hashable, KeysView, Mapping
from typing import TypeAlias, TypeVar, cast

from .derive import Derivatives
from .language import Language, is_nullable
from .languages import Languages
from .piece import Piece
from .twins import Twins
from .utf8 import DEAD, WHOLE, ByteClasses, Spelling
from .words import Unlisted

QUOTE = 0x22
WIDE = 40  # bytes that lead on: from here on a state counts as wide

Parts: TypeAlias = tuple[tuple[int, Language], ...]  # places in characters, and what follows
S = TypeVar("S", bound="LocalState")
Group: TypeAlias = "tuple[tuple[int, ...], LocalState]"  # these bytes lead there


class LocalState:
    """A place in a terminal. Made by `LocalStates`: equal ones are one object.

    A JSON string's terminal ends with its closing quote, so nothing can follow its text by
    accident: `is_closed`.
    """

    __slots__ = (
        "_edges", "_groups", "_owner", "_twins", "guard", "is_closed", "is_final", "is_greedy",
        "language", "literal", "parts", "spelling",
    )  # fmt: skip

    def __init__(self, owner: LocalStates, spelling: Spelling, is_greedy: bool) -> None:
        self._owner = owner
        self._groups: tuple[Group, ...] | None = None
        self._edges: dict[int, LocalState] | None = None
        self.spelling: Spelling = spelling
        self.is_greedy = is_greedy  # takes all it can: what follows may not extend it
        self.guard: LocalState = self  # of a greedy one: how it would be extended
        self.language: Language | None = None  # at the border of two characters
        self.parts: Parts = ()  # inside a character
        self.literal = b""  # bytes that must come next
        self.is_final = False
        self.is_closed = spelling == "json"
        self._twins: dict[int, LocalState] = {}

    @property
    def twin(self) -> LocalState:
        """A state that looks the same over a whole token; itself if there is none."""
        return self.over(self._owner.horizon)

    def over(self, horizon: int) -> LocalState:
        """Give a state that looks the same over `horizon` bytes; itself if there is none."""
        found = self._twins.get(horizon)
        if found is None:
            found = self._twins[horizon] = self._owner.twin(self, horizon)
        return found

    def split(self) -> tuple[LocalState, frozenset[str]] | None:
        """Give a state, and texts that are in it and not in this one, if that is all."""
        return self._owner.split(self)

    @property
    def leads_on(self) -> bool:
        """True where some byte may follow that belongs to the terminal."""
        return bool(self.groups)

    @property
    def groups(self) -> tuple[Group, ...]:
        """What each byte leads to, bytes that lead to the same place together."""
        if self._groups is None:
            self._groups = self._owner.groups_of(self)
        return self._groups

    @property
    def edges(self) -> Mapping[int, LocalState]:
        """What each byte leads to."""
        if self._edges is None:
            edges: dict[int, LocalState] = {}
            for data, state in self.groups:
                edges.update(dict.fromkeys(data, state))
            self._edges = edges
        return self._edges

    @property
    def first(self) -> KeysView[int]:
        """The bytes that lead on."""
        return self.edges.keys()

    def skip(self, count: int) -> LocalState:
        """Give the state behind the first `count` bytes of its literal."""
        return self._owner.literal(self.literal[count:])

    @property
    def is_last(self) -> bool:
        """True where the terminal is whole and nothing more belongs to it."""
        return self.is_final and not self.leads_on


class LocalStates:
    """Makes the local states of one pool; not thread-safe.

    `horizon` is the length of the longest token in bytes.
    """

    def __init__(self, languages: Languages, classes: ByteClasses, horizon: int) -> None:
        self._languages = languages
        self._derivatives = {
            "plain": Derivatives(languages, languages.spellable),
            "json": Derivatives(languages, languages.sets.all),
        }
        self._classes = classes
        self._twins = Twins(languages, self._derivatives["json"])
        self.horizon = horizon
        self._made: dict[Hashable, LocalState] = {}
        self.end = self.literal(b"")

    def __len__(self) -> int:
        return len(self._made)

    def literal(self, data: bytes) -> LocalState:
        """Give the state before exactly `data`. None of its bytes may be unspellable."""
        found = self._made.get(data)
        if found is None:
            found = self._made[data] = LocalState(self, "plain", is_greedy=False)
            found.literal, found.is_final = data, not data
        return found

    def intern(self, key: Hashable, make: Callable[[], S]) -> S:
        """Give the state of a kind of its own that is kept under `key`."""
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = make()
        return cast("S", found)

    def can_spell(self, data: bytes) -> bool:
        """Say whether some token holds each of the bytes."""
        return self._classes.can_spell(data)

    def start(self, language: Language, spelling: Spelling, is_greedy: bool = False) -> LocalState:
        """Give the state before a text of `language`; a JSON string's opening quote is over."""
        key = (language, spelling, is_greedy)
        found = self._made.get(key)
        if found is None:
            found = LocalState(self, spelling, is_greedy)
            found.language = language
            found.is_final = spelling == "plain" and is_nullable(language)
            if isinstance(language.payload, Piece):
                found.guard = self.start(language.payload.guard, spelling, is_greedy)
            self._made[key] = found  # last: what is above may run out of budget
        return found

    def twin(self, state: LocalState, horizon: int) -> LocalState:
        """Give a state that looks the same over `horizon` bytes; itself if there is none."""
        if state.language is not None:
            language = self._twins.get(state.language, horizon)
            return self.start(language, state.spelling, state.is_greedy)
        if not state.parts:
            return state
        parts = tuple((node, self._twins.get(part, horizon)) for node, part in state.parts)
        return self._target(parts, state)

    def split(self, state: LocalState) -> tuple[LocalState, frozenset[str]] | None:
        """Give a state, and texts that are in it and not in `state`, if that is all.

        For a JSON string that is none of some listed ones; None for all others.
        """
        language = state.language
        if state.spelling != "json" or language is None:
            return None
        if not isinstance(language.payload, Unlisted):
            return None
        return self.start(self._languages.anything, "json"), language.payload.rests

    def is_live(self, language: Language, spelling: Spelling) -> bool:
        """Say whether any text of `language` can be spelt."""
        return self._derivatives[spelling].is_live(language)

    def groups_of(self, state: LocalState) -> tuple[Group, ...]:
        """Give what each byte leads to from `state`."""
        if state.literal:
            return (((state.literal[0],), self.literal(state.literal[1:])),)
        parts = state.parts
        if state.language is not None:
            parts = self._first(state.language, state.spelling)
        groups = self._grouped(parts)
        ended: list[Group] = []
        if state.spelling == "json" and state.language is not None and is_nullable(state.language):
            ended.append(((QUOTE,), self.end))
        return (*ended, *((tuple(data), self._target(key, state)) for key, data in groups.items()))

    def _grouped(self, parts: Parts) -> dict[Parts, list[int]]:
        """Give the bytes at which the same parts go on, with where these are then."""
        groups: dict[Parts, list[int]] = {}
        if len(parts) == 1:
            ((start, language),) = parts
            for low, high, child in self._classes.nodes[start].edges:
                groups.setdefault(((child, language),), []).extend(range(low, high + 1))
            return groups
        nodes = [(self._classes.nodes[node], language) for node, language in parts]
        borders = sorted(frozenset().union(*(node.borders for node, _ in nodes)))
        places = {border: place for place, border in enumerate(borders)}
        targets: list[list[tuple[int, Language]]] = [[] for _ in borders]
        for node, language in nodes:
            for low, high, child in node.edges:
                for place in range(places[low], places[high + 1]):
                    targets[place].append((child, language))
        for place, found in enumerate(targets):
            if found:
                data = range(borders[place], borders[place + 1])
                groups.setdefault(tuple(found), []).extend(data)
        return groups

    def _first(self, language: Language, spelling: Spelling) -> Parts:
        """Give the node that begins each set of next characters, and what follows it."""
        derivatives = self._derivatives[spelling]
        roots = (
            (self._classes.root(chars.ranges, spelling), after)
            for chars, after in derivatives.row(language)
            if derivatives.is_live(after)
        )
        return tuple((root, after) for root, after in roots if root != DEAD)

    def _target(self, parts: Parts, start: LocalState) -> LocalState:
        node, language = parts[0]
        if node == WHOLE:  # the sets are apart: no other part can be whole here
            return self.start(language, start.spelling, start.is_greedy)
        key = (parts, start.spelling, start.is_greedy)
        found = self._made.get(key)
        if found is None:
            found = LocalState(self, start.spelling, start.is_greedy)
            found.parts = parts
            self._made[key] = found
        return found
