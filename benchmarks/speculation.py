"""What drafts from the text itself save: the same requests with and without, in turn.

The default model, and programs as users run them. `quote` copies a sentence of a document of a few
hundred tokens, `record` writes facts of it as JSON by a schema, `chat` answers short questions,
all greedily; `free` answers them at temperature 0.8. One request runs at a time, but in the last
two rows. What is compared is the time after the first token, of 16 together the whole time: each
request's median over the rounds. The first round warms up and is not counted. Both ways write the
same, token for token.

Goals of `--check`: 1.5 times the tokens a second on quotes and on records, never under 0.97 times
elsewhere, and no output that differs.

Run it: python -m benchmarks.speculation [--rounds 5] [--texts] [--check]
With --pass-costs it measures instead what a pass over so many rows costs, for `PASS_COSTS`.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.default_model import open_default_backend
from benchmarks.documents import DOCUMENTS, QUESTIONS
from benchmarks.pass_costs import print_pass_costs
from plait import Result, State, assistant, function, gen, system, user
from plait.interpreter.backends.local import LocalBackend
from plait.interpreter.program import Function
from plait.runtime.config import EngineConfig

GOAL_EXTRACTION = 1.5
GOAL_ELSEWHERE = 0.97
TOGETHER = 16
MIN_RUNS = 4  # of a row in a round
RECORD = {
    "type": "object",
    "properties": {
        "person": {"type": "string", "maxLength": 40},
        "date": {"type": "string", "maxLength": 40},
        "first_sentence": {"type": "string", "maxLength": 240},
        "last_sentence": {"type": "string", "maxLength": 240},
    },
    "required": ["person", "date", "first_sentence", "last_sentence"],
    "additionalProperties": False,
}
SHOT = (
    "The school choir of Marlow sang in the old church on 12 May. More than two hundred people "
    "came, and 940 pounds were given for the new roof. The choir was led by Anna Weiss, who "
    "retires this summer. Next year it will sing in Bristol.",
    '{"person": "Anna Weiss", "date": "12 May", "first_sentence": "The school choir of Marlow sang '
    'in the old church on 12 May.", "last_sentence": "Next year it will sing in Bristol."}',
)

Item = Mapping[str, object]


@function
def quote(s: State, text: str, wanted: str) -> None:
    """Copy one sentence of a document."""
    s += system("You copy sentences from documents, word for word.")
    s += user(f"{text}\n\nCopy the sentence that {wanted}.")
    s += assistant(gen("answer", temperature=0, max_tokens=60))


@function
def record(s: State, text: str) -> None:
    """Copy facts of a document as one JSON object."""
    s += system("You copy facts from documents as JSON.")
    s += user(SHOT[0]) + assistant(SHOT[1]) + user(text)
    s += assistant(gen("answer", schema=RECORD, whitespace=1, temperature=0, max_tokens=250))


@function
def chat(s: State, question: str, temperature: float) -> None:
    """Answer a short question."""
    s += user(question)
    s += assistant(gen("answer", temperature=temperature, max_tokens=80))


@dataclass(frozen=True, slots=True)
class Run:
    """One group of requests, run once."""

    seconds: float
    num_tokens: int
    num_drafted: int
    num_accepted: int
    num_steps: int
    texts: tuple[str, ...]


@dataclass
class Row:
    """One kind of work: groups of requests, and their runs, with drafts and without."""

    name: str
    goal: float
    program: Function
    groups: list[list[Item]]
    runs: list[tuple[list[Run], list[Run]]] = field(default_factory=list)  # a pair a group

    def seconds(self, way: int) -> float:
        """Give the seconds of one round, with drafts (0) or without (1)."""
        return sum(statistics.median(run.seconds for run in pair[way]) for pair in self.runs)

    def total(self, name: str, way: int = 0) -> int:
        """Add up a count over all groups, for one round."""
        return sum(getattr(pair[way][-1], name) for pair in self.runs)

    @property
    def num_repeats(self) -> int:
        """Runs of each group in a round: a single one is too few to compare."""
        return max(1, MIN_RUNS // len(self.groups))

    @property
    def ratio(self) -> float:
        """Give how much faster drafts are."""
        return self.seconds(1) / self.seconds(0)

    @property
    def num_different(self) -> int:
        """Count the runs that wrote something else with drafts."""
        return sum(
            on.texts != off.texts for pair in self.runs for on, off in zip(*pair, strict=True)
        )


def make_rows() -> list[Row]:
    """Give the kinds of work."""
    quotes: list[Item] = [{"text": d.text, "wanted": q} for d in DOCUMENTS for q in d.quotes]
    records: list[Item] = [{"text": d.text} for d in DOCUMENTS]
    greedy: list[Item] = [{"question": q, "temperature": 0.0} for q in QUESTIONS]
    free: list[Item] = [{"question": q, "temperature": 0.8} for q in QUESTIONS]
    many: list[Item] = [
        {"question": f"{q} ({i})", "temperature": 0.8} for i in range(3) for q in QUESTIONS
    ]
    return [
        Row("quote", GOAL_EXTRACTION, quote, [[item] for item in quotes]),
        Row("record", GOAL_EXTRACTION, record, [[item] for item in records]),
        Row("chat", GOAL_ELSEWHERE, chat, [[item] for item in greedy]),
        Row("free", GOAL_ELSEWHERE, chat, [[item] for item in free]),
        Row("quote, 16 together", GOAL_ELSEWHERE, quote, [(quotes * 2)[:TOGETHER]]),
        Row("free, 16 together", GOAL_ELSEWHERE, chat, [many[:TOGETHER]]),
    ]


def open_backend(max_draft_tokens: int | None) -> LocalBackend:
    """Load the default model, with drafts as they are by default (None) or without (0)."""
    config = EngineConfig(
        kv_cache_tokens=16_384, max_context=2048, max_draft_tokens=max_draft_tokens
    )
    return open_default_backend(config)


def run(backend: LocalBackend, program: Function, group: Sequence[Item]) -> Run:
    """Run a group of requests, all in flight together."""
    before = backend.stats()
    start = time.perf_counter()
    results: list[Result] = program.run_batch(
        [dict(item) for item in group], backend=backend, seed=1
    )
    seconds = time.perf_counter() - start
    after = backend.stats()
    return Run(
        seconds if len(group) > 1 else results[0].usage.decode_s,
        after.num_output_tokens - before.num_output_tokens,
        after.num_drafted_tokens - before.num_drafted_tokens,
        after.num_accepted_tokens - before.num_accepted_tokens,
        after.num_steps - before.num_steps,
        tuple(result.text() for result in results),
    )


def measure(row: Row, backends: Sequence[LocalBackend], num_rounds: int) -> None:
    """Run all rounds of a row."""
    for number, group in enumerate(row.groups):
        found: tuple[list[Run], list[Run]] = ([], [])
        for turn in range(number, number + 1 + num_rounds * row.num_repeats):
            for way in ((0, 1), (1, 0))[turn % 2]:
                found[way].append(run(backends[way], row.program, group))
        row.runs.append((found[0][1:], found[1][1:]))


def show(row: Row) -> None:
    """Print the figures of a row."""
    drafted, accepted = row.total("num_drafted"), row.total("num_accepted")
    num_tokens = row.total("num_tokens")
    off, on = num_tokens / row.seconds(1), num_tokens / row.seconds(0)
    print(
        f"{row.name:19}{num_tokens:7}{row.total('num_steps', 1):8}{row.total('num_steps'):7}"
        f"{drafted:9}{accepted / max(1, drafted):9.0%}{off:11.0f}{on:6.0f}{row.ratio:7.2f}x",
        flush=True,
    )


def main() -> int:
    """Print a line a row, figures without drafts and with them, and the summary.

    With --check, 1 if a goal is missed.
    """
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--texts", action="store_true", help="print what is written")
    parser.add_argument("--check", action="store_true", help="exit 1 if a goal is missed")
    parser.add_argument("--pass-costs", action="store_true", help="measure what rows cost instead")
    args = parser.parse_args()
    if args.pass_costs:
        print_pass_costs(args.rounds)
        return 0
    backends = open_backend(None), open_backend(0)
    rows = make_rows()
    print(
        f"{'':19}{'tokens':>7}{'passes':>8}{'with':>7}{'drafted':>9}{'accepted':>9}"
        f"{'tokens/s':>11}{'with':>6}{'ratio':>8}"
    )
    for row in rows:
        measure(row, backends, args.rounds)
        show(row)
        if args.texts:
            print(*(text for pair in row.runs for text in pair[0][-1].texts), sep="\n")
    for backend in backends:
        backend.close()
    extraction = min(row.ratio for row in rows if row.goal == GOAL_EXTRACTION)
    elsewhere = min(row.ratio for row in rows if row.goal == GOAL_ELSEWHERE)
    num_different = sum(row.num_different for row in rows)
    print(
        f"speculation: {extraction:.2f}x the tokens/s on extraction (goal {GOAL_EXTRACTION}x), "
        f"{elsewhere:.2f}x elsewhere at least (goal {GOAL_ELSEWHERE}x), {num_different} outputs "
        f"differ, {args.rounds} rounds"
    )
    is_missed = any(row.ratio < row.goal for row in rows) or num_different > 0
    return int(args.check and is_missed)


if __name__ == "__main__":
    sys.exit(main())
