"""Extract fields from documents as JSON: a dataclass says what the model may write.

Every document shares the instructions and the worked examples; they are computed once.

Run it: make demo, or python examples/json_extract.py
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from plait import State, assistant, function, gen, system, user

TICKETS = Path(__file__).parent / "data" / "tickets.jsonl"
RULES = "You read letters of customers and copy facts from them as JSON."
SHOTS = {
    "The vase (AB-1200, 15.00) was cracked when I opened the box. Eva Stone": (
        '{"name": "Eva Stone", "order": "AB-1200", "amount": 15.00, "topic": "damage"}'
    ),
    "Hugo Brandt here. I sent GR-7731 back, and the 64.20 was never returned to me.": (
        '{"name": "Hugo Brandt", "order": "GR-7731", "amount": 64.20, "topic": "refund"}'
    ),
    "Which oil does the fan of my order TU-4410 (22.99) need? Nina Rossi": (
        '{"name": "Nina Rossi", "order": "TU-4410", "amount": 22.99, "topic": "question"}'
    ),
}


@dataclass
class Ticket:
    """What is wanted of a letter: JSON Schema's own keywords narrow the types."""

    name: Annotated[str, {"pattern": "^[A-Z][a-z]{1,15} [A-Z][a-z]{1,15}$"}]
    order: Annotated[str, {"pattern": "^[A-Z]{2}-[0-9]{4}$"}]
    amount: Annotated[float, {"minimum": 0, "maximum": 9999, "multipleOf": 0.01}]
    topic: Literal["delivery", "damage", "refund", "question"]


@function
def extract(s: State, text: str) -> None:
    """Read the letter `text` into a Ticket."""
    s += system(RULES)
    for letter, answer in SHOTS.items():
        s += user(letter) + assistant(answer)
    # Blanks as in the examples: a small model copies far better in the layout that it knows.
    s += user(text) + assistant(gen("ticket", Ticket, whitespace=1, temperature=0))


def main() -> None:
    """Print a table of the extracted fields, what it cost, and what is guaranteed."""
    letters = [json.loads(line) for line in TICKETS.read_text().splitlines()]
    start = time.perf_counter()
    results = extract.run_batch([{"text": letter["text"]} for letter in letters])
    seconds = time.perf_counter() - start

    print(f"{'id':7}{'name':16}{'order':9}{'amount':>8}  topic")
    for letter, result in zip(letters, results, strict=True):
        ticket: Ticket = result["ticket"]
        print(
            f"{letter['id']:7}{ticket.name:16}{ticket.order:9}{ticket.amount:>8.2f}  {ticket.topic}"
        )
    prompt = sum(result.usage.prompt_tokens for result in results)
    cached = sum(result.usage.cached_tokens for result in results)
    output = sum(result.usage.output_tokens for result in results)
    print(
        f"\n{len(results)} documents in {seconds:.1f} s with the start of the runtime: "
        f"{prompt} prompt tokens, {cached} cached ({cached / prompt:.0%}), "
        f"{output} output tokens, {(prompt - cached + output) / seconds:.0f} tokens/s"
    )
    print("The schema guarantees the form; the values are what a small model reads in the letters.")


if __name__ == "__main__":
    main()
