"""A talk of several turns: each turn computes only its own tokens, the rest is cached.

Run it: python examples/chat.py "What is a prime number?" "Name three of them."
"""

from __future__ import annotations

import sys

from plait import State, assistant, function, gen, system, user

QUESTIONS = ["What is the capital of France?", "And of Italy?", "Which of the two is larger?"]


@function
def chat(s: State, questions: list[str]) -> None:
    """Answer the questions one after the other, in one talk."""
    s += system("You answer in one short sentence.")
    for turn, question in enumerate(questions):
        s += user(question)
        s += assistant(gen(f"answer_{turn}", max_tokens=40, temperature=0))


def main() -> None:
    """Print the talk as it grows, then what it cost."""
    questions = sys.argv[1:] or QUESTIONS
    with chat.stream(questions=questions) as events:
        for event in events:
            if event.kind == "start":
                print(f"\n> {questions[int(str(event.variable).removeprefix('answer_'))]}")
            elif event.kind == "delta":
                print(event.text, end="", flush=True)
    usage = events.result.usage
    print(f"\n\n{usage.prompt_tokens} prompt tokens, {usage.cached_tokens} of them cached")


if __name__ == "__main__":
    main()
