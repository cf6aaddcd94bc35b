"""What the stand-in model says in each example: the reply follows from how the prompt ends."""

from __future__ import annotations

from collections.abc import Callable

Script = Callable[[str], str]


def _by_ending(*rules: tuple[str, str]) -> Script:
    """Give a script that answers by the last of the `rules`' needles found in the prompt."""

    def script(prompt: str) -> str:
        found = [(prompt.rfind(needle), reply) for needle, reply in rules if needle in prompt]
        return max(found)[1] if found else "Yes."

    return script


hello = _by_ending(("greeting for Ada", "Good morning, Ada!\nmore"))
chat = _by_ending(
    ("capital of France?", "It is Paris."),
    ("And of Italy?", "It is Rome."),
    ("two is larger?", "Paris is."),
)
essay_judge = _by_ending(
    ("Judge its clarity", "It is easy to follow.\n"),
    ("Judge its evidence", "It names one study.\n"),
    ("Judge its originality", "The end is a surprise.\n"),
    ("It is easy to follow.\nScore: ", "4"),
    ("It names one study.\nScore: ", "3"),
    ("The end is a surprise.\nScore: ", "5"),
    ("Sum up in one sentence.", "Clear, short, and a little thin.\n"),
)
tree_of_thought = _by_ending(
    ("Propose a plan", "Multiply, then subtract."),
    ("Carry out the plan", "3 * 4 = 12, 12 - 5 = 7."),
    ("Is this right?", "It is right."),
    ("Give the final number", "7"),
)
react_agent = _by_ending(
    ("52 seats each.", " I multiply 8 by 52.\n"),
    ("I multiply 8 by 52.\nAction:", "Calculate[8 * 52]"),
    ("Observation: 416", " I know the answer.\n"),
    ("Observation: 416\nThought: I know the answer.\nAction:", "Finish[416]"),
)
json_extract = _by_ending(
    (
        "has not arrived.",
        '{"name": "Maria Lopez", "order": "KX-4821", "amount": 49.90, "topic": "delivery"}',
    ),
)
self_consistency = _by_ending(
    ("are left?\nA:", " 32 + 42 = 74, and 74 - 35 = 39. The answer is"),
    ("74 - 35 = 39. The answer is ", "39"),
)
classify = _by_ending(("stolen my card!", "card stolen\n"))
sql = _by_ending(("live in London?", "SELECT COUNT(*) FROM users WHERE city = 'London'\n"))
tool_call = _by_ending(("add 8 eggs.", ' add({"item": "eggs", "count": 8})'))
chess_move = _by_ending(
    ("Nf6", "O-O Be7 6. Re1"),
    (" 5. ", "O-O Be7"),
    ("5. O-O ", "Be7 6."),
    (" 6. ", "Re1 b5"),
    ("6. Re1 ", "b5 7."),
)
