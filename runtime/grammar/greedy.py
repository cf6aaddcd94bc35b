"""Tokens over terminals that take all they can, as those of a lexer do.

Which tokens stay inside such a terminal, and at which places in the trie others leave it, does
not depend on what may follow. So it is found once for each place in a terminal, and again
from each place in the trie at which the terminal before was left: a parser's stack only says
which terminals follow each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

import numpy as np

from .budget import Budget
from .frontier import Frontier, Frontiers
from .lru import Lru
from .narrow import NarrowWalk
from .node import Lexicon, Stacked
from .pushdown import Pushdown, guarded, step_guards
from .spec import Bitmask
from .spots import NO_TOKENS, Exits, Inside, Passage, Spot, Tokens, joined
from .state import NO_GUARDS, Cell, Config, Guards
from .terminal import LocalState
from .vocabulary import Ints, Slice, Vocabulary
from .walk import Flags, Passed, Walker, children

MAX_KEPT = 8192  # walks, most of them small
NARROW = 128  # places in the trie: past them, many at once is faster than one by one


class Greedy:
    """Finds the tokens that may follow in greedy terminals. Not thread-safe.

    `narrow` finds the tokens from a place in the trie on for any other terminal.
    """

    def __init__(self, vocabulary: Vocabulary, frontiers: Frontiers, pushdown: Pushdown) -> None:
        self._vocabulary = vocabulary
        self._frontiers = frontiers
        self._pushdown = pushdown
        self.narrow = NarrowWalk(pushdown, frontiers.root, self.inside)
        self._walker = Walker[Spot](_groups, _is_last)
        self._insides = Lru[tuple[Spot, Frontier], Inside](MAX_KEPT)
        self._sliced = Lru[tuple[Spot, int], tuple[Bitmask, Passed[Guards]]](MAX_KEPT)
        self._passages = Lru[tuple[Lexicon, Guards, Frontier], Passage](MAX_KEPT)
        self._behinds = Lru[tuple[Cell, Guards, Frontier, int], Tokens](MAX_KEPT)
        self._endings: dict[Guards, Flags] = {}

    def tokens(self, config: Config, depth: int, budget: Budget) -> Iterator[Tokens]:
        """Give the tokens that may follow a way to read the text.

        Looks at `depth` of a parser's stack at each place, 0: at all of it. Raises: TooNear
        if that is not enough.
        """
        spot = Spot(config.local, config.guards)
        inside = self._inside(spot, self._frontiers.root, budget)
        yield inside.tokens
        for guards, frontier in inside.exits:
            yield self._behind(config.rest, guards, frontier, depth, budget)

    def inside(self, local: LocalState, frontier: Frontier, budget: Budget) -> Inside:
        """Give the tokens whose rests from `frontier` on stay in a terminal, or leave it."""
        return self._inside(Spot(local, NO_GUARDS), frontier, budget)

    def _behind(
        self, rest: Cell | None, guards: Guards, frontier: Frontier, depth: int, budget: Budget
    ) -> Tokens:
        """Give the tokens whose rests from `frontier` on may follow before `rest`."""
        if rest is None:
            return NO_TOKENS
        key = (rest, guards, frontier, depth)
        found = self._behinds.get(key)
        if found is None:
            lexicon = rest.node.lexicon if isinstance(rest.node, Stacked) else None
            if lexicon is not None:
                found = joined(list(self._parsed(lexicon, rest, guards, frontier, depth, budget)))
            else:
                found = self._plainly(rest, guards, frontier, budget)
            self._behinds.put(key, found)
        return found

    def _plainly(self, rest: Cell, guards: Guards, frontier: Frontier, budget: Budget) -> Tokens:
        after = guarded(self._pushdown.closure(rest), guards)
        state = self._pushdown.state(after, is_accepting=False)
        return Tokens(None, tuple(self.narrow.all(state, frontier, budget)))

    def _parsed(
        self,
        lexicon: Lexicon,
        rest: Cell,
        guards: Guards,
        frontier: Frontier,
        depth: int,
        budget: Budget,
    ) -> Iterator[Tokens]:
        """Give the tokens behind a parser's stack, some of them twice."""
        node = cast("Stacked", rest.node)
        passage = self._passage(lexicon, guards, frontier, budget)
        for name, place in node.follow(frozenset(passage.terminals), depth).items():
            after = self._pushdown.push(place, rest.rest)
            for inside in passage.terminals[name]:
                yield inside.tokens
                for left, beyond in inside.exits:
                    yield self._behind(after, left, beyond, depth, budget)
        yield passage.ignored
        if rest.rest is not None and node.may_end:
            for left, beyond in passage.starts:
                yield self._plainly(rest.rest, left, beyond, budget)

    def _passage(
        self, lexicon: Lexicon, guards: Guards, frontier: Frontier, budget: Budget
    ) -> Passage:
        """Follow what a lexer may take from a place in the trie on, whatever a parser wants."""
        key = (lexicon, guards, frontier)
        found = self._passages.get(key)
        if found is None:
            terminals: dict[str, list[Inside]] = {}
            ignored: list[Tokens] = []
            starts = {(guards, frontier): None}
            pending = [(guards, frontier)]
            while pending:
                before, start = pending.pop()
                for name, (local, unless) in lexicon.terminals:
                    if local.first.isdisjoint(start.children):
                        continue
                    inside = self._inside(Spot(local, before | unless), start, budget)
                    if name is None:
                        ignored.append(inside.tokens)
                        pending.extend(each for each in inside.exits if each not in starts)
                        starts.update(dict.fromkeys(inside.exits))
                    elif inside.exits or inside.tokens.ids or inside.tokens.mask is not None:
                        terminals.setdefault(name, []).append(inside)
            found = Passage(terminals, joined(ignored), tuple(starts))
            self._passages.put(key, found)
        return found

    def _inside(self, spot: Spot, frontier: Frontier, budget: Budget) -> Inside:
        key = (spot, frontier)
        found = self._insides.get(key)
        if found is None:
            budget.check_time("the next token's mask")
            found = self._step(spot, frontier)
            if found is None:
                is_root = frontier is self._frontiers.root
                walk = self._in_slices if is_root else self._walk
                found = walk(spot, frontier, budget)
            self._insides.put(key, found)
        return found

    def _step(self, spot: Spot, frontier: Frontier) -> Inside | None:
        """Follow a terminal byte by byte; None if that would take long."""
        ids: list[int] = []
        exits: Passed[Guards] = {}
        pending = [(spot, frontier)]
        count = 0
        while pending:
            (local, guards), frontier = pending.pop()
            after_bytes = frontier.children
            for byte in after_bytes.keys() & local.first:
                left = step_guards(guards, byte) if guards else guards
                if left is None:
                    continue
                after, child = local.edges[byte], after_bytes[byte]
                ids.extend(child.ids)
                if child.children:
                    pending.append((Spot(after, left), child))
                    if after.is_final:
                        exits.setdefault(_beyond(after, left), []).append(
                            np.array(child.nodes, np.int32)
                        )
            count += len(after_bytes)
            if count > NARROW * 2:
                return None
        return Inside(Tokens(None, tuple(ids)), self._exits(exits))

    def _in_slices(self, spot: Spot, _: Frontier, budget: Budget) -> Inside:
        """Walk the whole trie, short tokens apart: more places look alike to them."""
        mask = np.zeros(self._vocabulary.mask_len, np.int32)
        exits: Passed[Guards] = {}
        for number, part in enumerate(self._vocabulary.slices):
            twin = Spot(spot.local.over(part.longest), spot.guards)
            found = self._sliced.get((twin, number))
            if found is None:
                flags, passed = self._pass(twin, part, None, budget)
                found = self._vocabulary.pack_slice(part, flags), passed
                self._sliced.put((twin, number), found)
            np.bitwise_or(mask, found[0], out=mask)
            for guards, nodes in found[1].items():
                exits.setdefault(guards, []).extend(part.nodes[each] for each in nodes)
        return Inside(Tokens(mask, ()), self._exits(exits))

    def _walk(self, spot: Spot, frontier: Frontier, budget: Budget) -> Inside:
        whole = self._vocabulary.whole
        nodes = np.array(frontier.nodes, np.int32)
        flags, passed = self._pass(spot, whole, nodes, budget)
        return Inside(Tokens(self._vocabulary.pack(flags), ()), self._exits(passed))

    def _pass(
        self, spot: Spot, part: Slice, nodes: Ints | None, budget: Budget
    ) -> tuple[Flags, Passed[Guards]]:
        """Walk a slice; give the tokens, and the nodes at which the terminal may be over."""
        passed: Passed[Spot] = {}
        walked = self._walker.walk(spot, part, budget, nodes, passed)
        exits: Passed[Guards] = {}
        for (local, guards), found in passed.items():
            if local.is_final:
                exits.setdefault(_beyond(local, guards), []).extend(found)
        return walked.allowed, exits

    def _exits(self, passed: Passed[Guards]) -> Exits:
        """Keep the nodes from which a token goes on with what the guards allow."""
        trie = self._vocabulary.trie
        exits: list[tuple[Guards, Frontier]] = []
        for guards, parts in passed.items():
            nodes = np.unique(np.concatenate(parts))
            below, places = children(trie, nodes, np.arange(len(nodes), dtype=np.int32))
            is_open = ~self._ends(guards)[trie.byte[below]]
            left = nodes[np.unique(places[is_open])].tolist()
            if left:
                exits.append((guards, self._frontiers.get(tuple(left))))
        return tuple(exits)

    def _ends(self, guards: Guards) -> Flags:
        """Give the bytes [256] at which one of the guards forbids the text."""
        found = self._endings.get(guards)
        if found is None:
            found = np.zeros(256, np.bool_)
            for guard in guards:
                for data, after in guard.groups:
                    if after.is_final:
                        found[list(data)] = True
            self._endings[guards] = found
        return found


def _beyond(local: LocalState, guards: Guards) -> Guards:
    """Give what the text behind a terminal that may be over here may not begin with."""
    is_open = local.is_greedy and local.guard.leads_on
    return guards | {local.guard} if is_open else guards


def _groups(spot: Spot) -> Iterable[tuple[Iterable[int], Spot]]:
    local, guards = spot
    if not guards:
        for data, after in local.groups:
            yield data, Spot(after, guards)
        return
    found: dict[Spot, list[int]] = {}
    for data, after in local.groups:
        for byte in data:
            left = step_guards(guards, byte)
            if left is not None:
                found.setdefault(Spot(after, left), []).append(byte)
    for spot, data_left in found.items():
        yield data_left, spot


def _is_last(spot: Spot) -> bool:
    return spot.local.is_last
