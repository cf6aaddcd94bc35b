"""Self-consistency: sample several ways to reason, and let the answers vote.

Run it: python examples/self_consistency.py
"""

from __future__ import annotations

from collections import Counter

from plait import State, function, gen

SHOT = """Q: There are 15 trees. After planting there are 21. How many were planted?
A: There were 15 and now there are 21, so 21 - 15 = 6 were planted. The answer is 6.

"""
QUESTION = "Leah had 32 sweets and her sister 42. They ate 35. How many are left?"
NUM_SAMPLES = 8


@function
def reason(s: State, question: str) -> None:
    """Reason NUM_SAMPLES times; `answer` is the list of what came out."""
    s += f"{SHOT}Q: {question}\nA:"
    samples = s.fork(NUM_SAMPLES)
    for sample in samples:
        sample += gen("why", max_tokens=48, stop=[" The answer is", "\n"], temperature=0.7)
        sample += " The answer is " + gen("answer", regex="[0-9]{1,4}", temperature=0)
    samples.join()


def main() -> None:
    """Print the table of votes; the seed makes it the same in every run."""
    result = reason.run(question=QUESTION, seed=7)
    for answer, votes in Counter(result["answer"]).most_common():
        print(f"{answer:>6}  {'#' * votes}")


if __name__ == "__main__":
    main()
