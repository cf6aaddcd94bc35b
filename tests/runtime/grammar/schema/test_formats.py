"""Formats hold what their standards allow, as the JSON-Schema-Test-Suite judges it."""

from __future__ import annotations

import datetime
import ipaddress
import json
import random
import uuid

import pytest

from plait.runtime.grammar.build import build_language
from plait.runtime.grammar.language import Language
from plait.runtime.grammar.schema.formats import format_language

from .words import Words, suite

WORDS = Words()
NAMES = [
    "date", "time", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "uri",
    "uri-reference", "uri-template", "uuid", "json-pointer", "relative-json-pointer",
]  # fmt: skip
LEFT_OUT = {"time": ":60", "date-time": ":60", "hostname": "xn--"}  # leap seconds, Punycode


def language(name: str, is_wide: bool = False) -> Language:
    expr = format_language(name, is_wide)
    assert expr is not None
    return build_language(expr, WORDS.languages)


@pytest.mark.parametrize("name", NAMES)
def test_the_suite_agrees_but_for_what_is_left_out(name: str) -> None:
    found = language(name)
    for case in suite(f"optional/format/{name}.json"):
        if isinstance(case.data, str):
            is_left_out = name in LEFT_OUT and LEFT_OUT[name] in case.data
            assert WORDS.holds(found, case.data) == (case.is_valid and not is_left_out), case


@pytest.mark.parametrize("name", NAMES)
def test_the_wide_form_leaves_nothing_valid_out(name: str) -> None:
    languages, found = WORDS.languages, language(name, is_wide=True)
    for case in suite(f"optional/format/{name}.json"):
        assert not isinstance(case.data, str) or not case.is_valid or WORDS.holds(found, case.data)
    more = languages.both((language(name), languages.negate(found)))
    assert name == "email" or not WORDS.is_live(more)  # the search takes seconds there


@pytest.mark.parametrize(
    "name", ["regex", "iri", "iri-reference", "idn-email", "idn-hostname", "unknown", "phone"]
)
def test_other_formats_are_left_to_a_check(name: str) -> None:
    assert format_language(name) is None


def samples(name: str, count: int = 40) -> list[str]:
    chance = random.Random(7)
    found = language(name)
    return [WORDS.sample(found, chance) for _ in range(count)]


def test_every_date_of_the_calendar_is_held_and_no_other() -> None:
    found = language("date")
    for year in (1, 4, 100, 400, 1900, 2000, 2023, 2024, 2100, 9996, 9999):
        for month in range(14):
            for day in (0, 1, 27, 28, 29, 30, 31, 32):
                text = f"{year:04}-{month:02}-{day:02}"
                try:
                    is_date = bool(datetime.date(year, month, day))
                except ValueError:
                    is_date = False
                assert WORDS.holds(found, text) == is_date, text
    assert not WORDS.holds(found, "0000-01-01")


def test_python_reads_the_dates_and_addresses() -> None:
    for text in samples("date"):
        datetime.date.fromisoformat(text)
    for text in samples("ipv4"):
        ipaddress.IPv4Address(text)
    for text in samples("ipv6", 300):
        ipaddress.IPv6Address(text)
    for text in samples("uuid"):
        uuid.UUID(text)


def test_python_agrees_on_ipv6_addresses_with_errors() -> None:
    chance, found = random.Random(3), language("ipv6")
    for _ in range(400):
        text = "".join(chance.choice([":", ":", "::", "1", "ab", "0"]) for _ in range(13))
        try:
            is_address = bool(str(ipaddress.IPv6Address(text)))
        except ValueError:
            is_address = False
        assert WORDS.holds(found, text) == is_address, text


@pytest.mark.parametrize("name", NAMES)
def test_a_random_walk_never_gets_stuck(name: str) -> None:
    for text in samples(name, 10):
        assert WORDS.holds(language(name), text), json.dumps(text)


@pytest.mark.parametrize(
    ("name", "text", "is_held"),
    [
        ("hostname", ".".join(["a" * 63] * 3 + ["b" * 61]), True),
        ("hostname", ".".join(["a" * 63] * 3 + ["b" * 62]), False),
        ("hostname", "a-.b", False),
        ("hostname", "ab--c", False),
        ("hostname", "a--b", True),
        ("hostname", "abc--d", True),
        ("hostname", "ab-d", True),
        ("email", "a" * 64 + "@b.c", True),
        ("email", "a" * 65 + "@b.c", False),
        ("email", r'"a\"b"@b.c', True),
        ("email", 'a"b@b.c', False),
        ("time", "23:59:59.000001+23:59", True),
        ("date-time", "2024-02-29T00:00:00z", True),
        ("date-time", "2024-02-29 00:00:00Z", False),
        ("uri", "a:", True),
        ("uri", "http://a]/", False),
        ("uri-reference", "a//b", True),
        ("json-pointer", "/\ue000", True),
    ],
)  # fmt: skip
def test_known_texts(name: str, text: str, is_held: bool) -> None:
    assert WORDS.holds(language(name), text) == is_held
