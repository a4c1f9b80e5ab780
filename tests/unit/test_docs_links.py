"""Pages name pages, files and headings that are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "adapters" / "README.md",
    ROOT / "notifiers" / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]


def links(page: Path) -> list[str]:
    """The targets in this repository, of links outside of code."""
    text = re.sub(r"^```.*?^```|`[^`\n]*`", "", page.read_text(), flags=re.M | re.DOTALL)
    return [t for t in re.findall(r"\]\(([^)\s]+)\)", text) if not re.match(r"\w+:", t)]


def anchors(page: Path) -> set[str]:
    """The headings as links name them: lower case, spaces as hyphens, punctuation gone."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in headings}


def broken(page: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = page.parent / path if path else page
    return not target.exists() or bool(anchor and anchor not in anchors(target))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_leads_to_something(page: Path):
    assert [link for link in links(page) if broken(page, link)] == []


def test_links_are_found_and_a_broken_one_is_noticed(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text("# A `b`: c\n[x](#a-b-c) [y](gone.md) [z](#gone) `[c](code.md)` [w](https://w)")

    assert links(page) == ["#a-b-c", "gone.md", "#gone"]
    assert [link for link in links(page) if broken(page, link)] == ["gone.md", "#gone"]
    assert sum(len(links(page)) for page in PAGES) > 10
