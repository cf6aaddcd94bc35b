"""What jump-forward saves: the same JSON extraction with it on and off, alternating in one run.

The default model reads the letters of examples/json_extract.py, all in flight together, and
writes compact JSON by a schema, greedily; both ways write the same, but for near ties that
rounding decides. The first round warms up and is not counted, so the prompts come from the
radix cache and what is compared is writing. Goals of `--check`: at least 24 % of the tokens
forced, and at least 1.25 times the speed of drawing each token.

Run it: python -m benchmarks.jump_forward [--rounds 5] [--check]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from dataclasses import dataclass

from benchmarks.default_model import open_default_backend
from examples.json_extract import RULES, TICKETS
from plait import State, assistant, function, gen, system, user
from plait.interpreter.backends.local import LocalBackend
from plait.runtime.config import EngineConfig

GOAL_SHARE = 0.24
GOAL_RATIO = 1.25
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 40},
        "order": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{4}$"},
        "amount": {"type": "number"},
        "topic": {"enum": ["delivery", "damage", "refund", "question"]},
    },
    "required": ["name", "order", "amount", "topic"],
    "additionalProperties": False,
}
SHOTS = {
    "The vase (AB-1200, 15.00) was cracked when I opened the box. Eva Stone": (
        '{"name":"Eva Stone","order":"AB-1200","amount":15.00,"topic":"damage"}'
    ),
    "Hugo Brandt here. I sent GR-7731 back, and the 64.20 was never returned to me.": (
        '{"name":"Hugo Brandt","order":"GR-7731","amount":64.20,"topic":"refund"}'
    ),
}


@function
def extract(s: State, text: str) -> None:
    """Copy the facts of the letter `text` as one JSON object."""
    s += system(RULES)
    for letter, answer in SHOTS.items():
        s += user(letter) + assistant(answer)
    s += user(text)
    s += assistant(gen("record", schema=SCHEMA, temperature=0, max_tokens=100))


@dataclass(frozen=True, slots=True)
class Round:
    """One configuration's figures: `texts` is what it wrote."""

    seconds: float
    num_steps: int
    num_tokens: int
    num_forced: int
    texts: tuple[str, ...]


def open_backend(*, jump_forward: bool) -> LocalBackend:
    """Load the default model, with jump-forward on or off, and without drafts."""
    config = EngineConfig(
        kv_cache_tokens=8192, max_context=2048, jump_forward=jump_forward, max_draft_tokens=0
    )
    return open_default_backend(config)


def measure(backend: LocalBackend, rows: list[dict[str, object]]) -> Round:
    """Run the rows once, all in flight together."""
    before = backend.stats()
    start = time.perf_counter()
    results = extract.run_batch(rows, backend=backend, seed=1)
    seconds = time.perf_counter() - start
    after = backend.stats()
    return Round(
        seconds,
        after.num_steps - before.num_steps,
        sum(result.usage.output_tokens for result in results),
        sum(result.usage.forced_tokens for result in results),
        tuple(result.text() for result in results),
    )


def compare(rows: list[dict[str, object]], num_rounds: int) -> tuple[float, float]:
    """Print a line a round; give the share of forced tokens and the ratio of the times."""
    on, off = open_backend(jump_forward=True), open_backend(jump_forward=False)
    ratios: list[float] = []
    shares: list[float] = []
    for number in range(num_rounds + 1):
        jumping, plain = measure(on, rows), measure(off, rows)
        if number == 0:  # it warms up
            continue
        num_alike = sum(map(str.__eq__, jumping.texts, plain.texts))
        ratios.append(plain.seconds / jumping.seconds)
        shares.append(jumping.num_forced / jumping.num_tokens)
        print(
            f"round {number}: {jumping.num_tokens} tokens, {jumping.num_forced} forced "
            f"({shares[-1]:.1%}); on {jumping.seconds:5.2f} s in {jumping.num_steps} passes, "
            f"off {plain.seconds:5.2f} s in {plain.num_steps}, {ratios[-1]:.2f}x; "
            f"{num_alike} of {len(rows)} alike"
        )
    on.close()
    off.close()
    return statistics.median(shares), statistics.median(ratios)


def main() -> int:
    """Print the rounds, then one line; with --check, 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--check", action="store_true", help="exit 1 if a goal is missed")
    args = parser.parse_args()
    tickets = [json.loads(line) for line in TICKETS.read_text().splitlines()]
    rows: list[dict[str, object]] = [{"text": ticket["text"]} for ticket in tickets]
    share, ratio = compare(rows, args.rounds)
    print(
        f"jump forward: {share:.1%} of the tokens forced (goal {GOAL_SHARE:.0%}), "
        f"{ratio:.2f}x the speed without (goal {GOAL_RATIO:.2f}x), {args.rounds} rounds"
    )
    return int(args.check and (share < GOAL_SHARE or ratio < GOAL_RATIO))


if __name__ == "__main__":
    sys.exit(main())
