"""Every requirement, invariant and field case that code or tests cite is explained in the docs."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENT = re.compile(r"\b[A-E]\d{1,2}\b")
INVARIANT = re.compile(r"\binvariants? (\d{1,2}(?:(?:, | and )\d{1,2})*)", re.IGNORECASE)
CASE = re.compile(r"(?<![A-Za-z])fc[-_]([a-z0-9]{3})[-_](\d{2})", re.IGNORECASE)
DOCSTRING = re.compile(r'"""(.*?)"""', re.DOTALL)


def cited(text):
    """The ids in a source file: requirements only where docstrings name them."""
    found = {f"FC-{kind.upper()}-{number}" for kind, number in CASE.findall(text)}
    for docstring in DOCSTRING.findall(text):
        found.update(REQUIREMENT.findall(docstring))
    for numbers in INVARIANT.findall(text):
        found.update(f"invariant {number}" for number in re.findall(r"\d+", numbers))
    return found


def explained():
    """The ids that the page on guarantees gives a line of its own."""
    text = (ROOT / "docs" / "guarantees.md").read_text()
    rows = re.findall(r"^\| ([A-E]\d{1,2}|FC-[A-Z0-9]{3}-\d{2}) \|", text, re.MULTILINE)
    return {*rows, *re.findall(r"\*\*(invariant \d{1,2})\*\*", text)}


def test_every_cited_id_is_explained():
    missing = {}
    for folder in ("tests", "core", "plugins", "benchmarks"):
        for path in (ROOT / folder).rglob("*.py"):
            if path != Path(__file__):
                for name in cited(path.read_text()) - explained():
                    missing.setdefault(name, []).append(str(path.relative_to(ROOT)))
    assert missing == {}


def test_all_seventeen_invariants_are_explained():
    assert {f"invariant {number}" for number in range(1, 18)} <= explained()


def test_ids_are_found_where_they_are_cited():
    text = '"""B2, invariants 3 and 14: x."""\ndef test_fc_prf_01_two_bots(): ...'
    assert cited(text) == {"B2", "invariant 3", "invariant 14", "FC-PRF-01"}
