"""All that the values of a schema can come to, looked at before any is written.

The nodes of a schema are made as a text gets there, and what the mask does not guarantee is
noted on the way. Whoever must know it all beforehand walks through the goals instead: there
are about as many as there are places in the schema.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .arrays import ArrayPlace
from .facts import TYPES, Goal
from .shapes import ArrayShape, ObjectShape
from .values import Grammar

MAX_GOALS = 20_000
_TOO_MANY = f"the schema comes to more than {MAX_GOALS} goals"


@dataclass(frozen=True, slots=True)
class Survey:
    """What the mask does not guarantee, as (place, reason), and how much was looked at."""

    checked: tuple[tuple[str, str], ...]
    num_goals: int
    num_shapes: int


def survey(grammar: Grammar, root: Goal) -> Survey:
    """Look at every goal that a value, or a part of it, can have to meet.

    Raises: RequestError (grammar_budget) if there are too many.
    """
    seen, pending, num_shapes = {root}, [root], 0
    budget = grammar.pool.languages.budget
    while pending:
        goal = pending.pop()
        budget.check_time("the survey of the schema")
        for kind in TYPES:
            for shape in grammar.folder.shapes(goal, kind):
                if not grammar.possible.shape(shape):
                    continue
                num_shapes += 1
                new = [part for part in _parts(grammar, shape) if part not in seen]
                seen.update(new)
                pending += new
        if len(seen) > MAX_GOALS:
            budget.refuse(_TOO_MANY)
    checked = tuple(sorted(grammar.reader.checked.items()))
    return Survey(checked, len(seen), num_shapes)


def _parts(grammar: Grammar, shape: object) -> Iterator[Goal]:
    match shape:
        case ArrayShape():
            return _items(grammar, shape)
        case ObjectShape():
            return _properties(grammar, shape)
        case _:
            return iter(())


def _items(grammar: Grammar, shape: ArrayShape) -> Iterator[Goal]:
    start = grammar.possible.arrays.start(shape)
    for index in range(shape.num_special + 1):
        # What keeps items apart says there itself where it cannot.
        behind = start._replace(num_so_far=index)
        grammar.pool.nodes.make(ArrayPlace, grammar, shape, behind).expand()
        goals = [shape.goal(index)]
        for each in shape.contains:
            failing = [frozenset(((s, not holds),)) for s, holds in each.goal]
            goals += [goal | more for goal in goals for more in (each.goal, *failing)]
            if len(goals) > MAX_GOALS:
                grammar.pool.languages.budget.refuse(_TOO_MANY)
        yield from filter(grammar.possible.goal, goals)


def _properties(grammar: Grammar, shape: ObjectShape) -> Iterator[Goal]:
    possible = grammar.possible
    found = dict.fromkeys((each.goal, each.wishes) for each in possible.names(shape))
    found.update(dict.fromkeys((each.goal, each.wishes) for each in possible.free_classes(shape)))
    for goal, wishes in found:
        ways = possible.objects.ways(shape, goal, wishes, wishes)
        yield from dict.fromkeys((goal, *(whole for whole, _ in ways)))
