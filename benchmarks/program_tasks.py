"""Four whole programs, each written for plait and for llama-cpp-python.

Both get the same texts as the same tokens, and write the same number of tokens: outputs have
fixed lengths, whatever they say (`ignore_eos`; llama.cpp's loop looks for no end). Only the
extraction ends where its JSON does. The texts are nonsense from a fixed seed, new in every round.

The llama.cpp side is what its users write: one call after the other, depth first, so that its
own reuse of the last prompt's prefix finds what it can; a choice is the likeliest first token.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from benchmarks.program_rival import Llama
from benchmarks.workloads import sentence
from plait import Function, State, function, gen, select

Row = dict[str, object]
WIDTH, THOUGHT_LEN = 3, 24  # branches of a level; tokens of a thought
GRADES = [" bad", " weak", " fair", " good", " great"]
TOPICS = [" sport", " science", " music", " business"]
DIMENSIONS = ("clarity", "evidence", "originality", "style", "structure", "honesty")
REASON_LEN, SUMMARY_LEN = 32, 48


@dataclass
class Ticket:
    """What the extraction wants of a letter."""

    name: Annotated[str, {"pattern": "^[A-Z][a-z]{1,15} [A-Z][a-z]{1,15}$"}]
    order: Annotated[str, {"pattern": "^[A-Z]{2}-[0-9]{4}$"}]
    topic: Literal["delivery", "damage", "refund", "question"]


TICKET_SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "pattern": "^[A-Z][a-z]{1,15} [A-Z][a-z]{1,15}$"},
        "order": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{4}$"},
        "topic": {"enum": ["delivery", "damage", "refund", "question"]},
    },
    "required": ["name", "order", "topic"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Task:
    """One program: rows of a round from its number, and how each engine runs a row."""

    name: str
    rows: Callable[[int], list[Row]]
    program: Function
    rival: Callable[[Llama, Row], None]


# Tree of thought: plans, ways to carry out each, a grade for every leaf


def plan_text(number: int) -> str:
    return f"\nPlan {number} to solve it is different from the others:"


def work_text(number: int) -> str:
    return f"\nAttempt {number} to carry out this plan, step by step:"


GRADE_TEXT = "\nThe grade of this attempt is"


@function
def tree(s: State, question: str) -> None:
    """Grow two levels of branches, and grade the leaves."""
    s += question
    for i, plan in enumerate(s.fork(WIDTH)):
        plan += plan_text(i)
        plan += gen("plan", max_tokens=THOUGHT_LEN, temperature=0, ignore_eos=True, heal=False)
        for j, work in enumerate(plan.fork(WIDTH)):
            work += work_text(j)
            work += gen("work", max_tokens=THOUGHT_LEN, temperature=0, ignore_eos=True, heal=False)
            work += GRADE_TEXT + select("grade", GRADES)


def tree_by_rival(llama: Llama, row: Row) -> None:
    """Do the same, depth first."""
    root = llama.tokens(str(row["question"]))
    for i in range(WIDTH):
        plan = llama.write([*root, *llama.tokens(plan_text(i))], THOUGHT_LEN)
        for j in range(WIDTH):
            work = llama.write([*plan, *llama.tokens(work_text(j))], THOUGHT_LEN)
            llama.choose([*work, *llama.tokens(GRADE_TEXT)], GRADES)


def tree_rows(round_id: int) -> list[Row]:
    rng = random.Random(f"tree {round_id}")
    return [{"question": f"Question: {sentence(rng, 40)}"} for _ in range(2)]


# Few-shot select: many rows behind the same worked examples


@function
def label(s: State, shots: str, text: str) -> None:
    """Choose the topic of a text after worked examples."""
    s += shots + text + "\nTopic:" + select("topic", TOPICS)


def label_by_rival(llama: Llama, row: Row) -> None:
    """Do the same; the examples stay cached from row to row."""
    llama.choose(llama.tokens(f"{row['shots']}{row['text']}\nTopic:"), TOPICS)


def label_rows(round_id: int) -> list[Row]:
    rng = random.Random(f"label {round_id}")
    shots = "".join(f"Text: {sentence(rng, 20)}\nTopic:{rng.choice(TOPICS)}\n\n" for _ in range(24))
    return [{"shots": shots, "text": f"Text: {sentence(rng, 20)}"} for _ in range(24)]


# Judge: one essay, several dimensions, and what they say together


def judge_text(dimension: str) -> str:
    return f"\n\nA critic judges the {dimension} of this essay in a few words:"


def verdict_text(dimension: str, grade: str) -> str:
    return f"\nThe {dimension} is{grade}."


SUM_UP = "\nThe critics sum up:"


@function
def judge(s: State, essay: str) -> None:
    """Judge each dimension in a branch of its own, join the grades, and sum up."""
    s += essay
    forks = s.fork(len(DIMENSIONS))
    for branch, dimension in zip(forks, DIMENSIONS, strict=True):
        branch += judge_text(dimension)
        branch += gen("reason", max_tokens=REASON_LEN, temperature=0, ignore_eos=True, heal=False)
        branch += GRADE_TEXT + select("grade", GRADES)
    grades = forks.join()["grade"]
    for dimension, grade in zip(DIMENSIONS, grades, strict=True):
        s += verdict_text(dimension, grade)
    s += SUM_UP
    s += gen("summary", max_tokens=SUMMARY_LEN, temperature=0, ignore_eos=True, heal=False)


def judge_by_rival(llama: Llama, row: Row) -> None:
    """Do the same, one dimension after the other."""
    essay = llama.tokens(str(row["essay"]))
    verdicts = ""
    for dimension in DIMENSIONS:
        reason = llama.write([*essay, *llama.tokens(judge_text(dimension))], REASON_LEN)
        grade = llama.choose([*reason, *llama.tokens(GRADE_TEXT)], GRADES)
        verdicts += verdict_text(dimension, grade)
    llama.write([*essay, *llama.tokens(verdicts + SUM_UP)], SUMMARY_LEN)


def judge_rows(round_id: int) -> list[Row]:
    rng = random.Random(f"judge {round_id}")
    return [{"essay": " ".join(sentence(rng, 12) for _ in range(20))} for _ in range(2)]


# Extraction: letters into JSON of a schema

EXAMPLES = (
    ("Eva Stone", "AB-1200", "The vase was cracked when I opened the box.", "damage"),
    ("Hugo Brandt", "GR-7731", "I sent it back, and nothing was returned to me.", "refund"),
    ("Nina Rossi", "TU-4410", "Which oil does the fan need?", "question"),
)
NAMES = (("Ada", "Omar", "Lena", "Ivan", "Rosa"), ("Keller", "Moreau", "Santos", "Novak", "Lindt"))


def letter_text(name: str, order: str, said: str) -> str:
    return f"Letter: {said} My order is {order}. {name}\nJSON: "


@function
def extract(s: State, examples: str, letter: str) -> None:
    """Read a letter into a Ticket."""
    s += examples + letter
    s += gen("ticket", Ticket, whitespace=1, temperature=0, max_tokens=100, heal=False)


def extract_by_rival(llama: Llama, row: Row) -> None:
    """Do the same with llama.cpp's grammar of the schema."""
    llama.fill_in(llama.tokens(f"{row['examples']}{row['letter']}"), TICKET_SCHEMA, 100)


def extract_rows(round_id: int) -> list[Row]:
    rng = random.Random(f"extract {round_id}")
    examples = "".join(
        f'{letter_text(name, order, said)}{{"name": "{name}", "order": "{order}", '
        f'"topic": "{topic}"}}\n\n'
        for name, order, said, topic in rng.sample(EXAMPLES, len(EXAMPLES))
    )

    def letter() -> str:
        name = " ".join(map(rng.choice, NAMES))
        order = "".join(rng.choices("ABCDEFGH", k=2)) + f"-{rng.randrange(1000, 10_000)}"
        return letter_text(name, order, sentence(rng, 15))

    return [{"examples": examples, "letter": letter()} for _ in range(8)]


TASKS: Sequence[Task] = (
    Task("tree of thought", tree_rows, tree, tree_by_rival),
    Task("few-shot select", label_rows, label, label_by_rival),
    Task("judge", judge_rows, judge, judge_by_rival),
    Task("extraction", extract_rows, extract, extract_by_rival),
)
