"""Extract fields from documents as JSON: keys are literal, values are constrained.

Every document shares the instructions and the worked examples; they are computed once.

Run it: make demo, or python examples/json_extract.py
"""

from __future__ import annotations

import json
import time
from pathlib import Path

from plait import Result, State, assistant, function, gen, select, system, user

TICKETS = Path(__file__).parent / "data" / "tickets.jsonl"
NAME = "[A-Z][a-z]{1,15} [A-Z][a-z]{1,15}"
TOPICS = ["delivery", "damage", "refund", "question"]
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


@function
def extract(s: State, text: str) -> None:
    """Fill name, order, amount and topic from the letter `text`."""
    s += system(RULES)
    for letter, answer in SHOTS.items():
        s += user(letter) + assistant(answer)
    s += user(text)
    with s.assistant():
        s += '{"name": "' + gen("name", regex=NAME, stop='"', temperature=0)
        s += '", "order": "' + gen("order", regex="[A-Z]{2}-[0-9]{4}", temperature=0)
        s += '", "amount": ' + gen("amount", regex=r"[0-9]{1,4}\.[0-9]{2}", temperature=0)
        s += ', "topic": "' + select("topic", TOPICS) + '"}'


def record(result: Result) -> dict[str, object]:
    """Parse the assistant's turn: it is JSON by construction."""
    fields: dict[str, object] = json.loads(result.messages()[-1]["content"])
    return fields


def main() -> None:
    """Print a table of the extracted fields, then one line of what it cost."""
    tickets = [json.loads(line) for line in TICKETS.read_text().splitlines()]
    start = time.perf_counter()
    results = extract.run_batch([{"text": ticket["text"]} for ticket in tickets])
    seconds = time.perf_counter() - start

    print(f"{'id':7}{'name':16}{'order':9}{'amount':>8}  topic")
    for ticket, result in zip(tickets, results, strict=True):
        row = record(result)
        print(
            f"{ticket['id']:7}{row['name']:16}{row['order']:9}{row['amount']:>8.2f}  {row['topic']}"
        )
    prompt = sum(result.usage.prompt_tokens for result in results)
    cached = sum(result.usage.cached_tokens for result in results)
    output = sum(result.usage.output_tokens for result in results)
    print(
        f"\n{len(results)} documents in {seconds:.1f} s with the start of the runtime: "
        f"{prompt} prompt tokens, {cached} cached ({cached / prompt:.0%}), "
        f"{output} output tokens, {(prompt - cached + output) / seconds:.0f} tokens/s"
    )


if __name__ == "__main__":
    main()
