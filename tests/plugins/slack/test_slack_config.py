"""The manifest's table, ids in access lists, what set-up prints, and what a probe finds."""

from __future__ import annotations

import re
import subprocess
import sys
from itertools import takewhile
from typing import Any

import attrs
import pytest

from dragoman import Secret
from dragoman_slack import SETUP
from dragoman_slack.config import SlackConfig
from dragoman_slack.manifest import APP_MANIFEST, EVENTS, SCOPES
from peers.slack_fake import SlackFake

BOT, APP = Secret("env BOT", "xoxb-123-abc"), Secret("env APP", "xapp-1-abcdef")
SIGNING = Secret("env SIGNING", "0123456789abcdef")


@pytest.mark.parametrize(
    ("field", "value", "accepted"),
    [
        ("bot_token", "xoxb-1234-abcd", True),
        ("bot_token", "xoxp-1234-abcd", False),
        ("bot_token", "Bearer xoxb-1234-abcd", False),
        ("bot_token", "xoxb-1234-abcd\n", False),
        ("app_token", "xapp-1-A1-2-ab", True),
        ("app_token", "xoxb-1234-abcd", False),
        ("signing_secret", "0123456789abcdef", True),
        ("signing_secret", "", False),
    ],
)
def test_fc_cfg_01_only_tokens_look_like_tokens(field: str, value: str, accepted: bool) -> None:
    pattern = attrs.fields_dict(SlackConfig)[field].metadata["pattern"]
    assert bool(re.fullmatch(pattern, value)) is accepted


@pytest.mark.parametrize(
    "changes",
    [
        {"app_token": None},
        {"mode": "http", "signing_secret": None},
        {"api_url": "slack.com/api"},
        {"api_url": "https://me:pw@slack.com/api"},
        {"connections": 0},
        {"connections": 11},
        {"command": "/dragoman"},
        {"command": ""},
        {"path": "slack"},
        {"ping_interval": 0},
        {"prompts": ("a", "b", "c", "d", "e")},
        {"prompts": (" ",)},
    ],
)
def test_fc_aut_06_values_that_cannot_work_are_refused(changes: dict[str, Any]) -> None:
    """FC-AUT-06: without the signing secret there is no HTTP mode."""
    given = {"bot_token": BOT, "app_token": APP, "signing_secret": SIGNING, **changes}
    with pytest.raises(ValueError, match=r"must be|needs"):
        SlackConfig(**given)
    SlackConfig(bot_token=BOT, mode="http", signing_secret=SIGNING)


def test_fc_aut_06_the_manifest_says_what_is_missing(tmp_path: Any) -> None:
    """FC-AUT-06: with the line, before anything starts."""
    from dragoman import ManifestError
    from dragoman.manifest.load import read
    from dragoman.plugins.catalogue import Catalogue

    (tmp_path / "dragoman.toml").write_text(
        'manifest = 1\n[platforms.slack]\nbot_token = { env = "BOT" }\nmode = "http"\n'
        '[runtimes.echo]\n[profiles.default]\nruntime = "echo"\n'
        '[access]\nowners = ["slack:U0ADA"]\n'
    )
    with pytest.raises(ManifestError) as error:
        read(tmp_path / "dragoman.toml", Catalogue.installed(), {"BOT": "xoxb-1234-abcd"})
    text = "\n".join(error.value.problems)
    assert "signing_secret" in text
    assert "the workspace is missing" in text


@pytest.mark.parametrize(
    ("list_name", "native_id", "problem"),
    [
        ("users", "T0ABC:U0ADA", None),
        ("owners", "E0ABC:W0ADA", None),
        ("channels", "T0ABC:C0ABC", None),
        ("channels", "T0ABC:D0ABC", None),
        ("channels", "T0ABC:C0ABC:1700000010.000100", None),
        ("channels", "T0ABC", None),
        ("channels", "C0ABC", "workspace is missing"),
        ("users", "U0ADA", "workspace is missing"),
        ("users", "T0ABC:C0ABC", "a person on Slack"),
        ("users", "ada", "a person on Slack"),
        ("channels", "general", "a channel on Slack"),
        ("users", "T0ABC:USLACKBOT", "Slack's own bot"),
        ("bots", "T0ABC:USLACKBOT", "Slack's own bot"),
        ("bots", "T0ABC:U0PEER", None),
        ("channels", "T0ABC:U0ADA", "a channel on Slack"),
    ],
)
def test_ids_in_access_lists_are_explained(
    list_name: str, native_id: str, problem: str | None
) -> None:
    """FC-AUT-02: what stands for anybody at all is nobody."""
    found = SlackConfig.check_id(list_name, native_id)
    assert (found is None) if problem is None else (found and problem in found)


def test_every_field_says_what_it_is_for() -> None:
    assert all(field.metadata["help"] for field in attrs.fields(SlackConfig))


def test_registering_imports_no_http_client() -> None:
    code = (
        "import dragoman_slack, sys; "
        "sys.exit(any(name in sys.modules for name in ('httpx2', 'wsproto')))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def below(key: str) -> list[str]:
    """The list that stands below a key of the app's manifest."""
    lines = APP_MANIFEST.splitlines()
    found = lines[lines.index(next(one for one in lines if one.strip() == f"{key}:")) + 1 :]
    depth = len(found[0]) - len(found[0].lstrip())
    items = takewhile(lambda one: one.startswith(" " * depth + "- "), found)
    return [one.strip("- ") for one in items]


def test_what_set_up_prints_asks_for_what_the_probe_looks_for() -> None:
    assert below("bot") == list(SCOPES)
    assert below("bot_events") == list(EVENTS)
    assert "socket_mode_enabled: true" in APP_MANIFEST
    assert all(re.fullmatch(r"(  )*(- )?\S.*", line) for line in APP_MANIFEST.splitlines())
    assert APP_MANIFEST in SETUP


@pytest.mark.anyio
async def test_a_probe_finds_what_is_missing_and_changes_nothing(
    fake: SlackFake, open_app: Any
) -> None:
    async with open_app() as slack:
        good = await slack.probe()
        fake.refuse("apps.connections.open", "not_allowed_token_type")
        bad = await slack.probe()
    async with open_app(bot_token=Secret("env X", "xoxb-wrong-wrong")) as slack:
        worst = await slack.probe()
    assert [one.level for one in good] == ["ok", "ok", "ok"]
    assert "problem" in {one.level for one in bad}
    assert worst[0].level == "problem"
    assert all(one.remedy for one in (*bad, *worst) if one.level == "problem")
    assert not fake.sockets
    asked = {call.method for call in fake.calls}
    assert asked == {"auth.test", "apps.connections.open"}


@pytest.mark.anyio
async def test_a_probe_names_each_scope_that_is_missing(host: Any) -> None:
    from dragoman_slack.platform import open_slack
    from peers.slack_fake import App

    few = App(scopes=frozenset({"chat:write", "im:history"}))
    with SlackFake(app=few) as fake:
        config = SlackConfig(
            bot_token=Secret("x", few.bot_token),
            signing_secret=SIGNING,
            mode="http",
            api_url=fake.url,
        )
        async with open_slack(config, host) as slack:
            found = await slack.probe()
    missing = [one for one in found if "lacks the scope" in one.text]
    assert len(missing) == len(SCOPES) - 2
    assert {one.level for one in missing} == {"problem", "warning"}
