"""The tables of hazards name tests that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DEFINED = {
    name
    for path in (ROOT / "tests").rglob("test_*.py")
    for name in re.findall(r"^def (test_\w+)", path.read_text(), re.MULTILINE)
}


@pytest.mark.parametrize(
    "page", sorted((ROOT / "docs/adapters").glob("*.md")), ids=lambda p: p.name
)
def test_every_test_that_a_page_names_exists(page):
    named = re.findall(r"`(test_\w+)`", page.read_text())

    assert len(named) > 20
    assert [name for name in named if name not in DEFINED] == []
