"""Judge an essay in several dimensions at once, and join the verdicts by name.

The branches share the essay: it is computed once, whatever the number of dimensions.

Run it: python examples/essay_judge.py
"""

from __future__ import annotations

from plait import State, assistant, function, gen, system, user

DIMENSIONS = ("clarity", "evidence", "originality")
ESSAY = (
    "Cities should plant more trees. Streets with trees are cooler in summer, and people "
    "walk more where there is shade. A study of 20 towns found that the temperature at noon "
    "was three degrees lower under trees. Trees cost money, but so do hospitals."
)


def score(branch: State, dimension: str) -> None:
    """Judge one dimension, on a branch of its own."""
    branch += user(f"Judge its {dimension} in one sentence, then give a score from 1 to 5.")
    with branch.assistant():
        branch += gen("reason", max_tokens=40, stop="\n", temperature=0)
        branch += "\nScore: " + gen("score", regex="[1-5]", temperature=0)


@function
def judge(s: State, essay: str) -> None:
    """Score the essay from 1 to 5 in each dimension, then sum up."""
    s += system("You judge essays. You are brief and fair.")
    s += user(f"Here is an essay.\n\n{essay}")

    verdicts = s.map(score, DIMENSIONS).join()

    s += user("These are the scores:")
    for dimension, points in zip(DIMENSIONS, verdicts["score"], strict=True):
        s += user(f"{dimension}: {points} of 5")
    s += user("Sum up in one sentence.")
    s += assistant(gen("summary", max_tokens=48, stop="\n", temperature=0))


def main() -> None:
    """Print the scores, their reasons and the summary."""
    result = judge.run(essay=ESSAY)
    for dimension, points, reason in zip(
        DIMENSIONS, result["score"], result["reason"], strict=True
    ):
        print(f"{dimension:12} {points}/5  {reason}")
    print(f"\n{result['summary']}")


if __name__ == "__main__":
    main()
