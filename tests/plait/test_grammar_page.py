"""docs/grammars.md says what the code does."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from plait.runtime.grammar.explain import ASSERTED

HERE = Path(__file__).parent


def load() -> ModuleType:
    """Import the page's script by its path."""
    spec = importlib.util.spec_from_file_location("grammar_page", HERE / "grammar_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


page = load()


def keys(value: object) -> Iterator[str]:
    """Give every key inside a schema."""
    if isinstance(value, dict):
        yield from value
        for inner in value.values():
            yield from keys(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from keys(inner)


def test_the_page_is_what_the_code_does() -> None:
    text = page.PAGE.read_text()
    # If this fails, run tests/plait/grammar_page.py, and look at what has changed.
    assert page.stable(page.rendered(text)) == page.stable(text)


def test_every_keyword_is_on_the_page() -> None:
    assert set(keys(list(page.PROBES.values()))) >= ASSERTED


def test_the_exact_rows_say_so() -> None:
    text = page.PAGE.read_text()
    for exact in ("minLength", "contains", "oneOf", "dependentSchemas", "$dynamicRef"):
        rows = [line for line in text.splitlines() if f'"{exact}"' in line and line[0] == "|"]
        assert rows, exact
        assert all(line.endswith("| exact |") for line in rows), exact
