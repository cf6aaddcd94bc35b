"""Cases folded into shapes."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import TypeAlias, cast

from ..derive import Derivatives
from ..language import Language, is_nullable
from ..words import others, words
from .facts import (
    Case,
    Contains,
    Every,
    Goal,
    ItemAt,
    ItemsFrom,
    JsonType,
    NameIn,
    NameOutside,
    Names,
    Number,
    OneOf,
    Required,
    Size,
    Some,
    Text,
    Unique,
)  # fmt: skip
from .judge import Judge
from .numbers import NumberBounds, number_language
from .reader import Reader
from .shapes import ArrayShape, ObjectShape, Plain, Quoted, Shape

# With the texts of the only values that it may be, if they are listed.
RawShape: TypeAlias = tuple[ArrayShape | ObjectShape, tuple[str, ...] | None]
Texts: TypeAlias = tuple[str, ...]  # the only values, as they are written
Folded: TypeAlias = Shape | Texts


class Folder:
    """Folds the cases of goals into shapes, and judges values by them."""

    def __init__(self, reader: Reader, derivatives: Derivatives) -> None:
        self._reader = reader
        self.languages = self._languages = reader.languages
        self._derivatives = derivatives
        self._judge = Judge(self)
        self._shapes: dict[tuple[Goal, JsonType], tuple[Shape, ...]] = {}
        self._raw_shapes: dict[tuple[Goal, JsonType], tuple[RawShape, ...]] = {}
        self.bounds: set[NumberBounds] = set()  # of all numbers so far
        self._everys: dict[ObjectShape, tuple[dict[str, list[Goal]], list[Every]]] = {}

    def shapes(self, goal: Goal, kind: JsonType) -> tuple[Shape, ...]:
        """Give the shapes of the values of a type that meet the goal."""
        found = self._shapes.get((goal, kind))
        if found is None:
            found = self._shapes[goal, kind] = self._joined(self._folded(goal, kind))
        return found

    def _folded(self, goal: Goal, kind: JsonType) -> list[Folded]:
        if kind in ("array", "object"):
            return [self._chosen(shape, kept) for shape, kept in self.raw_shapes(goal, kind)]
        return [self._fold(case, kind) for case in self._reader.goal_cases(goal, kind)]

    def texts(self, goal: Goal) -> Language:
        """Give the decoded texts of the strings that meet the goal."""
        languages = self._languages
        cases = self._reader.goal_cases(goal, "string")
        return languages.union(self._text(case) for case in cases)

    def has_name(self, names: Names, name: str) -> bool:
        """Say whether a name is among `names`."""
        is_found = name in names.listed or any(map(self.matches_text(name), names.patterns))
        return is_found != names.is_rest

    def matches(self, language: Language, text: str) -> bool:
        """Say whether a text is in a language."""
        if language is self._languages.anything:
            return True
        for char in text:
            row = self._derivatives.row(language)
            code = ord(char)
            targets = (t for chars, t in row if any(a <= code <= b for a, b in chars.ranges))
            language = next(targets, self._languages.nothing)
        return is_nullable(language)

    def num_texts(self, language: Language, most: int) -> int:
        """Count the texts of a language, up to `most`."""
        found, ways = 0, {language: 1}
        while ways and found < most:
            found += sum(count for each, count in ways.items() if is_nullable(each))
            after: dict[Language, int] = {}
            for each, count in ways.items():
                for chars, target in self._derivatives.row(each):
                    if self._derivatives.is_live(target):
                        num_chars = sum(high - low + 1 for low, high in chars.ranges)
                        after[target] = after.get(target, 0) + count * num_chars
            ways = after
        return min(found, most)

    def matches_text(self, text: str) -> Callable[[Language], bool]:
        """Give the question whether a language has `text`."""
        return lambda language: self.matches(language, text)

    def raw_shapes(self, goal: Goal, kind: JsonType) -> tuple[RawShape, ...]:
        """Give the shapes of arrays and objects before they are narrowed to listed values."""
        found = self._raw_shapes.get((goal, kind))
        if found is None:
            make = _array if kind == "array" else self._object
            cases = self._reader.goal_cases(goal, kind)
            pairs = ((make(case), _chosen_texts(case)) for case in cases)
            found = tuple((shape, kept) for shape, kept in pairs if shape is not None)
            self._raw_shapes[goal, kind] = found
        return found

    def _fold(self, case: Case, kind: JsonType) -> Plain | Quoted | Texts:
        match kind:
            case "null":
                return self._words(case, ["null"])
            case "boolean":
                return self._words(case, ["false", "true"])
            case "number":
                return self._number(case)
            case "string":
                return self._string(case)
            case _:
                raise AssertionError(kind)

    def _joined(self, folded: list[Folded]) -> tuple[Shape, ...]:
        """Make one shape of all that are texts, and one of all that are strings."""
        languages = self._languages
        lists = [s for s in folded if isinstance(s, tuple)]
        plain = [s.language for s in folded if isinstance(s, Plain)]
        quoted = [s.language for s in folded if isinstance(s, Quoted)]
        shapes: list[Shape] = [s for s in folded if isinstance(s, ArrayShape | ObjectShape)]
        found = tuple(dict.fromkeys(text for texts in lists for text in texts))
        if plain:
            shapes.append(Plain(languages.union((*plain, words(found, languages)))))
        elif lists:
            shapes.append(Plain(words(found, languages), found))
        if quoted:
            shapes.append(Quoted(languages.union(quoted)))
        return tuple(shapes)

    def _words(self, case: Case, texts: list[str]) -> Texts:
        kept = _chosen_texts(case)
        refused = _refused_texts(case)
        allowed = [t for t in texts if (kept is None or t in kept) and t not in refused]
        return tuple(allowed)

    def _number(self, case: Case) -> Plain | Texts:
        bounds = NumberBounds()
        for each in case.facts:
            if isinstance(each, Number):
                bounds = bounds & each.bounds
        bounds = bounds.excluding(frozenset(map(Decimal, _refused_texts(case))))
        kept = _chosen_texts(case)
        if kept is not None:
            return tuple(t for t in kept if bounds.admits(Decimal(t)))
        self.bounds.add(bounds)
        return self.number(bounds)

    def number(self, bounds: NumberBounds) -> Plain:
        """Give the numbers that keep to bounds."""
        memo = self._languages.memo
        if bounds not in memo:
            memo[bounds] = number_language(bounds, self._languages)
        return Plain(memo[bounds])

    def _text(self, case: Case) -> Language:
        found = self._string(case)
        if isinstance(found, Quoted):
            return found.language
        return words(map(_decoded, found), self._languages)

    def _string(self, case: Case) -> Quoted | Texts:
        languages = self._languages
        kept, refused = _chosen_texts(case), _refused_texts(case)
        facts = [each.language for each in case.facts if isinstance(each, Text)]
        if refused:
            facts.append(others(map(_decoded, refused), languages))
        language = languages.both(facts)
        if kept is None:
            return Quoted(language)
        return tuple(t for t in kept if self.matches(language, _decoded(t)))

    def _chosen(self, shape: ArrayShape | ObjectShape, kept: Texts | None) -> Folded:
        """Narrow a shape to the listed values, if there is a list."""
        if kept is None:
            return shape
        return tuple(t for t in kept if self._judge.has_shape(shape, json.loads(t)))

    def _object(self, case: Case) -> ObjectShape | None:
        size = _size(case)
        if size is None:
            return None
        facts = case.facts
        everys = tuple(each for each in facts if isinstance(each, Every))
        required = dict.fromkeys(each.name for each in facts if isinstance(each, Required))
        own = (each.names.listed for each in everys if not each.names.is_rest)
        listed = dict.fromkeys(name for names in own for name in names)
        names = self._languages.both(each.language for each in facts if isinstance(each, NameIn))
        return ObjectShape(
            listed=tuple({**listed, **required}),
            everys=everys,
            somes=tuple(each for each in facts if isinstance(each, Some)),
            required=frozenset(required),
            names=names,
            outside=tuple(each.language for each in facts if isinstance(each, NameOutside)),
            low=max(size[0], len(required)),
            high=size[1],
        )

    def property_goal(self, shape: ObjectShape, name: str) -> Goal:
        """Give what the value of a property must meet."""
        found = self._everys.get(shape)
        if found is None:
            found = self._everys[shape] = _by_name(shape.everys)
        named, others = found
        goals = [each.goal for each in others if self.has_name(each.names, name)]
        return frozenset().union(*named.get(name, ()), *goals)


def _by_name(everys: tuple[Every, ...]) -> tuple[dict[str, list[Goal]], list[Every]]:
    """Give what is wanted of each name, and what is wanted of more than listed ones."""
    named: dict[str, list[Goal]] = {}
    others: list[Every] = []
    for each in everys:
        if each.names.is_rest or each.names.patterns:
            others.append(each)
        else:
            for name in each.names.listed:
                named.setdefault(name, []).append(each.goal)
    return named, others


def _decoded(text: str) -> str:
    return cast("str", json.loads(text))


def _array(case: Case) -> ArrayShape | None:
    size = _size(case)
    if size is None:
        return None
    facts = case.facts
    return ArrayShape(
        ats=tuple(each for each in facts if isinstance(each, ItemAt)),
        froms=tuple(each for each in facts if isinstance(each, ItemsFrom)),
        contains=tuple(each for each in facts if isinstance(each, Contains)),
        low=size[0],
        high=size[1],
        unique=next((each.place for each in facts if isinstance(each, Unique)), None),
    )


def _size(case: Case) -> tuple[int, int | None] | None:
    sizes = [each for each in case.facts if isinstance(each, Size)]
    low = max((size.low for size in sizes), default=0)
    high = min((size.high for size in sizes if size.high is not None), default=None)
    return None if high is not None and low > high else (low, high)


def _chosen_texts(case: Case) -> tuple[str, ...] | None:
    lists = [each.texts for each in case.facts if isinstance(each, OneOf) and not each.is_negated]
    if not lists:
        return None
    return tuple(text for text in lists[0] if all(text in other for other in lists[1:]))


def _refused_texts(case: Case) -> tuple[str, ...]:
    lists = [each.texts for each in case.facts if isinstance(each, OneOf) and each.is_negated]
    return tuple(dict.fromkeys(text for texts in lists for text in texts))
