"""Schemas read for one type of value at a time: all keywords come to cases of facts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from decimal import Decimal

from ...errors import RequestError
from ..build import build_language
from ..expr import Expr
from ..language import Language
from ..pool import Pool
from .documents import Documents, Json, Schema, bad_schema
from .ecma import parse_ecma
from .facts import (
    ALWAYS,
    NEVER,
    TYPES,
    Case,
    Cases,
    Every,
    Fact,
    Goal,
    ItemsFrom,
    JsonType,
    Names,
    Number,
    OneOf,
    Required,
    SeenItems,
    Size,
    fact,
)  # fmt: skip
from .keywords import KEYWORDS, goal_of
from .numbers import NumberBounds

MAX_CASES = 400  # of one schema and one type
MAX_ABSORBED = 200  # cases that are compared with each other

_DECISIVE = frozenset(("type", "enum", "const"))  # read first: they often decide alone
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


class Reader:
    """Reads the schemas of some documents. Not thread-safe: it works in the pool.

    `is_disjoint` says whether no value of a type can match two schemas.
    """

    def __init__(self, documents: Documents, pool: Pool) -> None:
        self._pool = pool
        self.documents = documents
        self.languages = pool.languages
        self.checked: dict[str, str] = {}  # places whose keyword the mask does not guarantee
        self.is_disjoint: Callable[[Schema, Schema, JsonType], bool] = lambda a, b, kind: False
        self.texts: Callable[[Goal], Language] = lambda goal: self.languages.anything
        self._patterns: dict[str, Language] = {}
        self._cases: dict[tuple[Schema, bool, JsonType, bool], Cases] = {}

    def note_checked(self, schema: Schema, keyword: str, reason: str) -> None:
        """Note that the value has to be validated for a keyword once it is whole."""
        self.checked[f"{schema}/{keyword}"] = reason

    def build(self, expr: Expr) -> Language:
        """Give the language of an expression."""
        return build_language(expr, self.languages)

    def pattern(self, schema: Schema, keyword: str, source: str) -> Language:
        """Give the texts in which a pattern finds something."""
        if source not in self._patterns:
            try:
                self._patterns[source] = self.build(parse_ecma(source))
            except RequestError as e:
                raise RequestError(e.code, f"schema: {schema}/{keyword}: {e}") from e
        return self._patterns[source]

    def goal_cases(self, goal: Goal, kind: JsonType) -> Cases:
        """Give the cases in which a value of a type meets the goal."""
        literals = sorted(goal, key=_order)
        parts = [self.cases(schema, holds, kind) for schema, holds in literals]
        return self.all_of(literals[0][0], "allOf", parts) if parts else ALWAYS

    def cases(self, schema: Schema, holds: bool, kind: JsonType, tracks: bool = False) -> Cases:
        """Give the cases in which a value of a type matches (or fails) a schema.

        `tracks`: whether somebody asks which properties and items were looked at.
        """
        key = (schema, holds, kind, tracks)
        found = self._cases.get(key)
        if found is None:
            self.languages.budget.check_time(f"the schema at {schema}")
            found = self._cases[key] = self._read(schema, holds, kind, tracks)
        return found

    def all_of(self, schema: Schema, keyword: str, parts: Iterable[Cases]) -> Cases:
        """Give the cases in which one case of each part holds; impossible ones are left out.

        Raises: RequestError (grammar_budget) if there are too many.
        """
        found: Cases = ALWAYS
        for part in parts:
            if part is ALWAYS:
                continue
            if len(found) == 1 and not found[0].facts and not found[0].seen_names:
                found = part
                if not found:  # the rest need not be read, nor be noted as only checked
                    break
                continue
            merged = (one & other for one in found for other in part)
            found = tuple(dict.fromkeys(case for case in merged if _is_possible(case.facts)))
            found = _absorbed(found)
            if not found:
                break
            if len(found) > MAX_CASES:
                reason = f"schema: {schema}/{keyword} comes to more than {MAX_CASES} cases"
                self.languages.budget.refuse(reason)
        return found

    def _read(self, schema: Schema, holds: bool, kind: JsonType, tracks: bool) -> Cases:
        if isinstance(schema.value, bool):
            return ALWAYS if schema.value is holds else NEVER
        keywords = schema.keywords
        tracks = tracks or "unevaluatedProperties" in keywords or "unevaluatedItems" in keywords
        ordered = sorted(keywords, key=_DECISIVE.__contains__, reverse=True)
        read = (
            self._keyword(schema, keyword, holds, kind, tracks and holds) for keyword in ordered
        )
        parts = (cases for cases in read if cases is not None)
        if holds:
            return self._with_unevaluated(schema, self.all_of(schema, "allOf", parts), kind)
        found = _any(parts)
        for keyword in ("unevaluatedProperties", "unevaluatedItems"):
            if keyword in keywords and kind in ("object", "array"):
                self.note_checked(schema, keyword, "that it fails is validated at the end")
                found += ALWAYS
        return tuple(dict.fromkeys(Case(case.facts) for case in found))

    def _keyword(
        self, schema: Schema, keyword: str, holds: bool, kind: JsonType, tracks: bool
    ) -> Cases | None:
        """Give the cases of one keyword; None for one that says nothing of this type."""
        typed = KEYWORDS[kind].get(keyword)
        if typed is not None:
            return typed(self, schema, keyword, holds)
        match keyword:
            case "type":
                return _type_cases(self.types(schema), kind, holds)
            case "enum" | "const":
                return self._values(schema, keyword, kind, holds)
            case "allOf" | "anyOf" | "oneOf":
                options = schema.options or self.options(schema, keyword)
                return self._combine(schema, keyword, options, holds, kind, tracks)
            case "not":
                return self.cases(schema.inside("not"), not holds, kind)
            case "if":
                return self._if(schema, holds, kind, tracks)
            case _ if keyword in REFERENCES:
                target = self.documents.follow(schema, keyword)
                return self.cases(target, holds, kind, tracks)
        return None

    def options(self, schema: Schema, keyword: str) -> list[Schema]:
        """Give the schemas of a list. Raises: RequestError (bad_grammar) if there is none."""
        value = schema.keywords[keyword]
        if not isinstance(value, list) or not value:
            raise bad_schema(schema, keyword, "a list of schemas is expected")
        return [schema.inside(keyword, i) for i in range(len(value))]

    def types(self, schema: Schema) -> list[str]:
        """Give the types that a schema names. Raises: RequestError (bad_grammar) if unknown."""
        value = schema.keywords["type"]
        known = (*TYPES, "integer", "any")
        for name in value if isinstance(value, list) else [value]:
            if name not in known:
                expected = ", ".join(known[:-1])
                raise bad_schema(schema, "type", f"is {name!r:.40}; the types are {expected}")
        return [str(name) for name in value] if isinstance(value, list) else [str(value)]

    def _combine(
        self, schema: Schema, keyword: str, options: list[Schema], holds: bool,
        kind: JsonType, tracks: bool,
    ) -> Cases:  # fmt: skip
        def each(sign: bool, *places: int) -> list[Cases]:
            return [self.cases(options[i], sign, kind, tracks) for i in places or everywhere]

        everywhere = range(len(options))
        if keyword == "allOf":
            return self.all_of(schema, keyword, each(True)) if holds else _any(each(False))
        if keyword == "anyOf":
            if not holds:
                return self.all_of(schema, keyword, each(False))
            return self._any_tracked(schema, options, kind) if tracks else _any(each(True))
        if holds:
            return _any(self._only(schema, options, i, kind, tracks) for i in everywhere)
        pairs = ((i, j) for i in everywhere for j in range(i))
        two = [self.all_of(schema, keyword, each(True, *pair)) for pair in pairs]
        return (*self.all_of(schema, keyword, each(False)), *_any(two))

    def _only(
        self, schema: Schema, options: list[Schema], chosen: int, kind: JsonType, tracks: bool
    ) -> Cases:
        """Give the cases in which one option matches and no other."""
        own = self.cases(options[chosen], True, kind, tracks)
        if not own:
            return NEVER
        others = (o for i, o in enumerate(options) if i != chosen)
        failing = [
            self.cases(other, False, kind)
            for other in others
            if not self.is_disjoint(options[chosen], other, kind)
        ]
        return self.all_of(schema, "oneOf", [own, *failing])

    def _any_tracked(self, schema: Schema, options: list[Schema], kind: JsonType) -> Cases:
        """Split by which options match: what they have looked at differs."""
        found: Cases = ALWAYS
        none: Cases = ALWAYS
        for option in options:
            matching = self.cases(option, True, kind, tracks=True)
            failing = self.cases(option, False, kind)
            more = self.all_of(schema, "anyOf", [none, matching])
            if found is not none:
                more += self.all_of(schema, "anyOf", [found, (*matching, *failing)])
            none = self.all_of(schema, "anyOf", [none, failing])
            found = more
        return found

    def _if(self, schema: Schema, holds: bool, kind: JsonType, tracks: bool) -> Cases:
        keywords, condition = schema.keywords, schema.inside("if")
        found: list[Cases] = []
        for sign, branch in ((True, "then"), (False, "else")):
            decided = self.cases(condition, sign, kind, tracks and sign)
            if branch in keywords:
                then = self.cases(schema.inside(branch), holds, kind, tracks)
                found.append(self.all_of(schema, branch, [decided, then]))
            elif holds:
                found.append(decided)
        if holds and not tracks and "then" not in keywords and "else" not in keywords:
            return ALWAYS
        return _any(found)

    def _values(self, schema: Schema, keyword: str, kind: JsonType, holds: bool) -> Cases:
        value = schema.keywords[keyword]
        if keyword == "enum" and not isinstance(value, list):
            raise bad_schema(schema, keyword, "a list of values is expected")
        values = value if keyword == "enum" and isinstance(value, list) else [value]
        texts = tuple(dict.fromkeys(json_text(v) for v in values if kind_of(v) == kind))
        if holds:
            return fact(OneOf(texts)) if texts else NEVER
        if kind in ("array", "object") and (left := [t for t in texts if len(t) > 2]):
            reason = f"that the value is not {left[0]:.40} is validated at the end"
            self.note_checked(schema, keyword, reason)
        if kind in ("array", "object"):
            return fact(Size(low=1)) if "[]" in texts or "{}" in texts else ALWAYS
        return fact(OneOf(texts, is_negated=True)) if texts else ALWAYS

    def _with_unevaluated(self, schema: Schema, cases: Cases, kind: JsonType) -> Cases:
        """Ask of what no keyword has looked at that it matches, too."""
        keyword = {"object": "unevaluatedProperties", "array": "unevaluatedItems"}.get(kind, "")
        if keyword not in schema.keywords:
            return cases
        inner = schema.inside(keyword)
        return tuple(_unevaluated(case, kind, inner) for case in cases)


def possible_kinds(goal: Goal) -> tuple[JsonType, ...]:
    """Give the types that the keyword `type` leaves to a goal; most schemas name one."""
    kinds = TYPES
    for schema, holds in goal:
        types = schema.keywords.get("type", "any")
        names = types if isinstance(types, list) else [types]
        if holds and "any" not in names:
            kinds = tuple(k for k in kinds if k in names or (k == "number" and "integer" in names))
    return kinds


def kind_of(value: Json) -> JsonType:
    """Give the type of a JSON value; integers are numbers."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"


