"""Programs with the shape of the field's workloads, at a quarter of their length.

Texts are made from a fixed seed; outputs have scripted lengths (`ignore_eos`), so every
configuration does identical work. After: the SGLang paper's tree-of-thought and HellaSwag rows.
"""

from __future__ import annotations

import random

from plait import State, assistant, function, gen, select, user

WORDS = [
    "river",
    "stone",
    "market",
    "winter",
    "garden",
    "letter",
    "bridge",
    "candle",
    "forest",
    "window",
    "harbour",
    "train",
    "morning",
    "yellow",
    "question",
    "mountain",
    "paper",
    "silver",
    "village",
    "doctor",
    "music",
    "island",
    "kitchen",
    "story",
]
PLAN, WORK, REFLECT = (
    "Read the problem and propose a plan to solve it, step by step, without solving it yet.",
    "Carry out the plan that you proposed and show each step of the work.",
    "Look at the work again, point out each mistake, and give the corrected answer.",
)


def sentence(rng: random.Random, num_words: int) -> str:
    """Make a nonsense sentence of `num_words` words."""
    return " ".join(rng.choices(WORDS, k=num_words)).capitalize() + "."


def grow(s: State, steps: list[str], width: int, num_tokens: int) -> None:
    """Fork `s` `width` times a step, each branch writing exactly `num_tokens` tokens."""
    if not steps:
        return
    for branch in s.fork(width):
        branch += user(steps[0])
        branch += assistant(gen("thought", max_tokens=num_tokens, temperature=0.3, ignore_eos=True))
        grow(branch, steps[1:], width, num_tokens)


@function
def tree_of_thought(s: State, question: str, width: int, num_tokens: int) -> None:
    """A tree of 3 levels: width + width^2 + width^3 outputs."""
    grow(s, [f"{PLAN}\n\n{question}", WORK, REFLECT], width, num_tokens)


@function
def few_shot(s: State, shots: str, context: str, endings: list[str]) -> None:
    """Choose the ending of `context` after many worked examples."""
    s += shots + context + " " + select("ending", endings)


def tree_rows(num_rows: int, seed: int = 0) -> list[dict[str, object]]:
    """Give the rows of the tree-of-thought workload: questions of about 15 words."""
    rng = random.Random(seed)
    return [{"question": sentence(rng, 15), "width": 3, "num_tokens": 16} for _ in range(num_rows)]


def few_shot_rows(num_rows: int, seed: int = 0) -> list[dict[str, object]]:
    """Give the rows of the 20-shot select workload: four endings a row, one set of shots."""
    rng = random.Random(seed)
    shots = "".join(f"{sentence(rng, 10)} {sentence(rng, 6)}\n" for _ in range(20))
    return [
        {
            "shots": shots,
            "context": sentence(rng, 12),
            "endings": [sentence(rng, 6) for _ in range(4)],
        }
        for _ in range(num_rows)
    ]
