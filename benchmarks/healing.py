"""What token healing changes on the default model, and what it costs.

Prompts of five kinds, each run with `heal` on and off, greedily, one at a time. Reported by
kind: in how many the first characters of the answer differ, and in how many the answer is
the expected one. `trimmed` is the same prompt without its last blank, and without healing:
what the model says where the border is right by itself. The cost is of both ways alternating
over prompts whose answers are the same.

Run it: python -m benchmarks.healing [--rounds 20]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from plait import State, function, gen
from plait.interpreter.backends.local import LocalBackend
from plait.runtime.config import EngineConfig
from plait.runtime.load.store import DEFAULT_MODEL, Store, default_home
from plait.runtime.model.registry import load_model

WORDS = (
    "apple river window garden yellow doctor summer bridge castle orange "
    "planet silver market forest pencil rocket"
).split()
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
    "xmlns=\"http:": "//",
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
        found.append(Prompt("copy after a blank", f"{lines}Say {word}. Answer: ", word))
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


def report(backend: LocalBackend, found: Sequence[Prompt]) -> None:
    """Print the figures of each kind."""
    print(f"{'kind':20} prompts  first differs  right: off    on  trimmed")
    for kind in dict.fromkeys(prompt.kind for prompt in found):
        rows = [prompt for prompt in found if prompt.kind == kind]
        off = [answer(backend, p.text, heal=False) for p in rows]
        on = [answer(backend, p.text, heal=True) for p in rows]
        trimmed = [answer(backend, p.text.rstrip(" "), heal=False).lstrip(" ") for p in rows]
        differ = sum(a[:3] != b[:3] for a, b in zip(off, on, strict=True))
        judged = [i for i, prompt in enumerate(rows) if prompt.expected]
        hits = [
            sum(texts[i].startswith(rows[i].expected.lstrip(" " * (texts is trimmed)))
                for i in judged)
            for texts in (off, on, trimmed)
        ]  # fmt: skip
        shown = "".join(f"{hit:3}/{len(judged):<3}" for hit in hits)
        print(f"{kind:20} {len(rows):7}  {differ:13}  {shown}")
        for prompt, a, b in zip(rows, off, on, strict=True):
            if a != b:
                print(f"    {prompt.text[-24:]!r}: off {a!r}, on {b!r}")


def cost(backend: LocalBackend, found: Sequence[Prompt], num_rounds: int) -> None:
    """Print milliseconds of a gen, and steps of the engine, both ways in turn."""
    same = [p for p in found if answer(backend, p.text, heal=False) == answer(backend, p.text, heal=True)]  # noqa: E501
    times: dict[bool, list[float]] = {False: [], True: []}
    steps = {False: 0, True: 0}
    for i in range(2 * num_rounds):
        heal = i % 2 == 1
        before, start = backend.stats().num_steps, time.perf_counter()
        for prompt in same:
            answer(backend, prompt.text, heal=heal)
        times[heal].append((time.perf_counter() - start) / len(same))
        steps[heal] += backend.stats().num_steps - before
    for heal, label in ((False, "off"), (True, "on")):
        num_gens = num_rounds * len(same)
        print(
            f"cost {label:3}: {1000 * statistics.median(times[heal]):.1f} ms a gen of 6 tokens, "
            f"{steps[heal] / num_gens:.2f} steps"
        )


def main(arguments: Sequence[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(arguments)
    config = EngineConfig(kv_cache_tokens=8192, max_context=512)
    path = Store(default_home()).resolve(DEFAULT_MODEL)
    backend = LocalBackend(load_model(path, config), config)
    try:
        found = prompts()
        report(backend, found)
        cost(backend, found, options.rounds)
    finally:
        backend.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