def json_text(value: Json) -> str:
    """Write a value as grammars write it: compact, in UTF-8."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _unevaluated(case: Case, kind: JsonType, inner: Schema) -> Case:
    if kind == "object":
        listed = frozenset(name for names in case.seen_names for name in names.listed)
        patterns = frozenset(p for names in case.seen_names for p in names.patterns)
        if any(names.is_rest for names in case.seen_names):
            return case
        rest = Every(Names(listed, patterns, is_rest=True), goal_of(inner))
        return case & Case((rest,), seen_names=(Names(is_rest=True),))
    if any(seen.num_items is None for seen in case.seen_items):
        return case
    # An item is looked at where it is one of those that a `contains` asks for.
    found = (seen.goal for seen in case.seen_items if seen.goal is not None)
    contained = [schema for goal in found for schema, _ in goal]
    goal = goal_of(inner.documents.any_of([*contained, inner]) if contained else inner)
    first = max((seen.num_items or 0 for seen in case.seen_items), default=0)
    return case & Case((ItemsFrom(first, goal),), seen_items=(SeenItems(None),))


def _type_cases(types: list[str], kind: JsonType, holds: bool) -> Cases:
    if kind in types or "any" in types:
        return ALWAYS if holds else NEVER
    if kind == "number" and "integer" in types:
        one = frozenset((Decimal(1),))
        return fact(
            Number(NumberBounds(is_integer=True) if holds else NumberBounds(non_multiples=one))
        )
    return NEVER if holds else ALWAYS


def _absorbed(cases: Cases) -> Cases:
    """Leave out each case that says all that another says, and more."""
    if not 1 < len(cases) <= MAX_ABSORBED:
        return cases
    facts = [(frozenset(case.facts), case.seen_names, case.seen_items) for case in cases]
    return tuple(
        case
        for case, (own, *seen) in zip(cases, facts, strict=True)
        if not any(other < own and seen == other_seen for other, *other_seen in facts)
    )


def _any(parts: Iterable[Cases]) -> Cases:
    return tuple(dict.fromkeys(case for part in parts for case in part))


def _is_possible(facts: tuple[Fact, ...]) -> bool:
    """Say whether no two facts contradict each other at first sight."""
    required = {f.name for f in facts if isinstance(f, Required)}
    low, high = 0, None
    values: set[str] | None = None
    for each in facts:
        match each:
            case Size():
                low = max(low, each.low)
                if each.high is not None:
                    high = each.high if high is None else min(high, each.high)
            case OneOf(texts, is_negated=False):
                values = set(texts) if values is None else values & set(texts)
                if not values:
                    return False
            case Every(Names(listed, is_rest=False), goal) if required & listed:
                if any(isinstance(s.value, bool) and s.value is not holds for s, holds in goal):
                    return False
    return high is None or low <= high


def _order(literal: tuple[Schema, bool]) -> tuple[str, str, bool]:
    schema, holds = literal
    return schema.base, schema.pointer, not holds
