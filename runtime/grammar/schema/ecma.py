"""Read the regexes of JSON Schema's `pattern`, with the meaning of ECMA-262."""

from __future__ import annotations

from ..expr import Expr


def parse_ecma(source: str) -> Expr:
    """Give the texts in which an ECMA-262 regex (flag u) matches somewhere.

    Raises: RequestError (bad_grammar) with reason and place.
    """
    raise NotImplementedError
