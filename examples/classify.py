"""Few-shot classification: one of 200 intents for each query, with its probability.

All labels go to the runtime in one request, and each beginning that they share is computed
once; some are the beginning of another. Run it: python examples/classify.py
"""

from __future__ import annotations

from pathlib import Path

from plait import State, function, select

INTENTS = (Path(__file__).parent / "data" / "intents.txt").read_text().splitlines()
SHOTS = """What is the query about?

Query: My card was taken from my bag.
Intent: card stolen
Query: I cannot remember my pin.
Intent: pin forgotten
Query: The money that I sent has not left my account.
Intent: transfer pending
Query: How much do you charge for a transfer to Japan?
Intent: transfer abroad fee
Query: The machine gave me the wrong amount.
Intent: cash wrong amount
Query: I paid for my shoes twice.
Intent: payment twice
Query: I moved to another street.
Intent: account change address
Query: What does a loan cost?
Intent: loan rate
Query: The app does not open.
Intent: app not starting
Query: When are you open on Fridays?
Intent: branch opening hours

"""
QUERIES = (
    "Somebody has stolen my card!",
    "I have a new phone, how do I get the app?",
    "My salary is not here yet.",
    "Purple elephants sing at noon.",
)


@function
def classify(s: State, query: str) -> None:
    """Give the three likeliest intents, and none if even the first is unlikely."""
    s += f"{SHOTS}Query: {query}\nIntent: "
    s += select("intents", INTENTS, top=3, abstain_below=0.4)


def main() -> None:
    """Print each query with what it may be about."""
    results = classify.run_batch([{"query": query} for query in QUERIES])
    for query, result in zip(QUERIES, results, strict=True):
        shares = result.meta("intents").probabilities
        found = [f"{intent} ({shares[intent]:.0%})" for intent in result["intents"]]
        print(f"{query:44} {', '.join(found) or 'unclear'}")


if __name__ == "__main__":
    main()
