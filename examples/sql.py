"""Questions to SQL: a Lark grammar lets the model name only tables and columns that exist.

Run it: python examples/sql.py, or
        plait grammar examples/data/sql.lark --match "SELECT name FROM users"
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from plait import State, function, gen

GRAMMAR = (Path(__file__).parent / "data" / "sql.lark").read_text()
TABLES = """
CREATE TABLE users (name TEXT, city TEXT, age INTEGER);
INSERT INTO users VALUES ('Ada', 'London', 36), ('Bo', 'Oslo', 61), ('Chen', 'London', 25);
"""
SHOTS = """Table: users(name, city, age)

Question: What are the names of all users?
SQL: SELECT name FROM users

Question: How many users are older than 50?
SQL: SELECT COUNT(*) FROM users WHERE age > 50

Question: Which cities do users come from, in order?
SQL: SELECT city FROM users ORDER BY city
"""
QUESTIONS = ("How many users live in London?", "What is the age of Bo?")


@function
def ask(s: State, question: str) -> None:
    """Write the query that answers `question`."""
    s += f"{SHOTS}\nQuestion: {question}\nSQL: "
    s += gen("query", grammar=GRAMMAR, stop="\n", temperature=0, max_tokens=80)


def main() -> None:
    """Ask each question, and run the query that comes back: it always parses."""
    with sqlite3.connect(":memory:") as database:
        database.executescript(TABLES)
        for question in QUESTIONS:
            query: str = ask.run(question=question)["query"]
            rows = database.execute(query).fetchall()
            print(f"{question}\n  {query}\n  {rows}")


if __name__ == "__main__":
    main()
