"""Ids: one form for all spellings, and an explanation for what is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dragoman.manifest.ids import access_entry, route_id
from dragoman.manifest.problems import UnusableError

if TYPE_CHECKING:
    from conftest import Reader


@pytest.mark.parametrize(
    "written",
    [
        -1001500000001,
        "-1001500000001",
        " -1001500000001 ",
        "chat:-1001500000001",
        "chat: -1001500000001",
    ],
)
def test_fc_cfg_03_integers_and_strings_are_one_id(written: object) -> None:
    assert access_entry(written, "channels", {"chat": None}) == "chat:-1001500000001"
    if ":" not in str(written):
        assert route_id(written) == "-1001500000001"


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("-", "the number after it is missing"),
        ("chat:-", "the number after it is missing"),
        ("*", "would let everybody in"),
        ("chat:*", "would let everybody in"),
        ("@owner_name", "names grant nothing"),
        ("chat:@owner_name", "names grant nothing"),
        ("chat:Owner Name", "names grant nothing"),
        ("owner_name", 'expected "kind:id"'),
        ("", "is empty"),
        ("  ", "is empty"),
        ("chat:", "after chat: is empty"),
        ("chat:T1:", "after chat: is empty"),
        (":12", 'expected "kind:id"'),
        (True, "expected an id, got a boolean"),
        (1.5, "expected an id, got a float"),
        ({"id": 1}, "expected an id, got a table"),
    ],
)
def test_fc_aut_01_fc_cfg_03_what_is_no_immutable_id_is_explained(
    written: object, reason: str
) -> None:
    """B10: default deny, and only ids open."""
    with pytest.raises(UnusableError, match=r".*") as caught:
        access_entry(written, "users", {"chat": None})
    assert reason in str(caught.value)


@pytest.mark.parametrize("entry", ["slack:T1:U2", "matrix:@a:example.org", "chat:a+b=c/d"])
def test_ids_of_several_parts_are_kept(entry: str) -> None:
    assert access_entry(entry, "users", {"chat": None}) == entry


def test_a_bare_number_belongs_to_the_only_kind_and_is_ambiguous_with_two() -> None:
    assert access_entry(7, "users", {"chat": None}) == "chat:7"
    with pytest.raises(UnusableError, match='"chat:7" or "mail:7"'):
        access_entry(7, "users", {"chat": None, "mail": None})


def test_a_platform_speaks_about_its_own_ids_and_only_those(read_text: Reader, good: str) -> None:
    found = read_text(
        good.replace("[runtimes", "[platforms.other]\n[runtimes")
        + 'channels = ["chat:100", "other:100", "chat:-100"]\n'
    )
    assert [str(each) for each in found.problems] == [
        "dragoman.toml:10: access.channels[0]: probably missing -100"
    ]


def test_a_check_that_fails_is_a_problem_and_not_a_crash() -> None:
    def broken(list_name: str, native_id: str) -> str | None:
        raise KeyError(native_id)

    with pytest.raises(UnusableError, match="check of this id failed"):
        access_entry("chat:1", "users", {"chat": broken})
