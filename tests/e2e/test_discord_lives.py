"""A whole gateway on Discord, through stops and kills, while people go on talking."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from peers.discord_fake import DiscordFake
from peers.gateway import Gateway

MANIFEST = """
manifest = 1

[platforms.discord]
token = {{ env = "DISCORD_TOKEN" }}
api_url = "{api}"

[runtimes.echo]
prefix = "echo: "

[profiles.default]
runtime = "echo"
busy = "queue"
recovery = "retry"

[access]
owners = ["discord:{person}"]
"""


@pytest.fixture
def fake():
    with DiscordFake(heartbeat=0.5) as server:
        yield server


@pytest.fixture
def ada(fake: DiscordFake) -> int:
    return fake.person("Ada")


@pytest.fixture
def gateway(fake: DiscordFake, ada: int, tmp_path: Path) -> Gateway:
    """A gateway that is not started yet."""
    manifest = MANIFEST.format(api=fake.api, person=ada)
    return Gateway(tmp_path / "deployment", manifest, {"DISCORD_TOKEN": fake.token})


def until_connected(fake: DiscordFake) -> None:
    fake.until(lambda: any(each.connection is not None for each in fake.sessions), 20)


@pytest.mark.parametrize("end", [Gateway.stop, Gateway.kill], ids=["SIGTERM", "SIGKILL"])
def test_a_restart_in_the_midst_of_talk_loses_and_repeats_nothing(
    fake: DiscordFake, ada: int, gateway: Gateway, end: Callable[[Gateway], object]
) -> None:
    """C3, B7, B8: what was said before, during and after is answered once each, in order."""
    guild = fake.add_guild()
    thread = fake.open_thread(fake.add_channel(guild), ada, with_bot=True)
    places = [fake.add_channel(guild), thread, fake.dm(ada)]
    said: dict[int, list[str]] = {place: [] for place in places}

    def talk(when: str) -> None:
        for number in range(4):
            for place in places:
                text = f"{when} {number}"
                fake.say(place, ada, f"<@{fake.bot_id}> {text}")
                said[place].append(f"echo: {text}")

    def answered() -> bool:
        return all(len(fake.said_by_bot(place)) >= len(said[place]) for place in places)

    with gateway:
        until_connected(fake)
        talk("before")
        fake.until(lambda: len(fake.said_by_bot(places[0])) >= 2, 20)
        end(gateway)
        talk("while down")
        gateway.start()
        until_connected(fake)
        talk("after")
        fake.until(answered, 30)
    for place in places:
        assert fake.said_by_bot(place) == said[place]
    assert [frame.op for frame in fake.frames if frame.op in (2, 6)] == [2, 6]


def test_a_day_without_a_gateway_is_made_up_for(
    fake: DiscordFake, ada: int, gateway: Gateway
) -> None:
    """B2, B7: the session is long gone, so the history is read."""
    direct = fake.dm(ada)
    with gateway:
        until_connected(fake)
        fake.say(direct, ada, "one")
        fake.until(lambda: fake.said_by_bot(direct) == ["echo: one"], 20)
        gateway.stop()
        fake.end_sessions()
        fake.say(direct, ada, "two")
        fake.say(direct, ada, "three")
        gateway.start()
        fake.until(lambda: len(fake.said_by_bot(direct)) >= 3, 20)
    assert fake.said_by_bot(direct) == ["echo: one", "echo: two", "echo: three"]


def test_a_command_is_answered_in_its_own_place(
    fake: DiscordFake, ada: int, gateway: Gateway
) -> None:
    """B11: `/status` of Discord itself."""
    channel = fake.add_channel(fake.add_guild())
    with gateway:
        until_connected(fake)
        fake.until(lambda: "status" in fake.commands(), 20)
        used = fake.slash(channel, ada, "status")
        fake.until(lambda: used.answer == 5 and not used.thinking, 20)
    [answer] = fake.shown(channel)
    assert answer.author == fake.bot_id
    assert answer.text
