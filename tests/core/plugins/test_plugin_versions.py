"""The check of version ranges, against the reference implementation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet

from dragoman.plugins.versions import admits, required_range

RELEASES = st.lists(st.integers(0, 3), min_size=1, max_size=4).map(
    lambda numbers: ".".join(map(str, numbers))
)
PLAIN = st.tuples(st.sampled_from(["==", "!=", "<=", ">=", "<", ">"]), RELEASES).map("".join)
PREFIX = st.tuples(st.sampled_from(["==", "!="]), RELEASES).map(lambda p: f"{p[0]}{p[1]}.*")
COMPATIBLE = RELEASES.filter(lambda text: "." in text).map("~={}".format)
SPECIFIERS = st.lists(st.one_of(PLAIN, PREFIX, COMPATIBLE), max_size=3).map(",".join)
SUFFIXES = st.sampled_from(["", "a1", "b2", "rc1", ".dev3", ".post1", "rc1.dev2"])


@given(SPECIFIERS, RELEASES)
def test_final_releases_are_judged_like_the_reference_does(specifiers: str, version: str) -> None:
    assert admits(specifiers, version) == SpecifierSet(specifiers).contains(version)


@given(st.one_of(PLAIN, COMPATIBLE), SUFFIXES, RELEASES, SUFFIXES)
def test_nothing_is_excluded_that_an_installer_would_admit(
    specifier: str, suffix: str, version: str, running: str
) -> None:
    reference = SpecifierSet(specifier + suffix)
    if reference.contains(version + running, prereleases=True):
        assert admits(specifier + suffix, version + running)


@pytest.mark.parametrize("specifiers", ["", " ", "=== 0.1.0", "nonsense", "== x.y"])
def test_what_cannot_be_judged_is_left_to_the_installer(specifiers: str) -> None:
    assert admits(specifiers, "0.1.0")
    assert admits(">=9", "unknown")


@pytest.mark.parametrize(
    ("requirement", "wanted"),
    [
        ("dragoman>=0.1,<0.2", ">=0.1,<0.2"),
        ("Dragoman (>=0.1, <0.2)", ">=0.1,<0.2"),
        ("dragoman[testing] ~= 0.1.0", "~=0.1.0"),
        ("dragoman", ""),
        ("dragoman-telegram>=0.1", ""),
        ("dragoman>=9; extra == 'next'", ""),
        ("dragoman @ file:///somewhere/dragoman.whl", ""),
        ("another>=1", ""),
    ],
)
def test_the_range_is_read_from_a_requirement(requirement: str, wanted: str) -> None:
    assert required_range([requirement], "dragoman") == wanted
