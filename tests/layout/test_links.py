"""Every relative link in the repository's pages leads to something."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)|href=\"([^\"]+)\"|src=\"([^\"]+)\"")


def links(text: str) -> list[str]:
    """Give the targets of relative links, without their anchors."""
    found = ("".join(groups) for groups in LINK.findall(text))
    return [target.partition("#")[0] for target in found if "://" not in target]


def test_links_are_found() -> None:
    assert links('[a](b.md#c) [d](https://e) <a href="f/">') == ["b.md", "f/"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_relative_link_leads_somewhere(page: Path) -> None:
    targets = [page.parent / target for target in links(page.read_text()) if target]
    assert [str(target) for target in targets if not target.exists()] == []
