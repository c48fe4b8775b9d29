"""The product's own client and gateway, on a server that nobody of this project wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from peers.gateway import Gateway
from peers.yepcord import Yepcord

MANIFEST = """
manifest = 1

[platforms.discord]
token = {{ env = "DISCORD_TOKEN" }}
api_url = "{api}"
commands_guild = "{guild}"

[runtimes.echo]
prefix = "echo: "

[profiles.default]
runtime = "echo"
busy = "queue"
recovery = "retry"

[access]
owners = ["discord:{anna}"]
"""


@pytest.fixture
def gateway(yepcord: Yepcord, tmp_path: Path) -> Gateway:
    """A gateway that is not started yet."""
    manifest = MANIFEST.format(api=yepcord.api_url, guild=yepcord.guild_id, anna=yepcord.anna.id)
    return Gateway(tmp_path / "deployment", manifest, {"DISCORD_TOKEN": yepcord.bot.token})


def until_connected(yepcord: Yepcord) -> None:
    yepcord.wait_for(lambda: yepcord.shim.gateway.sessions, 20)


def until_answered(yepcord: Yepcord, channel: str, text: str) -> None:
    """Wait until the bot has said something; nobody is asked meanwhile."""

    def said() -> bool:
        calls = yepcord.calls("POST", f"/channels/{channel}/messages")
        return any(call.status == 200 and text in str(call.payload) for call in calls)

    yepcord.wait_for(said, 30)
    assert text in yepcord.anna.texts(channel)


def test_a_mention_a_reply_and_a_direct_message_are_answered(
    yepcord: Yepcord, room: str, gateway: Gateway
) -> None:
    """C3: the real path, from manifest to what a person sees."""
    anna, me = yepcord.anna, yepcord.bot.id
    with gateway:
        until_connected(yepcord)
        anna.say(room, f"<@{me}> one")
        until_answered(yepcord, room, "echo: one")
        answer = anna.messages(room)[-1]
        anna.reply(answer, "two")
        until_answered(yepcord, room, "echo: two")
        direct = anna.conversation()
        anna.say(direct, "three")
        until_answered(yepcord, direct, "echo: three")


@pytest.mark.parametrize("end", [Gateway.stop, Gateway.kill], ids=["SIGTERM", "SIGKILL"])
def test_what_is_said_while_the_gateway_is_down_is_answered(
    yepcord: Yepcord, room: str, gateway: Gateway, end
) -> None:
    """B7, B8: the session is resumed by the next process."""
    anna, me = yepcord.anna, yepcord.bot.id
    wanted = []
    with gateway:
        until_connected(yepcord)
        for number in range(9):
            anna.say(room, f"<@{me}> {number}")
            wanted.append(f"echo: {number}")
            if number == 2:
                until_answered(yepcord, room, "echo: 0")
                end(gateway)
            if number == 5:
                gateway.start()
        until_answered(yepcord, room, wanted[-1])
    assert [text for text in anna.texts(room) if text.startswith("echo")] == wanted
