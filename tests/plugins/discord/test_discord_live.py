"""The real client against a Discord on loopback, over real sockets."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import anyio
import pytest

from dragoman import Address, Button, Kind, Outbound, Place
from dragoman_discord.platform import Discord
from peers.discord_fake import DiscordFake

pytestmark = pytest.mark.anyio


def out(name: str, text: str, **more: Any) -> Outbound:
    return Outbound(name, text, created_at=datetime.now(UTC), **more)


async def test_a_mention_comes_in_and_its_answer_is_shown_and_edited(
    fake: DiscordFake, live: Any, inbox: Any, host: Any
) -> None:
    """C1, C3: the whole way, over the wire."""
    guild = fake.add_guild()
    channel, ada = fake.add_channel(guild), fake.person("Ada")
    async with live() as bot:
        asked = fake.say(channel, ada, f"😀😀 <@{fake.bot_id}> hello 日本語")
        [event] = await inbox.wait()
        place = Address("discord", str(channel), "", str(guild), Place.GROUP)
        assert (event.address, event.text, event.addressed) == (place, "😀😀 hello 日本語", True)
        assert (event.native_id, event.sender.id) == (str(asked), str(ada))
        await bot.typing(event.address)
        receipt = await bot.send(event.address, out("d1", "**one**", reply_to=event.message_id))
        assert receipt.shown == "**one**"
        await bot.edit(event.address, receipt.native_id, out("d1", "**one**, two"))
        assert not [each for each in (fake.token, "日本語", "**one") if each in repr(bot)]
    assert host.bound == [str(fake.bot_id)]
    assert len(fake.typings(channel)) == 1
    answer = fake.shown(channel)[-1]
    assert ([v.text for v in answer.versions], answer.reply_to) == (
        ["**one**", "**one**, two"],
        asked,
    )
    assert not answer.pinged


async def test_direct_messages_threads_and_posts_each_have_their_address(
    fake: DiscordFake, live: Any, inbox: Any
) -> None:
    """A2, FC-THR-05: a thread is a conversation of its own, below its channel; so is a post."""
    guild = fake.add_guild()
    channel, forum = fake.add_channel(guild), fake.add_channel(guild, "help", "forum")
    ada = fake.person("Ada")
    async with live() as bot:
        direct = fake.dm(ada)
        fake.say(direct, ada, "psst")
        thread = fake.open_thread(channel, ada, with_bot=True)
        fake.say(thread, ada, "in the thread")
        post = fake.post(forum, ada, "Question", "in the post")
        events = await inbox.wait(3)
        for event in events:
            await bot.send(event.address, out(event.native_id, f"to {event.text}"))
    where = str(guild), Place.GROUP
    assert [each.address for each in events] == [
        Address("discord", str(direct)),
        Address("discord", str(channel), str(thread), *where),
        Address("discord", str(forum), str(post), *where),
    ]
    assert [(each.addressed, each.follows) for each in events] == [
        (True, False),
        (False, True),
        (False, True),
    ]
    assert fake.said_by_bot(direct) == ["to psst"]
    assert fake.said_by_bot(thread) == ["to in the thread"]
    assert fake.said_by_bot(post) == ["to in the post"]


async def test_fc_thr_09_every_call_goes_to_the_thread(
    fake: DiscordFake, live: Any, inbox: Any, tmp_path: Any
) -> None:
    """Send, edit, typing, reaction, file, buttons, look-up, reply and deletion in one thread."""
    guild = fake.add_guild()
    ada = fake.person("Ada")
    thread = fake.open_thread(fake.add_channel(guild), ada, with_bot=True)
    async with live() as bot:
        fake.say(thread, ada, f"<@{fake.bot_id}> go")
        [event] = await inbox.wait()
        here = event.address
        await bot.typing(here)
        await bot.react(here, event.message_id, "👀", on=True)
        buttons = (Button("Yes", "yes", "primary"), Button("No", "no", "danger"))
        first = out("d1", "sure?", reply_to=event.message_id, buttons=buttons)
        receipt = await bot.send(here, first)
        assert fake.message(int(receipt.native_id)).buttons == ("Yes", "No")
        await bot.edit(here, receipt.native_id, out("d1", "sure!"))
        found = await bot.look_up(here, out("d9", "sure!"))
        assert found is not None
        assert found.native_id == receipt.native_id
        await bot.react(here, event.message_id, "👀", on=False)
        await bot.delete(here, receipt.native_id)
        await bot.delete(here, receipt.native_id)
    assert [call for call in fake.calls if call.status in (400, 403)] == []
    lost = [call.method for call in fake.calls if call.status == 404]
    assert lost == ["delete_message"]
    assert not fake.message(int(event.message_id)).reactions


async def test_edits_deletions_and_reactions_come_as_what_they_are(
    fake: DiscordFake, live: Any, inbox: Any
) -> None:
    """A9: what happens to messages later, under an id of its own each."""
    guild = fake.add_guild()
    channel, ada = fake.add_channel(guild), fake.person("Ada")
    async with live() as bot:
        one = fake.say(channel, ada, "frist")
        two, three = fake.say(channel, ada, "b"), fake.say(channel, ada, "c")
        [event, *_] = await inbox.wait(3)
        receipt = await bot.send(event.address, out("d1", "mine"))
        fake.unfurl(two, {"title": "a link"})
        fake.edit(one, "first")
        fake.delete(one)
        fake.delete_many(two, three)
        fake.react(int(receipt.native_id), ada, "👍")
        fake.unreact(int(receipt.native_id), ada, "👍")
        fake.react(int(receipt.native_id), ada, "👍")
        events = (await inbox.wait(10))[3:]
    told = [(each.kind, each.message_id, each.text or each.data) for each in events]
    assert told == [
        (Kind.EDIT, str(one), "first"),
        (Kind.DELETION, str(one), ""),
        (Kind.DELETION, str(two), ""),
        (Kind.DELETION, str(three), ""),
        (Kind.REACTION, receipt.native_id, "👍"),
        (Kind.REACTION, receipt.native_id, "-👍"),
        (Kind.REACTION, receipt.native_id, "👍"),
    ]
    assert len({each.native_id for each in events}) == 7


async def test_places_that_are_gone_are_told_of(fake: DiscordFake, live: Any, inbox: Any) -> None:
    """A9: a deleted thread or channel, and a server that the bot has to leave; an outage is none."""
    guild, other = fake.add_guild(), fake.add_guild()
    ada = fake.person("Ada")
    channel, elsewhere = fake.add_channel(guild), fake.add_channel(other)
    thread = fake.open_thread(channel, ada, with_bot=True)
    async with live():
        fake.say(elsewhere, ada, "hello")
        await inbox.wait(1)
        fake.outage(guild)
        fake.recover(guild)
        fake.remove_channel(thread)
        fake.remove_channel(channel)
        fake.expel(other)
        events = await inbox.wait(3, Kind.LEFT)
    gone = [(each.address.channel, each.address.thread) for each in events]
    assert gone == [(str(channel), str(thread)), (str(channel), ""), (str(elsewhere), "")]


async def test_fc_thr_06_a_mention_is_answered_in_a_thread_of_its_own(
    fake: DiscordFake, live: Any, inbox: Any
) -> None:
    """Each mention begins a conversation that has its key before its thread is there."""
    guild = fake.add_guild()
    channel, ada = fake.add_channel(guild), fake.person("Ada")
    async with live(replies="thread") as bot:
        for number in range(3):
            fake.say(channel, ada, f"talk of others {number}")
        one = fake.say(channel, ada, f"<@{fake.bot_id}> task A")
        two = fake.say(channel, ada, f"<@{fake.bot_id}> task B")
        events = (await inbox.wait(5))[3:]
        assert [each.address.thread for each in events] == [str(one), str(two)]
        for event in events:
            await bot.react(event.address, event.message_id, "👀", on=True)
            await bot.typing(event.address)
            answer = out(event.native_id, f"done {event.text}", reply_to=event.message_id)
            receipt = await bot.send(event.address, answer)
            await bot.edit(event.address, receipt.native_id, out(event.native_id, "done!"))
        fake.say(one, ada, "and then?")
        follow = (await inbox.wait(6))[5]
    assert follow.address == events[0].address
    assert (follow.addressed, follow.text) == (True, "and then?")
    assert fake.said_by_bot(channel) == []
    assert (fake.said_by_bot(one), fake.said_by_bot(two)) == (["done!"], ["done!"])
    assert [list(fake.message(each).reactions) for each in (one, two)] == [["👀"], ["👀"]]
    assert fake.thread_named("task A") == one
    assert [call.method for call in fake.calls if call.status >= 400] == []


async def test_a_thread_that_was_begun_before_a_restart_is_found(
    fake: DiscordFake, live: Any, inbox: Any
) -> None:
    guild = fake.add_guild()
    channel, ada = fake.add_channel(guild), fake.person("Ada")
    async with live(replies="thread") as bot:
        fake.say(channel, ada, f"<@{fake.bot_id}> task")
        [event] = await inbox.wait()
        await bot.send(event.address, out("d1", "first"))
    async with live(replies="thread") as bot:
        await bot.send(event.address, out("d2", "second"))
    assert fake.said_by_bot(int(event.address.thread)) == ["first", "second"]


async def test_heartbeats_are_signs_of_life(fake: DiscordFake, live: Any, host: Any) -> None:
    """B9: silence of the chat is none of the connection."""
    async with live():
        await fake.reached(lambda: fake.heartbeats() >= 3)
        with anyio.fail_after(5):
            while host.words < 5:
                await anyio.lowlevel.checkpoint()


async def test_commands_are_registered_only_where_they_differ(
    fake: DiscordFake, live: Any, host: Any
) -> None:
    """B11: the gateway's commands, as slash commands."""
    for _ in range(2):
        async with live():
            await fake.reached(lambda: fake.calls_of("get_commands"))
            await fake.reached(lambda: fake.commands() == ["status", "stop"])
    host.gateway.commands = (("status", "Other words"), ("stop", "Stop"))
    async with live():
        await fake.reached(lambda: len(fake.calls_of("put_commands")) == 2)


