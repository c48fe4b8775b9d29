"""The manifest's table, ids in access lists, what operators are told, and what an import costs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
import pytest

import dragoman_discord
from dragoman import Secret
from dragoman_discord.config import DiscordConfig
from dragoman_discord.platform import CAPABILITIES
from dragoman_discord.setup import PERMISSIONS
from peers.discord_fake import TOKEN, DiscordFake

README = Path(__file__).parents[3] / "plugins" / "discord" / "README.md"
SECRET = Secret("env DISCORD_TOKEN", TOKEN)


@pytest.mark.parametrize(
    ("value", "accepted"),
    [
        (TOKEN, True),
        ("M" * 26 + ".Gabcde." + "x-_" * 12, True),
        ("Bot " + TOKEN, False),
        (TOKEN + "\n", False),
        ("123456:" + "A" * 35, False),
        ("", False),
    ],
)
def test_fc_cfg_01_only_a_bot_token_looks_like_one(value: str, accepted: bool) -> None:
    pattern = attrs.fields(DiscordConfig).token.metadata["pattern"]
    assert bool(re.fullmatch(pattern, value)) is accepted


@pytest.mark.parametrize(
    "changes",
    [
        {"api_url": "discord.com"},
        {"api_url": "wss://x"},
        {"api_url": "https://me:pw@x"},
        {"api_url": "https://x?y=1"},
        {"interactions_key": "ab"},
        {"interactions_key": "x" * 64},
        {"commands_guild": "my server"},
    ],
)
def test_values_that_cannot_work_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be"):
        DiscordConfig(token=SECRET, **changes)


@pytest.mark.parametrize("list_name", ["owners", "users", "channels"])
def test_ids_are_numbers_and_names_are_not(list_name: str) -> None:
    assert DiscordConfig.check_id(list_name, "123456789012345678") is None
    for wrong in ("ada", "#general", "@ada#1234", "12345", "-100123456789012345", ""):
        problem = DiscordConfig.check_id(list_name, wrong)
        assert problem is not None
        assert "Copy" in problem or "copy" in problem


def test_every_key_is_in_the_readme_with_its_default() -> None:
    """E3."""
    section = README.read_text().split("## Configuration\n")[1].split("\n## ")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \|([^|]*)\|", section, re.MULTILINE))
    fields = attrs.fields_dict(DiscordConfig)
    assert list(rows) == list(fields)
    for name, field in fields.items():
        assert field.metadata["help"]
        if field.default is not attrs.NOTHING and field.default != "":
            assert rows[name].strip(" `") == str(field.default).replace("True", "true").replace(
                "False", "false"
            )


def test_the_readme_says_what_the_bot_can_do_as_the_code_does() -> None:
    """C3: every figure of the table is one of the code's."""
    section = README.read_text().split("## Capabilities\n")[1].split("\n## ")[0]
    shown = dict(re.findall(r"^\| ([\w ]+?) +\| ([^|]*?) +\|", section, re.MULTILINE))
    assert CAPABILITIES.files is not None
    for name, figure in (
        ("text", f"{CAPABILITIES.max_text} characters"),
        ("files out", f"{CAPABILITIES.files.size >> 20} MiB"),
        ("files in", f"{(CAPABILITIES.fetch or 0) >> 20} MiB"),
        ("buttons", f"up to {CAPABILITIES.buttons}"),
        ("typing", f"every {CAPABILITIES.typing_interval:g} s"),
        ("pace", f"{CAPABILITIES.edit_interval:g} s"),
        ("repeated sends", f"{CAPABILITIES.idempotent_window:g} s"),
    ):
        assert figure in shown[name], name


def test_the_component_says_how_to_set_it_up() -> None:
    [component] = dragoman_discord.dragoman_platforms()
    assert component.name == "discord"
    assert "Message Content Intent" in component.setup
    assert f"permissions={PERMISSIONS}" in component.setup
    assert f"permissions={PERMISSIONS}" in README.read_text()


def test_importing_it_brings_no_vendor_code() -> None:
    script = "import sys, dragoman_discord; print(' '.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert loaded & {"httpx2", "httpcore2", "wsproto", "cryptography", "starlette"} == set()


@pytest.mark.anyio
async def test_a_probe_says_what_is_set_up_and_what_is_not(
    fake: DiscordFake, open_bot: Any
) -> None:
    async with open_bot() as bot:
        alone = await bot.probe()
        fake.add_guild()
        together = await bot.probe()
    assert [each.level for each in alone] == ["ok", "ok", "warning", "ok"]
    assert {each.level for each in together} == {"ok"}
    assert not any(fake.connections)
    assert {call.verb for call in fake.calls} == {"GET"}


@pytest.mark.anyio
async def test_a_probe_names_what_is_wrong_and_what_to_do(open_bot: Any, fake: DiscordFake) -> None:
    limit = {"total": 1000, "remaining": 3, "reset_after": 1}
    answer = {"url": fake.gateway_url, "session_start_limit": limit}
    async with open_bot() as bot:
        fake.answer("get_gateway_bot", 200, answer)
        fake.answer("get_current_application", 200, {"id": "5", "flags": 0})
        findings = await bot.probe()
        fake.fail("get_current_user", 401)
        [refused] = await bot.probe()
    assert [each.level for each in findings] == ["ok", "problem", "warning", "warning"]
    assert all(each.remedy for each in [*findings[1:], refused])
    assert "message_content = false" in findings[1].remedy
    assert refused.level == "problem"
