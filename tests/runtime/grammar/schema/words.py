"""Ask languages for texts, and the JSON-Schema-Test-Suite for its cases."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from plait.runtime.grammar.budget import Budget
from plait.runtime.grammar.derive import Derivatives
from plait.runtime.grammar.language import Language, is_nullable
from plait.runtime.grammar.languages import Languages

SUITE = "shared/data/json-schema-test-suite"
REMOTES_URI = "http://localhost:1234/"


class Words:
    """A pool of languages, and what is in them."""

    def __init__(self) -> None:
        self.languages = Languages(Budget(timeout_s=600.0, max_states=10**9))
        self._derivatives = Derivatives(self.languages, self.languages.sets.all)

    def holds(self, language: Language, text: str) -> bool:
        """Say whether a text is in a language; all that leads nowhere must be noticed."""
        for char in text:
            code = ord(char)
            targets = [
                target
                for chars, target in self._derivatives.row(language)
                if any(low <= code <= high for low, high in chars.ranges)
            ]
            assert len(targets) < 2, "the sets of a row overlap"
            if not targets or not self._derivatives.is_live(targets[0]):
                return False
            language = targets[0]
        return is_nullable(language)

    def is_live(self, language: Language) -> bool:
        """Say whether any text is in a language."""
        return self._derivatives.is_live(language)

    def sample(self, language: Language, chance: random.Random, p_stop: float = 0.2) -> str:
        """Walk through a language at random until it may end and chance says so."""
        text = ""
        while not is_nullable(language) or chance.random() > p_stop:
            row = [p for p in self._derivatives.row(language) if self.is_live(p[1])]
            if not row:
                break
            chars, language = chance.choice(row)
            low, high = chance.choice(chars.ranges)
            text += chr(chance.randint(low, high))
            assert len(text) < 10_000, "no end is found by chance"
        assert is_nullable(language), f"nothing follows {text!r}"
        return text


@dataclass(frozen=True, slots=True)
class SuiteCase:
    """One test of the suite."""

    schema: Any  # an object, true or false
    about: str
    data: object
    is_valid: bool


def suite(name: str) -> list[SuiteCase]:
    """Read a file of the JSON-Schema-Test-Suite; skip the test where it is not at hand."""
    path = suite_folder() / "draft2020-12" / name
    groups = json.loads(path.read_text(encoding="utf-8"))
    return [
        SuiteCase(
            group["schema"], f"{group['description']}: {t['description']}", t["data"], t["valid"]
        )
        for group in groups
        for t in group["tests"]
    ]


def remotes() -> tuple[tuple[str, str], ...]:
    """Read the schemas that those of the suite refer to, by URI."""
    folder = suite_folder() / "remotes"
    return tuple(
        (REMOTES_URI + path.relative_to(folder).as_posix(), path.read_text(encoding="utf-8"))
        for path in sorted(folder.rglob("*.json"))
    )


def suite_folder() -> Path:
    """Find the JSON-Schema-Test-Suite; skip the test where it is not at hand."""
    return shared(SUITE, "the JSON-Schema-Test-Suite")


def shared(path: str, name: str) -> Path:
    """Find what is shared between checkouts; skip the test, by name, where it is not at hand."""
    places = (parent / path for parent in Path(__file__).resolve().parents)
    found = next((place for place in places if place.exists()), None)
    if found is None:
        pytest.skip(f"needs {name} at {path}")
    return found