def test_the_bot_is_what_it_says(open_bot: Any) -> None:
    """Only what the platform offers is claimed."""
    from dragoman_discord.platform import CAPABILITIES

    for name in ("look_up", "delete", "react", "fetch", "probe"):
        assert callable(getattr(Discord, name))
    assert CAPABILITIES.idempotent_window == 120


async def test_what_is_not_known_of_a_place_is_asked_for_until_it_is_answered(
    fake: DiscordFake, live: Any, inbox: Any
) -> None:
    """FC-THR-05: a resumed session is told of no channels; a message is not guessed into one."""
    guild = fake.add_guild()
    channel, ada = fake.add_channel(guild), fake.person("Ada")
    role = fake.add_role(guild, "helpers")
    thread = fake.open_thread(channel, ada, with_bot=True)
    async with live():
        fake.say(channel, ada, "known")
        await inbox.wait(1)
    fake.fail("get_channel", 502)
    fake.limit("get_channel", 0.1)
    fake.say(thread, ada, f"<@&{role}> in the thread")
    async with live():
        event = (await inbox.wait(2))[1]
    where = Address("discord", str(channel), str(thread), str(guild), Place.GROUP)
    assert (event.address, event.text) == (where, f"<@&{role}> in the thread")
    asked = [call.ids.get("channel") for call in fake.calls_of("get_channel")]
    assert asked == [str(thread), str(thread), str(thread), str(channel)]
