"""What is said of each variable's cost is true: by hand on the byte model, in every branch."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import fields

import pytest

import plait
from plait import Backend, NodeMeta, NodeUsage, State, function, gen, select


@pytest.fixture
def backend() -> Iterator[Backend]:
    opened = plait.scripted(lambda prompt: "yes." if prompt.endswith("?") else "no")
    yield opened
    opened.close()


def counts(meta: object) -> tuple[int, int, int, int]:
    assert isinstance(meta, NodeMeta)
    usage = meta.usage
    return usage.prompt_tokens, usage.cached_tokens, usage.output_tokens, usage.forced_tokens


def test_a_gen_counts_its_whole_prompt_what_was_cached_and_its_output(backend: Backend) -> None:
    @function
    def program(s: State) -> None:
        s += "12345678?"
        s += gen("a", temperature=0, stop=".", heal=False)
        s += "|"
        s += gen("b", temperature=0, max_tokens=1, heal=False)

    result = program.run(backend=backend)
    a, b = result.meta("a"), result.meta("b")
    assert counts(a) == (9, 0, 4, 0)  # "yes.": the stop string was written, too
    assert (a.finish_reason, a.stop_reason) == ("stop", ".")
    # "12345678?yes|": the tokens before "." are in the cache, but for the last one that b needs
    assert counts(b) == (13, 12, 1, 0)
    assert (b.finish_reason, b.stop_reason) == ("length", None)


def test_tokens_that_a_grammar_forces_are_counted_among_the_output(backend: Backend) -> None:
    @function
    def program(s: State) -> None:
        s += "?" + gen("x", regex="(aaaa|bbbb)!", temperature=0, heal=False)

    meta = program.run(backend=backend).meta("x")
    assert counts(meta)[2:] == (5, 4)
    assert meta.finish_reason == "stop"


def test_a_select_counts_each_choice_with_its_prompt_and_computes_beginnings_once(
    backend: Backend,
) -> None:
    @function
    def program(s: State) -> None:
        s += "12345678?"
        s += select("x", ["yes", "yet", "no"])
        s += select("y", ["a"])

    result = program.run(backend=backend)
    # Computed: the prompt, then "y", "ye" and "n".
    assert counts(result.meta("x")) == (12 + 12 + 11, 35 - 12, 0, 0)
    assert result.meta("x").finish_reason == "stop"
    # After "12345678?yes" the last token has to be computed, and "s" was not before.
    assert counts(result.meta("y")) == (13, 12, 0, 0)


def test_each_branch_has_a_usage_of_its_own_and_the_run_their_sum(backend: Backend) -> None:
    metas: list[object] = []

    @function
    def program(s: State) -> None:
        s += "a prompt of more than sixteen tokens"
        forks = s.fork(3)
        forks += lambda i: "?" * i + gen("x", temperature=0, max_tokens=2 + i, heal=False)
        forks.join()
        metas.extend(branch.meta("x") for branch in forks)
        assert s.log_prob("x")[0].total < 0
        s += gen("y", temperature=0, max_tokens=1, heal=False)

    result = program.run(backend=backend)
    length = len("a prompt of more than sixteen tokens")
    assert [counts(meta)[0] for meta in metas] == [length, length + 1, length + 2]
    assert [counts(meta)[2] for meta in metas] == [2, 3, 4]
    own = [*metas, result.meta("y")]
    total = result.usage
    scored = total.prompt_tokens - sum(counts(meta)[0] for meta in own)
    assert scored == 3 * length + (0 + 2) + (1 + 3) + (2 + 4)  # each prompt and its output
    assert total.output_tokens == sum(counts(meta)[2] for meta in own)


def test_seconds_are_those_of_the_run(backend: Backend) -> None:
    @function
    def program(s: State) -> None:
        s += "12345678?" + gen("x", max_tokens=30, ignore_eos=True)
        s += select("y", ["a", "b"])

    start = time.perf_counter()
    result = program.run(backend=backend)
    wall = time.perf_counter() - start
    for name in ("x", "y"):
        usage = result.meta(name).usage
        times = (usage.queue_s, usage.prefill_s, usage.decode_s)
        assert all(each >= 0 for each in times)
        assert 0 < sum(times) <= wall
    assert result.meta("x").usage.decode_s > 0
    assert result.meta("y").usage.decode_s == 0


def test_the_sum_has_every_number(backend: Backend) -> None:
    @function
    def program(s: State) -> None:
        s += "?" + gen("x", max_tokens=3) + gen("y", max_tokens=3)

    result = program.run(backend=backend)
    for field in fields(NodeUsage):
        both = [getattr(result.meta(name).usage, field.name) for name in ("x", "y")]
        assert getattr(result.usage, field.name) == pytest.approx(sum(both))
