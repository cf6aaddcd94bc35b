"""The order of waiting sequences, and what the cache keeps for requests to come."""

from __future__ import annotations

from collections.abc import Sequence as Items

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.runtime.cache.blocks import BlockPool
from plait.runtime.cache.radix import RadixCache
from plait.runtime.leases import MAX_LEASES, Leases
from plait.runtime.order import FAIR_TURN, WaitingQueue
from plait.runtime.sequence import Hint, Int32, Ints, Sequence

BLOCK = 4


def sequence(name: str, hint: Hint | None = None, tokens: Items[int] = (1,)) -> Sequence:
    ids = np.array(tokens, np.int32)
    return Sequence(name, "", Ints(ids), len(ids), hint=hint)


def queue_of(*sequences: Sequence) -> WaitingQueue:
    queue = WaitingQueue()
    for each in sequences:
        queue.append(each)
    return queue


def drained(queue: WaitingQueue) -> list[str]:
    return [queue.popleft().request_id for _ in range(len(queue))]


def test_without_hints_the_order_is_that_of_arrival() -> None:
    names = [f"r{i}" for i in range(3 * FAIR_TURN)]
    assert drained(queue_of(*map(sequence, names))) == names


def test_what_is_begun_goes_first_and_the_shortest_way_of_it() -> None:
    queue = queue_of(
        sequence("new and long", Hint(remaining_tokens=90)),
        sequence("new and short", Hint(remaining_tokens=10)),
        sequence("begun and long", Hint("x", remaining_tokens=50)),
        sequence("begun and short", Hint("x", remaining_tokens=20)),
        sequence("plain"),
    )
    assert drained(queue) == [
        *("plain", "begun and short", "begun and long", "new and short", "new and long")
    ]


def test_who_was_preempted_or_passed_over_keeps_the_first_place() -> None:
    preempted, passed = sequence("preempted", Hint()), sequence("passed", Hint())
    preempted.num_preemptions = passed.num_skips = 1
    queue = queue_of(sequence("plain"), passed)
    queue.appendleft(preempted)
    queue.append(sequence("begun", Hint("x")))
    assert drained(queue) == ["preempted", "passed", "plain", "begun"]


def test_who_waits_longest_has_a_turn_of_its_own() -> None:
    queue = queue_of(sequence("first", Hint(remaining_tokens=10**6)))
    taken: list[str] = []
    for i in range(2 * FAIR_TURN):
        queue.append(sequence(f"begun {i}", Hint("x", remaining_tokens=1)))
        taken.append(queue.popleft().request_id)
    assert taken.index("first") == FAIR_TURN - 1


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.booleans(), st.none() | st.integers(0, 3)), max_size=80))
def test_nobody_is_lost_and_nobody_comes_twice(steps: list[tuple[bool, int | None]]) -> None:
    queue, added, taken = WaitingQueue(), list[str](), list[str]()
    for is_taken, way in steps:
        if is_taken and len(queue):
            taken.append(queue.popleft().request_id)
        else:
            name = f"r{len(added)}"
            hint = None if way is None else Hint("x" if way % 2 else None, 0, way)
            queue.append(sequence(name, hint))
            added.append(name)
        assert len(queue) == len(added) - len(taken)
    assert sorted([*taken, *drained(queue)]) == sorted(added)


class Bench:
    """A cache of 16 blocks, and leases in it."""

    def __init__(self) -> None:
        self.pool = BlockPool(16)
        self.cache = RadixCache(self.pool, BLOCK)
        self.leases = Leases(self.cache)

    def finish(self, name: str, start: int, num_consumers: int) -> None:
        """Leave two blocks of tokens of a finished request in the cache."""
        tokens: Int32 = np.arange(start, start + 2 * BLOCK, dtype=np.int32)
        blocks = self.pool.allocate(2)
        node = self.cache.insert("", tokens, blocks).node
        self.pool.decref(blocks)
        hint = Hint(num_consumers=num_consumers)
        self.leases.grant(sequence(name, hint, tokens.tolist()), node)

    def begin(self, source: str) -> None:
        """Begin a request that goes on from another one."""
        self.leases.consume(sequence("consumer", Hint(source)))

    def kept(self, *starts: int) -> list[int]:
        """Give which of the requests' tokens are still whole in the cache."""
        rows = {start: np.arange(start, start + 2 * BLOCK, dtype=np.int32) for start in starts}
        return [start for start, row in rows.items() if self.cache.peek("", row) == len(row)]


def test_what_has_a_lease_is_evicted_last() -> None:
    bench = Bench()
    bench.finish("old", 0, num_consumers=1)
    bench.finish("new", 100, num_consumers=0)
    bench.cache.evict(2)
    assert bench.kept(0, 100) == [0]
    bench.cache.evict(2)
    assert bench.kept(0, 100) == []
    bench.cache.check()


def test_a_lease_ends_with_its_last_consumer() -> None:
    bench = Bench()
    bench.finish("old", 0, num_consumers=2)
    bench.finish("new", 100, num_consumers=1)
    bench.begin("old")
    assert len(bench.leases) == 2
    bench.begin("old")
    assert len(bench.leases) == 1
    bench.cache.evict(2)
    assert bench.kept(0, 100) == [100]
    bench.cache.check()


def test_a_consumer_of_nothing_known_changes_nothing() -> None:
    bench = Bench()
    bench.finish("old", 0, num_consumers=1)
    bench.begin("another")
    bench.leases.consume(sequence("plain"))
    assert len(bench.leases) == 1


def test_leases_whose_consumers_never_come_end_at_last() -> None:
    bench = Bench()
    bench.finish("first", 0, num_consumers=1)
    node = bench.cache.match_prefix("", np.arange(2 * BLOCK, dtype=np.int32)).node
    for i in range(MAX_LEASES):
        bench.leases.grant(sequence(f"r{i}", Hint(num_consumers=1)), node)
    assert len(bench.leases) == MAX_LEASES
    bench.begin("first")
    assert len(bench.leases) == MAX_LEASES
    for i in range(MAX_LEASES):
        bench.begin(f"r{i}")
    assert (len(bench.leases), node.lease_count) == (0, 0)
    assert bench.cache.evict(2) == 2
    bench.cache.check()
