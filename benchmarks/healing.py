"""What token healing changes on the default model, and what it costs.

Prompts of six kinds, each run with `heal` on and off, greedily, one at a time. Reported by
kind: in how many the first characters of the answer differ, and in how many the answer is
the expected one. `trimmed` is the same prompt without its last blank, and without healing:
what the model says where the border is right by itself. The cost is of a first token, both ways
in turn, over prompts whose answers are the same: `cached` are known to the cache but for what is
always computed, `new` are not. Goal of `--check`: at least 14 of the 16 copies after a blank.

Run it: python -m benchmarks.healing [--rounds 10] [--texts] [--check]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.default_model import open_default_backend
from plait import State, function, gen
from plait.interpreter.backends.local import LocalBackend
from plait.runtime.config import EngineConfig

COPIES = "copy after a blank"
GOAL_COPIES = 14
_WORDS = (
    "apple river window garden yellow doctor summer bridge castle orange "
    "planet silver market forest pencil rocket"
)
WORDS = _WORDS.split()
CAPITALS = {
    "France": "Paris",
    "Italy": "Rome",
    "Spain": "Madrid",
    "Germany": "Berlin",
    "Japan": "Tokyo",
    "England": "London",
    "Russia": "Moscow",
    "Egypt": "Cairo",
    "Greece": "Athens",
    "Austria": "Vienna",
    "Portugal": "Lisbon",
    "Cuba": "Havana",
}
URLS = {
    "The address of the site is http:": "//",
    "Clone it from https:": "//",
    "Open http://www.": "",
    "See https://en.wikipedia.": "org",
    "The link is <a href": "=",
    "Mail her at anna@": "",
    "It listens on http://localhost:": "",
    "Read ftp:": "//",
    "The page is https://github.": "com",
    "Go to www.google.": "com",
    'xmlns="http:': "//",
    "url = 'https:": "//",
}
CODE = {
    "def add(a, b):\n    ": "return",
    "for i in range(10):\n    ": "print",
    "import numpy as ": "np",
    "import pandas as ": "pd",
    "x = [1, 2, 3]\nprint(x[": "",
    "if __name__ == ": "",
    "class Dog:\n    ": "def",
    "while True:\n    ": "",
    "def square(x):\n    return x *": "",
    "from math import ": "",
    "try:\n    f()\nexcept ": "",
    "a = {'k': 1}\nfor key in a.": "",
}
CUT = {
    "The opposite of hot is co": "ld",
    "Monday, Tuesday, Wednes": "day",
    "The sun rises in the ea": "st",
    "Twinkle, twinkle, little st": "ar",
    "Once upon a ti": "me",
    "January, February, Mar": "ch",
    "The quick brown fo": "x",
    "Ladies and gentle": "men",
    "Happy birth": "day",
    "The United States of Ame": "rica",
    "one, two, three, fo": "ur",
    "The Eiffel Tower is in Pa": "ris",
}


@function
def write(s: State, text: str, heal: bool) -> None:
    """Go on with `text`."""
    s += text + gen("rest", heal=heal, temperature=0, max_tokens=6)


@function
def first(s: State, text: str, heal: bool) -> None:
    """Say one token after `text`."""
    s += text + gen("rest", heal=heal, temperature=0, max_tokens=1)


@dataclass(frozen=True, slots=True)
class Prompt:
    """A text and what should follow it; "" where nothing does in particular."""

    kind: str
    text: str
    expected: str


def prompts() -> list[Prompt]:
    """Give the prompts, the same every time."""
    found = []
    for i, word in enumerate(WORDS):
        shots = [WORDS[(i + n) % len(WORDS)] for n in (3, 7)]
        lines = "".join(f"Say {shot}. Answer: {shot}\n" for shot in shots)
        found.append(Prompt(COPIES, f"{lines}Say {word}. Answer: ", word))
    for country, capital in CAPITALS.items():
        text = f"The capital of {country} is "
        found.append(Prompt("fact after a blank", text, capital))
        found.append(Prompt("fact after a word", text.rstrip(), f" {capital}"))
    for kind, texts in (("url", URLS), ("code", CODE), ("cut word", CUT)):
        found += [Prompt(kind, text, expected) for text, expected in texts.items()]
    return found


def answer(backend: LocalBackend, text: str, *, heal: bool) -> str:
    """Give what the model writes after `text`."""
    return str(write.options(backend=backend).run(text, heal)["rest"])


def trimmed_answer(backend: LocalBackend, text: str) -> str:
    """Give what the model writes where the blank at the end is its own to write."""
    said = answer(backend, text.removesuffix(" "), heal=False)
    return said.removeprefix(" ") if text.endswith(" ") else said


def report(backend: LocalBackend, found: Sequence[Prompt], *, has_texts: bool) -> dict[str, int]:
    """Print the figures of each kind; give how many were right with healing."""
    print(f"{'kind':20} prompts  differs  right: off    on  trimmed")
    right = {}
    for kind in dict.fromkeys(prompt.kind for prompt in found):
        rows = [prompt for prompt in found if prompt.kind == kind]
        off = [answer(backend, p.text, heal=False) for p in rows]
        on = [answer(backend, p.text, heal=True) for p in rows]
        trimmed = [trimmed_answer(backend, p.text) for p in rows]
        num_differ = sum(a[:3] != b[:3] for a, b in zip(off, on, strict=True))
        num_judged = sum(1 for prompt in rows if prompt.expected)
        hits = [num_right(rows, off), num_right(rows, on), num_right(rows, trimmed)]
        shown = "".join(f"{hit:4}/{num_judged:<2}" for hit in hits)
        print(f"{kind:20} {len(rows):7}  {num_differ:7}  {shown}")
        right[kind] = hits[1]
        for prompt, a, b in zip(rows, off, on, strict=True):
            if has_texts and a != b:
                print(f"    {prompt.text[-24:]!r}: off {a!r}, on {b!r}")
    return right


def num_right(rows: Sequence[Prompt], texts: Sequence[str]) -> int:
    """Count the answers that begin as expected."""
    pairs = [(row.expected, text) for row, text in zip(rows, texts, strict=True) if row.expected]
    return sum(text.startswith(expected) for expected, text in pairs)


def cost(backend: LocalBackend, num_rounds: int) -> None:
    """Print what the first token takes, both ways in turn."""
    countries = list(CAPITALS)
    for kind in ("cached", "new"):
        times: dict[bool, list[float]] = {False: [], True: []}
        steps = {False: 0, True: 0}
        for i in range(num_rounds * len(countries)):
            country = countries[i % len(countries)]
            for heal in (False, True):
                start = f"{i} {heal} " if kind == "new" else ""
                text = f"{start}It is said that the capital of {country} is"
                num_before, began_s = backend.stats().num_steps, time.perf_counter()
                first.options(backend=backend).run(text, heal)
                times[heal].append(time.perf_counter() - began_s)
                steps[heal] += backend.stats().num_steps - num_before
        for heal in (False, True):
            milliseconds = 1000 * statistics.median(times[heal])
            share = steps[heal] / len(times[heal])
            print(f"cost, {kind:6}, heal={heal!s:5}: {milliseconds:6.1f} ms, {share:.2f} steps")


def main(arguments: Sequence[str]) -> int:
    """Measure and print; give 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--texts", action="store_true", help="print the answers that differ")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args(arguments)
    config = EngineConfig(kv_cache_tokens=8192, max_context=512)
    backend = open_default_backend(config)
    try:
        right = report(backend, prompts(), has_texts=options.texts)
        cost(backend, options.rounds)
    finally:
        backend.close()
    return int(options.check and right[COPIES] < GOAL_COPIES)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
