"""Token healing on the default model: borders in its own tokens."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from plait import State, function, gen
from plait.interpreter.backends.local import LocalBackend
from plait.runtime.config import EngineConfig
from plait.runtime.load.store import DEFAULT_MODEL, Store, default_home
from plait.runtime.model.interface import Model
from plait.runtime.model.registry import load_model

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def model() -> Model:
    stored = Store(default_home()).find(DEFAULT_MODEL)
    if stored is None:
        pytest.skip(f"needs `plait pull {DEFAULT_MODEL}`")
    return load_model(stored.path, EngineConfig(kv_cache_tokens=4096, max_context=1024))


@pytest.fixture(scope="module")
def backend(model: Model) -> Iterator[LocalBackend]:
    backend = LocalBackend(model, EngineConfig(kv_cache_tokens=4096, max_context=1024))
    yield backend
    backend.close()


def said(backend: LocalBackend, text: str, **options: object) -> str:
    @function
    def write(s: State) -> None:
        s += text + gen("x", temperature=0, max_tokens=6, **options)  # type: ignore[arg-type]

    return str(write.options(backend=backend).run()["x"])


def test_the_models_own_tokens_come_over_the_border(backend: LocalBackend, model: Model) -> None:
    assert len(model.tokenizer.encode("://")) == 1
    assert said(backend, "The url is http:").startswith("//")
    assert said(backend, "The url is http:", heal=False)[:2] != "//"


@pytest.mark.parametrize(
    ("country", "capital"), [("France", "Paris"), ("Italy", "Rome"), ("Japan", "Tokyo")]
)
def test_a_blank_at_the_end_does_not_matter(
    backend: LocalBackend, country: str, capital: str
) -> None:
    text = f"The capital of {country} is"
    plain = said(backend, text, heal=False)
    assert plain.startswith(f" {capital}")
    assert said(backend, text) == plain
    assert said(backend, f"{text} ") == plain[1:]
    assert not said(backend, f"{text} ", heal=False).startswith(capital)


@pytest.mark.parametrize(
    ("text", "option", "expected"),
    [
        ("The url is http:", {"regex": r"//[a-z.]+"}, "//www."),
        ("The capital of France is ", {"choices": ["Rome", "Paris", "London"]}, "Paris"),
        ("The capital of France is ", {"regex": "[A-Z][a-z]{4}"}, "Paris"),
        ("Two and two make ", {"grammar": 'start: "four" | "five"'}, "four"),
    ],
)
def test_a_grammar_begins_after_the_text(
    backend: LocalBackend, text: str, option: dict[str, object], expected: str
) -> None:
    assert said(backend, text, **option).startswith(expected)


def test_indentation_is_spelled_in_smaller_tokens(backend: LocalBackend, model: Model) -> None:
    """In code, the last blank of an indentation belongs to the word after it."""
    text = "def double(x):\n    return 2 * x\n\ndef triple(x):\n    "
    assert said(backend, text).startswith("return ")
    whole = model.tokenizer.encode(text + "return")
    assert whole[:-1] != model.tokenizer.encode(text)
