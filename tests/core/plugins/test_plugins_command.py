"""`dragoman plugins`."""

from __future__ import annotations

import argparse
import json
from typing import Any

import pytest

from dragoman.cli import plugins
from dragoman.plugins import discover as discovery


def command(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    plugins.configure(parser)
    return plugins.run(parser.parse_args(arguments))


@pytest.fixture
def only_site(site: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(discovery, "discover", site.discover)
    return site


def test_sound_plugins_are_listed_and_the_exit_code_is_zero(
    only_site: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    only_site.install("acme-irc", "1.2", {"irc": "acme_irc"})
    assert command() == 0
    shown = capsys.readouterr()
    assert shown.out.splitlines()[1].split() == ["irc", "acme-irc", "1.2", "ok"]
    assert shown.err == ""


def test_a_problem_is_shown_with_its_remedy_and_the_exit_code_is_one(
    only_site: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    only_site.install("acme", entries={"irc": "acme"})
    only_site.install("other", entries={"irc": "other"})
    assert command() == 1
    assert "claimed by acme 1.0 (acme) and other 1.0 (other) — uninstall" in capsys.readouterr().out


def test_json_holds_everything(only_site: Any, capsys: pytest.CaptureFixture[str]) -> None:
    only_site.install("acme", "1.0", {"irc": "acme"})
    only_site.install("acme", "0.9", {"irc": "acme"})
    assert command("--format", "json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["plugins"] == [
        {
            "name": "irc",
            "distribution": "acme",
            "version": "1.0",
            "module": "acme",
            "problem": None,
            "remedy": "",
        }
    ]
    assert "installed more than once" in shown["warnings"][0]
