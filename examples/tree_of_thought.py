"""Tree of thought: several plans, several ways to carry out each, one vote.

Every level forks from its parent's text, so the whole tree shares its prefixes.

Run it: python examples/tree_of_thought.py
"""

from __future__ import annotations

from collections import Counter

from plait import State, assistant, function, gen, user

QUESTION = "A farmer has 3 pens with 4 sheep each. 5 sheep are sold. How many sheep are left?"
WIDTH = 2
STEPS = (
    ("plan", "Propose a plan to solve this problem, in one sentence. Do not solve it yet.\n\n"),
    ("work", "Carry out the plan step by step, briefly."),
    ("check", "Is this right? Correct it if it is not, in one sentence."),
)


def grow(s: State, question: str, level: int) -> list[State]:
    """Fork `s` once a level; give the states at the leaves."""
    if level == len(STEPS):
        return [s]
    name, instruction = STEPS[level]
    leaves: list[State] = []
    for branch in s.fork(WIDTH):
        branch += user(instruction + (question if level == 0 else ""))
        branch += assistant(gen(name, max_tokens=48, stop="\n\n", temperature=0.3))
        leaves += grow(branch, question, level + 1)
    return leaves


@function
def tree_of_thought(s: State, question: str) -> list[str]:
    """Give the answer of each leaf."""
    leaves = grow(s, question, 0)
    for leaf in leaves:
        leaf += user("Give the final number alone.")
        leaf += assistant(gen("answer", regex="[0-9]{1,4}", temperature=0))
    return [leaf["answer"] for leaf in leaves]


def main() -> None:
    """Print the vote and what the tree shared."""
    result = tree_of_thought.run(question=QUESTION, seed=1)
    usage = result.usage
    for answer, votes in Counter(result.value).most_common():
        print(f"{answer:>6}  {'#' * votes}")
    print(f"{usage.prompt_tokens} prompt tokens, {usage.cached_tokens} of them cached")


if __name__ == "__main__":
    main()
