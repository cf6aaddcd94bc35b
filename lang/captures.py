"""What a gen captures of its output, checked as far as the language alone can."""

from __future__ import annotations

import re
import warnings

from .errors import InvalidArgument
from .ops import Constraint
from .options import refuse_twice, refuse_unknown, strings


def captures_of(
    captures: object, name: str | None, constraint: Constraint | None
) -> tuple[str, ...]:
    """Give the checked names; those of a grammar's rules are checked where the gen runs.

    Raises: InvalidArgument.
    """
    if captures is None:
        return ()
    given = strings("captures", captures)
    refuse_twice("captures", given)
    if name in given:
        raise InvalidArgument(
            f"captures={list(given)!r}: {name!r} is the gen's own name; rename one of them"
        )
    regex = None if constraint is None else constraint.regex
    if given and regex is None and (constraint is None or constraint.grammar is None):
        raise InvalidArgument(
            f"captures={list(given)!r}: they are groups of a regex, or rules, terminals and parts "
            "of a grammar in Lark or EBNF; give one"
        )
    if given and regex is not None:
        _check_groups(given, regex)
    return given


def _check_groups(given: tuple[str, ...], regex: str) -> None:
    try:
        with warnings.catch_warnings(action="ignore"):
            known = re.compile(regex).groupindex
    except (re.error, OverflowError, RecursionError):
        return  # the runtime says what is wrong with it
    if not known:
        raise InvalidArgument(
            f"captures={list(given)!r}: the regex has no named group; write (?P<{given[0]}>...)"
        )
    refuse_unknown(given, known, "group")
