"""The smallest program: one question, one answer.

Run it: python examples/hello.py
"""

from __future__ import annotations

from plait import State, assistant, function, gen, user


@function
def hello(s: State, name: str) -> None:
    """Greet somebody by name."""
    s += user(f"Write a short, friendly greeting for {name}.")
    s += assistant(gen("greeting", max_tokens=32, stop="\n", temperature=0))


def main() -> None:
    """Print a greeting."""
    print(hello.run(name="Ada")["greeting"])


if __name__ == "__main__":
    main()
