"""Properties of the splitter, over generated Markdown in many scripts."""

import json
import os
import re
import subprocess
import sys
import time
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.capabilities import LengthUnit
from dragoman.render.split import split
from dragoman.render.text import is_blank
from rendering.__main__ import judged
from rendering.documents import CJK, COMBINING, EMOJI, LATIN, make
from rendering.mutants import MUTANTS

KINDS = {
    *("between", "prose", "cjk", "rtl", "emoji", "combining", "broken", "long word", "links"),
    *("emphasis", "nested list", "code", "long line of code", "code that shows blocks"),
    *("code in a list", "table", "long rows", "table in a list", "quote"),
}
FRAGMENTS = [
    *["```", "~~~", "`", "``````", "```py\n", "\n```\n", "\n~~~\n", "**", "[x](", ")"],
    *["\n", "\r\n", " ", "\t", "    ", "- ", "10. ", "> ", "z" * 40],
    *["\ud83d", "\udc88", "\u200b", "\u0301", "\u0600"],
    *["\N{NO-BREAK SPACE}", "\N{IDEOGRAPHIC SPACE}", *EMOJI, *COMBINING, *CJK, *LATIN],
]
noise = st.lists(st.sampled_from(FRAGMENTS), max_size=120).map("".join)
MARKS = ["```", "~~~", "`", "``", "````", "**", " ", " ", "\n", "- x ", "word", "z" * 30]
marked_lines = st.lists(st.sampled_from(MARKS), max_size=80).map(
    lambda pieces: "w " + "".join(pieces).replace("\n", "\nw ")
)
limits = st.integers(64, 400) | st.sampled_from([64, 65, 500, 2000, 4096]) | st.integers(64, 40_000)
units = st.sampled_from(list(LengthUnit))
quick = settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))


def command(first, last, *, core="", most=3):
    paths = [core, *sys.path] if core else sys.path
    return subprocess.Popen(
        [sys.executable, "-m", "rendering", str(first), str(last), "--most", str(most)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path)},
        stdout=subprocess.PIPE,
    )


def outcome(process):
    report, _ = process.communicate()
    return json.loads(report)


def assert_all_is_well(*found):
    cuts = sum((Counter(figures["cuts"]) for figures in found), Counter())
    print("cut through:", *(f"{kind} {count}," for kind, count in cuts.most_common()))
    assert [wrong for figures in found for wrong in figures["wrong"]] == []
    assert {kind for kind in KINDS if cuts[kind] < 10} == set()
    assert all(ratio >= 3 for figures in found for ratio in figures["longest"].values())


def test_parts_are_within_the_limit_balanced_and_lose_nothing():
    """B6, FC-SPL-02, FC-SPL-04, FC-MKD-02: as another parser and Unicode see 1,000 documents.

    In three units and for limits from 64 to 40,000, at the length of several parts each: every
    grapheme is kept and none is cut, code keeps its language and stays code, tables are tables
    with all their columns, links are whole.
    """
    assert_all_is_well(judged(range(1000)))


@pytest.mark.proof
@pytest.mark.timeout(900)
def test_proof_with_a_hundred_thousand_documents():
    began, half = time.monotonic(), 51_000
    found = [outcome(one) for one in [command(2000, half), command(half, 102_000)]]
    totals = {
        name: sum(one[name] for one in found) for name in ("documents", "parts", "characters")
    }
    print(f"{totals} in {time.monotonic() - began:.0f} s")
    assert_all_is_well(*found)
    assert totals["documents"] == 100_000


@pytest.mark.proof
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_broken_splitter_is_noticed(mutant, tmp_path):
    mutant.write(tmp_path)
    found = outcome(command(0, 600, core=str(tmp_path), most=30))
    assert any(mutant.symptom in wrong for wrong in found["wrong"])


def check_parts(text, limit, unit):
    parts = split(text, limit, unit.measure)
    assert all(unit.measure(part) <= limit for part in parts)
    assert not any(is_blank(part, limit) for part in parts)
    assert len(parts) <= 4 * unit.measure(text) / limit + 8
    return parts


@quick
@given(noise, limits, units)
def test_fc_spl_01_hostile_text_ends_within_the_limit_and_the_number_of_parts(text, limit, unit):
    check_parts(text, limit, unit)


@quick
@given(marked_lines, st.integers(64, 300), units)
def test_marks_inside_lines_are_text_and_none_is_lost(text, limit, unit):
    parts = check_parts(text, limit, unit)
    assert "".join("".join(parts).split()) == "".join(text.split())


@pytest.mark.parametrize("first", range(0, 400, 100))
def test_a_length_that_conversion_makes_uneven_is_still_a_limit(first):
    """The platform counts after conversion: marks and addresses vanish, signs are escaped."""

    def length(markdown):
        shown = re.sub(r"\*\*|`+|~~", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", markdown))
        return LengthUnit.UTF16.measure(re.sub(r"['(!]", "&#39;", shown))

    for document in map(make, range(first, first + 100)):
        parts = split(document.text, document.limit, length)
        assert all(length(part) <= document.limit for part in parts)


def test_a_text_that_fits_is_one_part_and_stays_as_it_is():
    for document in map(make, range(300)):
        text = document.text
        assert split(text, len(text.encode("utf-8", "replace")) + 8, len) == [text.rstrip()]
