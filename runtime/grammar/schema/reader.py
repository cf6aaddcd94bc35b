"""Schemas read for one type of value at a time: all keywords come to cases of facts."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ...errors import RequestError
from ..build import build_language
from ..expr import Expr
from ..language import Language
from ..pool import Pool
from .cases import Merger, any_of, by_place, type_cases, with_rest
from .documents import Documents, Schema, bad_schema
from .ecma import parse_ecma
from .facts import (
    ALWAYS,
    NEVER,
    TYPES,
    Case,
    Cases,
    Goal,
    JsonType,
    OneOf,
    Size,
    fact,
)  # fmt: skip
from .keywords import KEYWORDS
from .kinds import json_text, kind_of

MAX_CASES = 400  # of one schema and one type

_DECISIVE = frozenset(("type", "enum", "const"))  # read first: they often decide alone
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


class TooManyCases(RequestError):
    """A schema comes to more cases than a mask can be made of in time."""

    def __init__(self, reason: str) -> None:
        super().__init__("grammar_budget", f"grammar too large: schema: {reason}")


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
        self._merger = Merger()
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
        literals = sorted(goal, key=by_place)
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

        Raises: TooManyCases.
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
            found = self._merger.merge(found, part)
            if not found:
                break
            if len(found) > MAX_CASES:
                raise TooManyCases(f"{schema}/{keyword} comes to more than {MAX_CASES} cases")
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
        found = any_of(parts)
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
                return type_cases(self.types(schema), kind, holds)
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
            return self.all_of(schema, keyword, each(True)) if holds else any_of(each(False))
        if keyword == "anyOf":
            if not holds:
                return self.all_of(schema, keyword, each(False))
            return self._any_tracked(schema, options, kind) if tracks else any_of(each(True))
        if holds:
            try:
                return any_of(self._only(schema, options, i, kind, tracks) for i in everywhere)
            except TooManyCases:
                reason = "that only one of the options matches is validated at the end"
                self.note_checked(schema, keyword, reason)
                return any_of(each(True))
        pairs = ((i, j) for i in everywhere for j in range(i))
        two = [self.all_of(schema, keyword, each(True, *pair)) for pair in pairs]
        return (*self.all_of(schema, keyword, each(False)), *any_of(two))

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
        return any_of(found)

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
        return tuple(with_rest(case, kind, inner) for case in cases)
