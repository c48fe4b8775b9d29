"""What the tests of the pages share."""

import re
from pathlib import Path

import pytest


@pytest.fixture
def root():
    """The root of the tree."""
    return Path(__file__).resolve().parents[2]


@pytest.fixture
def pages(root):
    """Every page that people read."""
    folders = (root / "docs", root / "core", root / "plugins", root / "changelog.d")
    found = [page for folder in folders for page in folder.rglob("*.md")]
    return [root / "README.md", root / "CONTRIBUTING.md", *found]


@pytest.fixture
def blocks(root):
    """Return the fenced blocks of one language in a page."""

    def find(page, language):
        text = (root / page).read_text()
        return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)

    return find
