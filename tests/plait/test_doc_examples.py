"""The Python blocks of the pages run when they are pasted, one after the other."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import plait

ROOT = Path(__file__).resolve().parents[2]
PAGES = (
    *(
        "docs/grammars.md",
        "docs/compiler.md",
        "docs/architecture.md",
        "docs/language.md",
        "docs/running.md",
    ),
    "README.md",
)
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


def says(prompt: str) -> str:
    if prompt.endswith("?\n"):
        return "42"
    return "12. May." if prompt.endswith(")") else 'search({"query":"x"})'


@pytest.fixture
def backend() -> Iterator[plait.Backend]:
    opened = plait.scripted(says, max_context=2048)
    plait.set_default_backend(opened)
    yield opened
    plait.set_default_backend(None)
    opened.close()


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """The names of a module that the blocks of a page are pasted into."""
    module = ModuleType("pasted")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return vars(module)


def paste(page: str, names: dict[str, object]) -> None:
    for block in BLOCK.findall((ROOT / page).read_text()):
        exec(compile(block, page, "exec"), names)


@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_page_run(
    page: str, backend: plait.Backend, names: dict[str, object]
) -> None:
    paste(page, names)


def test_the_grammar_in_the_syntax_of_ebnf_is_one() -> None:
    (source,) = re.findall(r"^```\n(root .*?)^```", (ROOT / PAGES[0]).read_text(), re.DOTALL | re.M)
    assert plait.Grammar(ebnf=source).match("((do it(12)))")


def test_the_program_with_captures_runs(backend: plait.Backend, names: dict[str, object]) -> None:
    paste("docs/grammars.md", names)
    captured = names["captured"]
    assert isinstance(captured, plait.Function)
    result = captured.run(temperature=0)
    assert (result["tool"], result["month"]) == ("search", "May")
    assert result["args"] == names["Args"]("x")  # type: ignore[operator]
    assert result.text().endswith("In May")
