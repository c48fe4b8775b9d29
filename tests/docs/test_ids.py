"""Every requirement, invariant and field case that code or tests cite is explained in the docs."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "guarantees.md"
REQUIREMENT = re.compile(r"\b[A-E]\d{1,2}\b")
INVARIANT = re.compile(r"\binvariants? (\d{1,2}(?:(?:, | and )\d{1,2})*)", re.IGNORECASE)
CASE = re.compile(r"(?<![A-Za-z])fc[-_]([a-z0-9]{3})[-_](\d{2})", re.IGNORECASE)
DOCSTRING = re.compile(r'"""(.*?)"""', re.DOTALL)
ROW = re.compile(
    r'^\| <a id="([\w-]+)"></a>([\w -]+) \| (.*?) \|(?: (.*?) \|)?$',
    re.MULTILINE,
)


def cited(text):
    """The ids in a source file: requirements only where docstrings name them."""
    found = {f"FC-{kind.upper()}-{number}" for kind, number in CASE.findall(text)}
    for docstring in DOCSTRING.findall(text):
        found.update(REQUIREMENT.findall(docstring))
    for numbers in INVARIANT.findall(text):
        found.update(f"invariant {number}" for number in re.findall(r"\d+", numbers))
    return found


def citations(*folders):
    """Which files of some folders cite each id."""
    found = {}
    for folder in folders:
        for path in (ROOT / folder).rglob("*.py"):
            if path != Path(__file__):
                for name in cited(path.read_text()):
                    found.setdefault(name, []).append(str(path.relative_to(ROOT)))
    return found


@pytest.fixture(scope="module")
def states():
    """What the page says of each id; a field case has no state."""
    return {name: state for _, name, _, state in ROW.findall(PAGE.read_text())}


def test_every_cited_id_is_explained(states):
    found = citations("tests", "core", "plugins", "benchmarks")
    assert {name: places for name, places in found.items() if name not in states} == {}


def test_what_is_said_to_hold_is_cited_by_a_test(states):
    """And so is every field case: the page says that a test shows each."""
    found = citations("tests")
    proven = [name for name, state in states.items() if state.startswith("holds") or not state]
    assert [name for name in proven if name not in found] == []


def test_each_promise_has_one_of_three_states(states):
    for name, state in states.items():
        if name.startswith("FC-"):
            assert not state, name
        else:
            assert re.match(r"holds(;|$)|partly: |not yet(: |$)", state), name


def test_every_row_has_an_anchor_of_its_own():
    rows = ROW.findall(PAGE.read_text())
    assert [(anchor, name) for anchor, name, _, _ in rows if anchor != name.replace(" ", "-")] == []
    assert len({anchor for anchor, *_ in rows}) == len(rows)
    assert len(rows) == PAGE.read_text().count("<a id=")


def test_no_promise_is_missing(states):
    letters = {"A": 12, "B": 16, "C": 8, "D": 14, "E": 6}
    wanted = {f"{letter}{n}" for letter, last in letters.items() for n in range(1, last + 1)}
    wanted |= {f"invariant {number}" for number in range(1, 18)}
    assert wanted == {name for name in states if not name.startswith("FC-")}


def test_ids_are_found_where_they_are_cited():
    text = '"""B2, invariants 3 and 14: x."""\ndef test_fc_prf_01_two_bots(): ...'
    assert cited(text) == {"B2", "invariant 3", "invariant 14", "FC-PRF-01"}
