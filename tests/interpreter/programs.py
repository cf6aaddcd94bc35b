"""Programs and stand-in models that several tests run."""

from __future__ import annotations

from plait import State, function, gen


def replies(prompt: str) -> str:
    """Answer by how the prompt ends."""
    for ending, reply in (("two: ", "second"), ("Parent Child", "!"), ("b: ", "B")):
        if prompt.endswith(ending):
            return reply
    return "first"


@function
def two(s: State, word: str = "one") -> str:
    """Say two things."""
    s += f"{word}: " + gen("a", max_tokens=8, temperature=0)
    s += " two: " + gen("b", max_tokens=8, temperature=0)
    return str(s["a"] + s["b"])


def talk(prompt: str) -> str:
    """Talk long after "long: ", else say what the prompt's length makes of it."""
    return "abcdefgh" * 400 if "long: " in prompt else f"{len(prompt) % 7} or so."
