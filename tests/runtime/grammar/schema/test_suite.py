"""The JSON-Schema-Test-Suite: what is not right has a name, and nothing strict is wrong."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import pytest

from plait.runtime.errors import RequestError
from plait.runtime.grammar.pool import Pool
from plait.runtime.grammar.spec import SchemaOptions

from ..tokens import BYTES
from .schemas import Texts, texts_of
from .words import SuiteCase, remotes, suite, suite_folder

pytestmark = pytest.mark.slow

# The dialect of this file says that it asserts nothing; dialects are not read.
NO_ASSERTIONS = "metaschema-no-validation"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one case; `texts` None: the schema was refused."""

    case: SuiteCase
    texts: Texts | None
    is_accepted: bool

    @property
    def is_right(self) -> bool:
        return self.texts is not None and self.is_accepted == self.case.is_valid

    def __str__(self) -> str:
        return f"{self.case.about}: {self.case.schema} {self.case.data!r}"


class Judge:
    """Compiles each schema of the suite once."""

    def __init__(self, **options: bool) -> None:
        self._options = partial(SchemaOptions, registry=remotes(), **options)
        self._known: dict[str, Texts | None] = {}
        self._pool = Pool(BYTES)

    def texts(self, schema: object) -> Texts | None:
        """Give the texts of a schema; None if it is refused."""
        key = json.dumps(schema)
        if key not in self._known:
            try:
                self._known[key] = texts_of(schema, self._options(), self._pool)
            except RequestError:
                self._known[key] = None
        return self._known[key]

    def verdict(self, case: SuiteCase) -> Verdict:
        """Judge a case."""
        texts = self.texts(case.schema)
        return Verdict(case, texts, texts is not None and texts.holds(case.data))


@pytest.fixture(scope="module")
def cases() -> list[SuiteCase]:
    names = sorted(path.name for path in (suite_folder() / "draft2020-12").glob("*.json"))
    return [case for name in names for case in suite(name)]


@pytest.fixture(scope="module")
def verdicts(cases: list[SuiteCase]) -> list[Verdict]:
    judge = Judge()
    return [judge.verdict(case) for case in cases]


def test_most_of_the_suite_is_right(verdicts: list[Verdict]) -> None:
    assert sum(verdict.is_right for verdict in verdicts) >= 0.95 * len(verdicts)


def test_no_schema_of_the_suite_is_refused(verdicts: list[Verdict]) -> None:
    assert [str(verdict) for verdict in verdicts if verdict.texts is None] == []


def test_what_is_wrongly_accepted_is_checked_at_the_end(verdicts: list[Verdict]) -> None:
    wrong = [v for v in verdicts if v.is_accepted and not v.case.is_valid]
    assert [str(v) for v in wrong if v.texts is not None and not v.texts.checked] == []


def test_nothing_is_wrongly_accepted_in_strict_mode(cases: list[SuiteCase]) -> None:
    judge = Judge(is_strict=True)
    verdicts = [judge.verdict(case) for case in cases]
    assert [str(v) for v in verdicts if v.is_accepted and not v.case.is_valid] == []
    assert sum(verdict.is_right for verdict in verdicts) >= 0.85 * len(verdicts)


def test_what_is_wrongly_rejected_is_another_spelling_or_a_format(verdicts: list[Verdict]) -> None:
    free = Judge(is_any_order=True)
    wrong = [v for v in verdicts if v.case.is_valid and not v.is_accepted]
    assert [str(verdict) for verdict in wrong if not _has_reason(verdict.case, free)] == []


def _has_reason(case: SuiteCase, free: Judge) -> bool:
    source = json.dumps(case.schema)
    if '"format"' in source or NO_ASSERTIONS in source:
        return True
    texts = free.texts(case.schema)
    return texts is not None and any(texts.holds(value) for value in _spellings(case.data))


def _spellings(data: object) -> Iterator[object]:
    """Give equal values: with integers as floats and back, and a listed object's other orders."""
    yield data
    yield json.loads(json.dumps(data), parse_float=lambda text: int(float(text)))
    yield json.loads(json.dumps(data), parse_int=float)
    if isinstance(data, dict):
        yield from map(dict, itertools.permutations(data.items()))
