"""Answers that one person sees: to commands of those who are not let in, to forms, to what is being
written; and what Discord tells of people's roles and of places."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from dragoman import Kind, Outbound, Place
from peers.discord_fake import DiscordFake

pytestmark = pytest.mark.anyio
NO = "This is not for you."
COMPLETION, MODAL = 4, 5


@pytest.fixture
def room(fake: DiscordFake) -> tuple[int, int]:
    """A channel, and somebody who talks in it."""
    return fake.add_channel(fake.add_guild()), fake.person("Mallory")


def whispered(fake: DiscordFake, room: tuple[int, int]) -> list[str]:
    return [one.displayed for one in fake.whispered(*room)]


async def test_fc_aut_03_who_is_turned_away_at_once_is_all_who_sees_it(
    fake: DiscordFake, live: Any, inbox: Any, room: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FC-AUT-03: nothing is shown to others, not even that an answer comes."""
    monkeypatch.setattr("dragoman_discord.interactions.DECIDED", 30.0)
    async with live() as bot:
        await fake.reached(lambda: fake.commands() == ["status", "stop"])
        used = fake.slash(*room, "status")
        [event] = await inbox.wait()
        await bot.typing(event.address)  # a whole exchange later
        await bot.answer(event, NO)
    assert event.answerable
    assert used.answer == 4
    assert whispered(fake, room) == [NO]
    assert fake.everything(room[0]) == fake.whispered(*room)


async def test_fc_aut_03_a_late_refusal_takes_away_that_an_answer_comes(
    fake: DiscordFake, live: Any, inbox: Any, room: Any
) -> None:
    """FC-AUT-03: also after a plugin took its time to decide."""
    async with live() as bot:
        await fake.reached(lambda: fake.commands() == ["status", "stop"])
        used = fake.slash(*room, "status")
        [event] = await inbox.wait()
        await fake.reached(lambda: used.thinking)
        await bot.answer(event, NO)
        again = fake.slash(*room, "stop")
        event = (await inbox.wait(2))[1]
        await bot.send(event.address, Outbound("d1", "stopped", reply_to=event.message_id))
    assert whispered(fake, room) == [NO]
    assert fake.said_by_bot(room[0]) == ["stopped"]
    assert not again.thinking


async def test_a_command_with_nothing_to_say_leaves_nothing_behind(
    fake: DiscordFake, live: Any, inbox: Any, room: Any
) -> None:
    async with live() as bot:
        await fake.reached(lambda: fake.commands() == ["status", "stop"])
        fake.slash(*room, "status")
        [event] = await inbox.wait()
        await bot.answer(event, "")
    assert (fake.shown(room[0]), whispered(fake, room)) == ([], [])


async def test_in_direct_messages_the_next_command_has_its_own_answer(
    fake: DiscordFake, live: Any, inbox: Any, room: Any
) -> None:
    """There an answer names no command: one that was answered privately is none of them."""
    direct = fake.dm(room[1])
    async with live() as bot:
        await fake.reached(lambda: fake.commands() == ["status", "stop"])
        fake.slash(direct, room[1], "status")
        [event] = await inbox.wait()
        await bot.answer(event, NO)
        fake.slash(direct, room[1], "stop")
        await inbox.wait(2)
        await bot.send(event.address, Outbound("d1", "stopped"))
    assert fake.said_by_bot(direct) == ["stopped"]


async def test_fc_aut_03_what_is_being_written_is_told_no_names(
    fake: DiscordFake, live: Any, inbox: Any, room: Any
) -> None:
    """FC-AUT-03: autocompletion is answered without choices, and core hears nothing of it."""
    async with live():
        await fake.reached(lambda: fake.commands() == ["status", "stop"])
        used = fake.complete(*room, "status", "arguments", "al")
        await fake.reached(lambda: used.choices == [])
    assert inbox.events == []


@pytest.mark.parametrize("below", [True, False])
async def test_fc_aut_03_a_form_is_a_press(
    fake: DiscordFake, live: Any, inbox: Any, room: Any, below: bool
) -> None:
    """FC-AUT-03: whoever sends one off is answered, whether it belongs to a message or not."""
    async with live() as bot:
        source = fake.say(*room, "look") if below else None
        used = fake.act(*room, MODAL, {"custom_id": "form", "components": []}, source=source)
        [event] = await inbox.wait(1, Kind.PRESS)
        await bot.answer(event, NO)
    assert (event.data, event.message_id) == ("form", str(source or used.id))
    assert whispered(fake, room) == [NO]


async def test_people_come_with_the_roles_that_a_server_gave_them(
    fake: DiscordFake, live: Any, inbox: Any
) -> None:
    """B10: in what they say, change, react to and do; in direct messages nobody has any."""
    guild, ada = fake.add_guild(), fake.person("Ada")
    room, role = fake.add_channel(guild), fake.add_role(guild, "staff")
    fake.give_role(guild, ada, role)
    async with live() as bot:
        await fake.reached(lambda: fake.commands() == ["status", "stop"])
        said = fake.say(room, ada, "hello")
        fake.edit(said, "hello again")
        [first, *_] = await inbox.wait(2)
        sent = await bot.send(first.address, Outbound("d1", "hi"))
        fake.react(int(sent.native_id), ada, "👍")
        fake.slash(room, ada, "status")
        fake.say(fake.dm(ada), ada, "in private")
        events = await inbox.wait(5)
    roles = {(one.kind, one.address.place): one.sender.roles for one in events}
    assert roles.pop((Kind.MESSAGE, Place.DM)) == ()
    assert set(roles.values()) == {(str(role),)}
    assert set(roles) == {(kind, Place.GROUP) for kind in (Kind.MESSAGE, Kind.EDIT, Kind.REACTION)}


@pytest.mark.parametrize(
    ("kind", "place", "warns"),
    [
        (0, Place.GROUP, False),
        (1, Place.DM, False),
        (2, Place.GROUP, False),
        (3, Place.GROUP, False),
        (5, Place.GROUP, False),
        (10, Place.GROUP, False),
        (11, Place.GROUP, False),
        (12, Place.GROUP, False),
        (13, Place.GROUP, False),
        (15, Place.GROUP, False),
        (16, Place.GROUP, False),
        (99, Place.GROUP, True),
    ],
)
async def test_fc_cmd_02_every_channel_type_has_a_place_and_an_unknown_one_warns(
    fake: DiscordFake, live: Any, inbox: Any, caplog: Any, kind: int, place: Place, warns: bool
) -> None:
    """FC-CMD-02: only what is between the bot and one person counts as private."""
    caplog.set_level(logging.WARNING, "test.discord")
    guild = fake.add_guild()
    channel: dict[str, Any] = {"id": "1200000000000000007", "type": kind}
    where = {} if kind in {1, 3} else {"guild_id": str(guild)}
    said = {
        "id": "1200000000000000008",
        "type": 2,
        "channel_id": channel["id"],
        "user": {"id": "1200000000000000009"},
        "data": {"type": 1, "name": "status"},
        "application_id": "1200000000000000010",
        "token": "aW50ZXJhY3Rpb246x",
    }
    async with live():
        if where:
            fake.event("CHANNEL_CREATE", channel | where, guild=guild)
        fake.event("INTERACTION_CREATE", said | where | {"channel": channel})
        [event] = await inbox.wait()
    assert (event.address.place, event.addressed) == (place, True)
    assert any(f"type {kind} is not known" in line for line in caplog.messages) == warns
