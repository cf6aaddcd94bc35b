"""What the next forward pass computes: admission, budget, order and preemption."""

from __future__ import annotations

from dataclasses import replace

from .cache.blocks import BlockPool
from .cache.match import Inserted, Match
from .cache.node import Node
from .cache.radix import RadixCache
from .config import EngineConfig
from .leases import Leases
from .order import WaitingQueue
from .plan import Chunk, Fit, Plan
from .sequence import Int32, Sequence

LOOK_AHEAD = 32  # waiting sequences that may be passed over in one step because they do not fit
MAX_SKIPS = 64  # admissions that may overtake a waiting sequence before all wait for it


class Scheduler:
    """Owns the queue, the running list, and every block of a sequence.

    There are no phases: a sequence computes what it lacks, decodes first, then chunks of more
    tokens in order of admission, then new sequences as the queue has them. A sequence that
    does not fit may be overtaken MAX_SKIPS times.
    """

    def __init__(self, config: EngineConfig, pool: BlockPool, cache: RadixCache) -> None:
        self.waiting = WaitingQueue()
        self.running: list[Sequence] = []
        self._pool = pool
        self._cache = cache
        self._leases = Leases(cache)
        self._block_size = cache.block_size
        self._is_caching = config.is_prefix_caching
        self._budget = config.token_budget
        # A step must have a token for every decode, or prefills would starve.
        self._max_running = min(config.max_running, config.token_budget)

    def schedule(self) -> Plan:
        """Choose the chunks of one step, and give them their blocks."""
        plan = Plan(self._budget)
        decodes: list[Sequence] = []
        chunks: list[Sequence] = []
        for sequence in self.running:
            (decodes if sequence.is_decoding else chunks).append(sequence)
        for sequence in decodes + chunks:
            self._continue(sequence, plan)
        if not plan.preempted:
            self._admit(plan)
        if not plan.chunks and self.running:
            plan.stuck = self.running[0]
        return plan

    def commit(self, plan: Plan) -> None:
        """Count what was computed, and let later steps share it."""
        for chunk in plan.chunks:
            chunk.sequence.num_computed_tokens = chunk.end
        self._unpin(plan)
        for sequence, blocks in plan.duplicates:
            self._pool.share(sequence.block_table, blocks)
        self._cache.commit()

    def lend(self, chunk: Chunk, num_tokens: int, plan: Plan) -> int:
        """Give blocks for guesses behind a chunk, `num_tokens` at most; say for how many.

        They come out of what the plan leaves over and go back by `take_back`: nobody waits, or
        is preempted, for a guess.
        """
        table = chunk.sequence.block_table
        num_blocks = len(table) + self._pool.num_free + self._cache.num_evictable
        num_tokens = min(num_tokens, plan.budget, num_blocks * self._block_size - chunk.end)
        missing = self._num_missing(chunk.sequence, chunk.end + num_tokens)
        self._cache.evict(missing - self._pool.num_free)
        table.extend(self._pool.allocate(missing))
        plan.budget -= num_tokens
        return num_tokens

    def take_back(self, plan: Plan) -> None:
        """Take the blocks back that only wrong guesses are in."""
        for chunk in plan.chunks:
            table = chunk.sequence.block_table
            if chunk.draft:
                num_used = self._num_blocks(chunk.sequence.num_computed_tokens)
                self._pool.decref(table.view[num_used:])
                table.cut(num_used)

    def fail(self, plan: Plan) -> None:
        """Forget a step whose forward pass failed. Its sequences must be released."""
        self._unpin(plan)
        self._cache.drop_planned()

    def release(self, sequence: Sequence, *, is_kept: bool = True) -> None:
        """Take a sequence out and give its blocks back; `is_kept` leaves them to the cache."""
        if sequence in self.running:
            self.running.remove(sequence)
        elif sequence in self.waiting:
            self.waiting.remove(sequence)
        self._free(sequence, is_kept)

    def _continue(self, sequence: Sequence, plan: Plan) -> None:
        """Schedule a running sequence, if need be at the cost of newer ones."""
        if plan.budget == 0 or sequence in plan.preempted:
            return
        end = sequence.num_computed_tokens + 1
        if sequence.is_decoding and end <= len(sequence.block_table) * self._block_size:
            self._put(Chunk(sequence, end - 1, end), plan, is_last_of_prefill=False)
            return
        fit = self._fit(sequence, plan.budget)
        while fit is None:
            victim = plan.victim(self.running, sequence)
            if victim is None:
                return  # it keeps its blocks and waits for those that do go on
            self._preempt(victim, plan)
            fit = self._fit(sequence, plan.budget)
        self._take(sequence, fit, plan)

    def _preempt(self, victim: Sequence, plan: Plan) -> None:
        """Send a running sequence back to the front of the queue; it is computed again later."""
        self.running.remove(victim)
        self._free(victim, is_kept=True)
        victim.num_preemptions += 1
        self.waiting.appendleft(victim)
        plan.preempted.append(victim)

    def _admit(self, plan: Plan) -> None:
        skipped: list[Sequence] = []
        while self.waiting and plan.budget and len(self.running) < self._max_running:
            sequence = self.waiting.popleft()
            fit = self._fit(sequence, plan.budget, is_new=True)
            if fit is None:
                skipped.append(sequence)
                if sequence.num_skips >= MAX_SKIPS or len(skipped) == LOOK_AHEAD:
                    break
                continue
            for other in skipped:
                other.num_skips += 1
            self.running.append(sequence)
            self._take(sequence, fit, plan)
            self._leases.consume(sequence)
        self.waiting.extendleft(reversed(skipped))

    def _fit(self, sequence: Sequence, budget: int, *, is_new: bool = False) -> Fit | None:
        """Find the longest chunk that the budget allows, None if there are no blocks for it.

        A new sequence must fit whole, beside what the running ones still need.
        """
        match = self._match(sequence)
        spare = self._pool.num_free + self._cache.num_evictable
        if is_new:
            spare -= sum(self._num_missing(s, s.num_needed) + 1 for s in self.running)
        tries = [match]
        if match is not None and match.partial is not None:
            tries.append(replace(match, partial=None))  # a copy pins its source
        for attempt in tries:
            fit = self._sized(sequence, attempt, budget)
            end = sequence.num_needed if is_new else fit.end
            if self._num_taken(sequence, attempt, end) <= spare:
                return fit
        return None

    def _match(self, sequence: Sequence) -> Match | None:
        """Look in the cache for more than the sequence has computed."""
        limit = sequence.num_reusable
        if not self._is_caching or sequence.num_computed_tokens >= limit:
            return None
        match = self._cache.match_prefix(sequence.namespace, sequence.tokens.view[:limit])
        return match if match.num_usable > sequence.num_computed_tokens else None

    def _sized(self, sequence: Sequence, match: Match | None, budget: int) -> Fit:
        num_matched = 0 if match is None else match.num_usable
        start = max(sequence.num_computed_tokens, num_matched)
        return Fit(start, min(start + budget, sequence.num_needed), match)

    def _num_taken(self, sequence: Sequence, match: Match | None, end: int) -> int:
        """Count the free or evictable blocks that computing up to `end` would take."""
        if match is None:
            return self._num_missing(sequence, end)
        node = match.node if match.partial is None else match.partial.node
        num_had = max(len(sequence.block_table), len(match.blocks))
        missing = max(0, self._num_blocks(end) - num_had)
        return missing + node.num_newly_locked()

    def _take(self, sequence: Sequence, fit: Fit, plan: Plan) -> None:
        """Give a sequence the blocks of its chunk, and put the chunk in the plan."""
        if fit.match is not None:
            self._adopt(sequence, fit.match, plan)
        missing = self._num_missing(sequence, fit.end)
        self._cache.evict(missing - self._pool.num_free)
        sequence.block_table.extend(self._pool.allocate(missing))
        if fit.match is not None:
            self._copy(sequence, fit.match, plan)
            if sequence.num_preemptions == 0:
                sequence.note_cached(fit.start)
        is_last_of_prefill = fit.end == sequence.num_needed and not sequence.is_past_prompt
        sequence.num_computed_tokens = fit.start
        chunk = Chunk(sequence, fit.start, fit.end)
        self._put(chunk, plan, is_last_of_prefill=is_last_of_prefill)

    def _put(self, chunk: Chunk, plan: Plan, *, is_last_of_prefill: bool) -> None:
        """Put a chunk for which there are blocks in the plan."""
        plan.chunks.append(chunk)
        plan.budget -= chunk.end - chunk.start
        if self._is_caching:
            end = min(chunk.end, chunk.sequence.num_settled)
            self._publish(chunk.sequence, end, is_last_of_prefill, plan)

    def _adopt(self, sequence: Sequence, match: Match, plan: Plan) -> None:
        """Lock a match, and let the sequence use its whole blocks."""
        if match.partial is not None:
            self._cache.lock(match.partial.node)
            plan.pins.append(match.partial.node)
        self._hold(sequence, match.node)
        self._pool.share(sequence.block_table, match.blocks)

    def _copy(self, sequence: Sequence, match: Match, plan: Plan) -> None:
        """Plan the copy of a block that the sequence shares only in part."""
        if match.partial is None:
            return
        offsets = range(match.partial.num_tokens)
        block = int(sequence.block_table.view[len(match.blocks)])
        for offset in offsets[max(0, sequence.num_computed_tokens - match.num_tokens) :]:
            source = match.partial.block * self._block_size + offset
            plan.copy(source, block * self._block_size + offset)

    def _publish(self, sequence: Sequence, end: int, is_last_of_prefill: bool, plan: Plan) -> None:
        """Put what this step will compute in the cache, for followers in the same step."""
        if not is_last_of_prefill:
            end -= end % self._block_size
        if end > sequence.num_published_tokens:
            inserted = self._insert(sequence, end, is_written=False)
            self._hold(sequence, inserted.node)
            if inserted.node.parent is not None:  # a long decode makes no long path of nodes
                self._cache.compact(inserted.node.parent)
            sequence.num_published_tokens = end
            if (inserted.blocks != sequence.block_table.view[: len(inserted.blocks)]).any():
                plan.duplicates.append((sequence, inserted.blocks))

    def _insert(self, sequence: Sequence, end: int, *, is_written: bool) -> Inserted:
        blocks: Int32 = sequence.block_table.view[: self._num_blocks(end)]
        tokens = sequence.tokens.view[:end]
        return self._cache.insert(sequence.namespace, tokens, blocks, is_written=is_written)

    def _hold(self, sequence: Sequence, node: Node) -> None:
        """Move the sequence's lock to `node`."""
        if sequence.node is None:
            self._cache.lock(node)
        elif sequence.node is not node:
            self._cache.move_lock(sequence.node, node)
        sequence.node = node

    def _free(self, sequence: Sequence, is_kept: bool) -> None:
        """Drop a sequence's lock and its references; what it had computed counts no more."""
        is_kept = is_kept and self._is_caching and sequence.num_computed_tokens > 0
        node = None
        if is_kept:
            node = self._insert(sequence, sequence.num_computed_tokens, is_written=True).node
            self._leases.grant(sequence, node)
        if sequence.node is not None:
            self._cache.unlock(sequence.node)
        if node is not None:
            self._cache.compact(node)
        self._pool.decref(sequence.block_table.view)
        sequence.block_table.clear()
        sequence.node = None
        sequence.num_computed_tokens, sequence.num_published_tokens = 0, 0

    def _unpin(self, plan: Plan) -> None:
        for node in plan.pins:
            self._cache.unlock(node)
        plan.pins.clear()

    def _num_blocks(self, num_tokens: int) -> int:
        return -(-num_tokens // self._block_size)

    def _num_missing(self, sequence: Sequence, end: int) -> int:
        return max(0, self._num_blocks(end) - len(sequence.block_table))
