"""Secrets: three sources, no literal, and no message that shows what was read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dragoman import ManifestError
from dragoman.manifest.load import read
from dragoman.manifest.problems import UnusableError
from dragoman.manifest.secrets import LITERAL, SecretReader

if TYPE_CHECKING:
    from conftest import Reader, SmallCatalogue


def problem_of(source: object, base: Path = Path("/nowhere"), **environ: str) -> str:
    with pytest.raises(UnusableError) as caught:
        SecretReader(base, environ).read(source)
    return str(caught.value)


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("{0}\n", id="newline"),
        pytest.param("  {0}\t\r\n", id="blanks"),
    ],
)
def test_fc_cfg_01_white_space_around_a_secret_is_stripped(value: str, canary: str) -> None:
    secret = SecretReader(Path(), {"TOKEN": value.format(canary)}).read({"env": "TOKEN"})
    assert secret.reveal() == canary
    assert canary not in repr(secret)
    assert secret.origin == "env:TOKEN"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ('"{0}"', "quotes around"),
        ("'{0}'", "quotes around"),
        ("\ufeff{0}", "byte order mark"),
        ("", "is empty"),
        (" \n", "is empty"),
        ("Bearer {0}", "white space inside"),
        ("{0}\n{0}", "white space inside"),
        ("Use this token to access the HTTP API:\n{0}", "white space inside"),
        ("{0}\u200b{0}", "cannot be printed"),
        ("pa$$word${{{0}", "nothing is expanded"),
        ("${{OTHER}}{0}", "nothing is expanded"),
    ],
)
@pytest.mark.parametrize("source", ["env", "file", "credential"])
def test_fc_cfg_01_fc_cfg_02_a_spoilt_secret_is_refused_without_being_shown(
    tmp_path: Path, canary: str, value: str, reason: str, source: str
) -> None:
    text = value.format(canary)
    (tmp_path / "TOKEN").write_text(text, encoding="utf-8", newline="")
    message = problem_of(
        {source: "TOKEN"}, tmp_path, TOKEN=text, CREDENTIALS_DIRECTORY=str(tmp_path)
    )
    assert reason in message
    assert canary not in message


@pytest.mark.parametrize("source", ["canary-canary", 3, True, ["canary-canary"]])
def test_a_literal_is_refused_with_the_three_ways_to_write_it(source: object) -> None:
    assert problem_of(source) == LITERAL


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ({}, "exactly one source"),
        ({"env": "A", "file": "b"}, "exactly one source"),
        ({"env": "A", "canary-canary": "b"}, "exactly one of env, file, credential"),
        ({"env": 3}, "env takes a name"),
        ({"file": " "}, "file takes a name"),
        ({"env": "8675309:canary-canary"}, "takes the name of an environment variable"),
        ({"env": "sk_canary_canary"}, "environment variable (named here) is not set"),
        ({"env": "TELEGRAM_TOKEN"}, "environment variable TELEGRAM_TOKEN is not set"),
        ({"file": "8675309:canary-canary"}, "the file does not exist"),
        ({"file": "can\0ary"}, "the file cannot be read"),
        ({"credential": "../canary"}, "not a path"),
        ({"credential": ".."}, "not a path"),
        ({"credential": "canary"}, "$CREDENTIALS_DIRECTORY is not set"),
    ],
)
def test_a_source_that_gives_nothing_is_explained_without_what_may_be_a_paste(
    source: object, reason: str
) -> None:
    """FC-CFG-04: people paste the secret where its name belongs."""
    message = problem_of(source)
    assert reason in message
    assert "canary" not in message


def test_an_unreadable_file_says_why(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / "large").write_text("x" * 70_000)
    assert "not UTF-8" in problem_of({"file": "binary"}, tmp_path)
    assert "64 KiB" in problem_of({"file": "large"}, tmp_path)
    assert "not a regular file" in problem_of({"file": "."}, tmp_path)


def test_a_credential_comes_from_the_service_managers_directory(
    tmp_path: Path, canary: str
) -> None:
    (tmp_path / "bot.token").write_text(canary + "\n")
    reader = SecretReader(Path("/nowhere"), {"CREDENTIALS_DIRECTORY": str(tmp_path)})
    assert reader.read({"credential": "bot.token"}).reveal() == canary
    assert reader.exposed == []


@pytest.mark.parametrize(("mode", "warned"), [(0o600, 0), (0o640, 1), (0o604, 1)])
def test_a_file_that_others_can_read_is_a_warning_at_its_line(
    read_text: Reader, good: str, tmp_path: Path, canary: str, mode: int, warned: int
) -> None:
    file = tmp_path / "token"
    file.write_text(canary)
    file.chmod(mode)
    found = read_text(good.replace('env = "TOKEN"', 'file = "token"'))
    assert found.problems == ()
    assert [str(each) for each in found.warnings] == [
        f"dragoman.toml:3: platforms.chat.token.file: other users can read {file}; chmod 600 it"
    ] * warned


def test_a_secret_of_the_wrong_form_is_refused_with_what_it_should_look_like(
    read_text: Reader, good: str
) -> None:
    found = read_text(good, TOKEN="xoxb-canary-canary")
    assert [each.message for each in found.problems] == [
        "the value of env:TOKEN does not fit: looks like 123456:AA…"
    ]


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ('token = "${TG_TOKEN}"', "platforms.chat.token"),
        ('token = { env = "${TG_TOKEN}" }', "platforms.chat.token.env"),
        ('token = { env = "TOKEN" }\nlabels = { a = "x ${A} y" }', "platforms.chat.labels.a"),
    ],
)
@pytest.mark.parametrize("environ", [{}, {"TG_TOKEN": ""}, {"TG_TOKEN": "123456:canary_canary"}])
def test_fc_cfg_02_nothing_is_expanded_anywhere_and_each_place_is_one_problem(
    read_text: Reader, good: str, line: str, path: str, environ: dict[str, str]
) -> None:
    found = read_text(good.replace('token = { env = "TOKEN" }', line), **environ)
    assert [each.path for each in found.problems] == [path]
    assert "is not expanded here" in found.problems[0].message


def test_fc_cfg_02_strings_in_arrays_of_tables_count_too(read_text: Reader, good: str) -> None:
    found = read_text(good + '[[routes]]\nprofile = "default"\nuser = "${ME}"\n')
    assert [each.path for each in found.problems] == ["routes[0].user"]


def test_fc_cfg_04_what_is_read_is_handed_over_for_redaction(
    tmp_path: Path, catalogue: SmallCatalogue, good: str, canary: str
) -> None:
    path = tmp_path / "dragoman.toml"
    path.write_text(good)
    loaded = read(path, catalogue, {"TOKEN": canary})
    assert [each.reveal() for each in loaded.secrets] == [canary]
    assert canary not in repr(loaded)


def test_fc_cfg_04_a_secret_elsewhere_in_the_file_is_taken_out_of_messages(
    tmp_path: Path, catalogue: SmallCatalogue, good: str, canary: str
) -> None:
    path = tmp_path / "dragoman.toml"
    path.write_text(good.replace("[runtimes.plain]", f'[runtimes.plain]\nplugin = "{canary}"'))
    with pytest.raises(ManifestError) as caught:
        read(path, catalogue, {"TOKEN": canary})
    assert len(caught.value.problems) == 1
    assert canary not in str(caught.value)
