"""An agent that thinks, calls a tool, reads the result, and goes on: the tool is plain Python.

Run it: python examples/react_agent.py
"""

from __future__ import annotations

import ast
import operator

from plait import State, function, gen

OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
SHOTS = """Answer the question. Calculate[expression] does arithmetic, Finish[answer] ends.

Question: A box holds 12 eggs. How many eggs are in 7 boxes?
Thought: I multiply 12 by 7.
Action: Calculate[12 * 7]
Observation: 84
Thought: I know the answer.
Action: Finish[84]

Question: Ann has 50 coins and buys 3 pens for 9 coins each. How many coins are left?
Thought: The pens cost 3 times 9.
Action: Calculate[50 - 3 * 9]
Observation: 23
Thought: I know the answer.
Action: Finish[23]
"""
ACTION = r"Calculate\[[0-9+*/(). -]{1,30}\]|Finish\[[0-9.]{1,12}\]"
MAX_STEPS = 4


def calculate(expression: str) -> str:
    """Compute an arithmetic expression; an error is an answer too, for the model to read."""

    def value(node: ast.expr) -> float:
        match node:
            case ast.Constant(value=int() | float() as number):
                return number
            case ast.BinOp(left, op, right) if type(op) in OPERATORS:
                return float(OPERATORS[type(op)](value(left), value(right)))
        raise ValueError("only numbers and + - * /")

    try:
        return f"{value(ast.parse(expression.strip(), mode='eval').body):g}"
    except (SyntaxError, ValueError, ZeroDivisionError) as error:
        return f"error: {error}"


@function
def react(s: State, question: str) -> str | None:
    """Answer with at most MAX_STEPS actions; None if they did not suffice."""
    s += f"{SHOTS}\nQuestion: {question}\n"
    for step in range(MAX_STEPS):
        s += "Thought:" + gen(f"thought_{step}", max_tokens=32, stop="\n", temperature=0)
        s += "\nAction: " + gen(f"action_{step}", regex=ACTION, temperature=0)
        tool, _, argument = s[f"action_{step}"].rstrip("]").partition("[")
        if tool == "Finish":
            return str(argument)
        s += f"\nObservation: {calculate(argument)}\n"
    return None


def main() -> None:
    """Print the whole trace of the agent, then its answer."""
    result = react.run(question="A shelf holds 24 books. How many books are on 6 shelves?")
    print(result.text().removeprefix(SHOTS))
    print(f"\nanswer: {result.value}")


if __name__ == "__main__":
    main()
