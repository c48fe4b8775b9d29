"""The real client against the strict fake: what it takes in, and what it says is shown."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
import pytest

from dragoman import (
    Address,
    Attachment,
    Button,
    Expired,
    Forbidden,
    Gone,
    Inbound,
    Kind,
    Moved,
    Outbound,
    Place,
    Refused,
)
from dragoman_telegram.platform import Telegram
from peers.telegram_fake import TelegramFake

pytestmark = pytest.mark.anyio
OpenBot = Callable[..., AbstractAsyncContextManager[Telegram]]
ADA = 700000001
DM = Address("telegram", str(ADA))


@asynccontextmanager
async def running(fake: TelegramFake, bot: Telegram) -> AsyncIterator[Callable[[], Any]]:
    """Run the bot; what is yielded waits until all updates are confirmed, and returns the events."""
    events: list[Inbound] = []

    async def deliver(event: Inbound) -> None:
        events.append(event)

    async def confirmed() -> list[Inbound]:
        await fake.reached(lambda: not fake.pending())
        return events

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bot.run, deliver)
        yield confirmed
        tasks.cancel_scope.cancel()


async def test_fc_dup_04_an_edit_arrives_as_one_and_unknown_kinds_let_the_queue_go_on(
    fake: TelegramFake, open_bot: OpenBot
) -> None:
    """B2, invariant 1: nothing that comes stops the offset."""
    async with open_bot(fake.url, poll_timeout=1) as bot, running(fake, bot) as confirmed:
        said = fake.say(ADA, ADA, "Write page")
        fake.edit(ADA, said.message_id, "Write page, then verify")
        fake.enqueue({"message": {"new": "shape"}})
        fake.say(ADA, ADA, "thanks")
        found = await confirmed()
    assert [(event.text, event.kind) for event in found] == [
        ("Write page", Kind.MESSAGE),
        ("Write page, then verify", Kind.EDIT),
        ("thanks", Kind.MESSAGE),
    ]
    assert found[1].message_id == found[0].message_id == str(said.message_id)
    assert len({event.native_id for event in found}) == 3


async def test_fc_con_01_an_album_comes_with_its_files_and_one_name(
    fake: TelegramFake, open_bot: OpenBot
) -> None:
    """A2."""
    async with open_bot(fake.url, poll_timeout=1) as bot, running(fake, bot) as confirmed:
        fake.say(ADA, ADA, media_group="g1", photo=b"one")
        fake.say(ADA, ADA, "caption", media_group="g1", photo=b"three")
        fake.say(ADA, ADA, document=("notes.txt", b"hello"))
        found = await confirmed()
    assert [event.album for event in found] == ["g1", "g1", ""]
    assert [event.text for event in found] == ["", "caption", ""]
    files = [file for event in found for file in event.attachments]
    assert [file.kind for file in files] == ["photo", "photo", "document"]
    assert [fake.file(file.id) for file in files] == [b"one", b"three", b"hello"]
    assert (files[2].name, files[2].size) == ("notes.txt", 5)


async def test_fc_con_03_a_command_with_the_bots_name_reaches_core_without_it(
    fake: TelegramFake, open_bot: OpenBot
) -> None:
    fake.add_chat(-1001500000001, "supergroup", "Team")
    async with open_bot(fake.url, poll_timeout=1) as bot, running(fake, bot) as confirmed:
        fake.say(ADA, ADA, "/STOP@dragoman_bot")
        fake.say(-1001500000001, ADA, "/stop@another_bot")
        fake.say(-1001500000001, ADA, "/stop@Dragoman_Bot now")
        found = await confirmed()
    assert [event.text for event in found] == ["/STOP", "/stop now"]
    assert all(event.addressed for event in found)


async def test_fc_thr_07_a_group_that_moved_is_told_once_for_each_side_and_starts_no_turn(
    fake: TelegramFake, open_bot: OpenBot
) -> None:
    """A send to the old id says where the new one is."""
    fake.add_chat(-4001, "group", "Team")
    group = Address("telegram", "-4001", place=Place.GROUP)
    async with open_bot(fake.url, poll_timeout=1) as bot, running(fake, bot) as confirmed:
        fake.migrate(-4001, -1001500000003)
        found = await confirmed()
        with pytest.raises(Moved) as caught:
            await bot.send(group, Outbound("d1", "x"))
        await bot.send(caught.value.address, Outbound("d1", "x"))
    assert fake.said_by_bot(-1001500000003) == ["x"]
    assert [(one.kind, one.address.channel, one.data) for one in found] == [
        (Kind.MOVED, "-4001", "-1001500000003")
    ] * 2


async def test_presses_reactions_and_departures_come_in_and_presses_are_answered(
    fake: TelegramFake, open_bot: OpenBot
) -> None:
    """A2, C2, FC-APR-05: a press is answered once; what came to an earlier life is too late."""
    fake.say(ADA, ADA, "hi")
    async with open_bot(fake.url, poll_timeout=1) as bot, running(fake, bot) as confirmed:
        await fake.reached(lambda: fake.calls_of("getUpdates"))  # reactions have to be asked for
        sent = await bot.send(DM, Outbound("d1", "Go on?", buttons=(Button("Yes", "s:1"),)))
        pressed = fake.press(ADA, int(sent.native_id), ADA, "s:1")
        fake.react(ADA, int(sent.native_id), ADA, "👍")
        fake.react(ADA, int(sent.native_id), ADA)
        fake.block(ADA)
        _, *found = await confirmed()
        await bot.answer(found[0], f"`refund`: {'x' * 300}")
        answer = fake.answer_to(pressed.query_id)
        assert answer is not None
        assert answer["text"] == f"refund: {'x' * 192}"
        with pytest.raises(Expired):
            await bot.answer(found[0], "again")
    assert [(one.kind, one.data) for one in found] == [
        (Kind.PRESS, "s:1"),
        (Kind.REACTION, "👍"),
        (Kind.REACTION, "-👍"),
        (Kind.LEFT, ""),
    ]
    assert {one.message_id for one in found[:3]} == {sent.native_id}


async def test_a_press_is_not_answered_before_it_is_durable(
    fake: TelegramFake, open_bot: OpenBot
) -> None:
    """Invariant 1."""
    fake.add_chat(ADA, "private")

    async def full(event: Inbound) -> None:
        raise OSError("disk full")

    async with open_bot(fake.url, poll_timeout=1) as bot:
        sent = await bot.send(DM, Outbound("d1", "Go on?", buttons=(Button("Yes", "s:1"),)))
        fake.say(ADA, ADA, "wakes the choice of kinds")
        with pytest.raises(OSError, match="disk full"):
            await bot.run(full)
        pressed = fake.press(ADA, int(sent.native_id), ADA, "s:1")
        with pytest.raises(OSError, match="disk full"):
            await bot.run(full)
    assert fake.answer_to(pressed.query_id) is None
    assert len(fake.pending()) == 2


async def test_a_post_of_a_channel_and_its_copy_in_the_discussion_tell_apart(
    fake: TelegramFake, open_bot: OpenBot
) -> None:
    """FC-LOP-01: what the bot posts in the channel comes back as words of a bot."""
    channel, discussion = -1001500000007, -1001500000008
    fake.add_chat(channel, "channel", "News", linked=discussion)
    fake.add_chat(discussion, "supergroup", "Talk", linked=channel)
    where = Address("telegram", str(channel), place=Place.CHANNEL)
    async with open_bot(fake.url, poll_timeout=1) as bot, running(fake, bot) as confirmed:
        await fake.reached(lambda: fake.calls_of("getUpdates"))
        fake.say(channel, 1, "post")
        await bot.send(where, Outbound("d1", "mine"))
        found = await confirmed()
    assert [(one.text, one.address.place, one.sender.bot, one.forwarded) for one in found] == [
        ("post", Place.CHANNEL, False, ""),
        ("post", Place.GROUP, True, "News"),
        ("mine", Place.GROUP, True, "News"),
    ]


async def test_files_that_people_sent_are_fetched_in_pieces(
    fake: TelegramFake, open_bot: OpenBot
) -> None:
    """A2: by their id alone; too large and unknown ones are refused."""
    content = bytes(range(256)) * 4000
    async with open_bot(fake.url, poll_timeout=1) as bot, running(fake, bot) as confirmed:
        fake.say(ADA, ADA, document=("a b.bin", content))
        fake.say(ADA, ADA, document=("big.bin", bytes((20 << 20) + 1)))
        good, large = [event.attachments[0] for event in await confirmed()]
        async with bot.fetch(good) as pieces:
            assert b"".join([piece async for piece in pieces]) == content
        for refused in (large, Attachment("nonsense", "document")):
            with pytest.raises(Refused):
                await anext(await AsyncExitStack().enter_async_context(bot.fetch(refused)))
    assert bot.capabilities.fetch


@pytest.mark.parametrize(
    "text", [" x ", "\n\na\tb\r\nc\n", "e\u030ax\u2028y", "*as* _written_ <b>", "🎉 \u00a0"]
)
async def test_what_is_shown_is_the_normal_form_of_what_was_sent(
    fake: TelegramFake, open_bot: OpenBot, text: str
) -> None:
    """Invariant 6: for a send, for an edit, and for an edit that changes nothing."""
    fake.add_chat(ADA, "private")
    async with open_bot(fake.url) as bot:
        normal = bot.capabilities.dialect.normal
        sent = await bot.send(DM, Outbound("d1", text))
        assert normal(sent.shown or "") == normal(text) == fake.said_by_bot(ADA)[0]
        edited = await bot.edit(DM, sent.native_id, Outbound("d1", f"{text}!\t"))
        assert normal(edited.shown or "") == normal(f"{text}!\t") == fake.said_by_bot(ADA)[0]
        same = await bot.edit(DM, sent.native_id, Outbound("d1", f"{text}!\t"))
        assert same.shown == edited.shown


async def test_what_a_person_did_to_the_chat_becomes_the_error_that_says_so(
    fake: TelegramFake, open_bot: OpenBot
) -> None:
    fake.add_chat(ADA, "private")
    async with open_bot(fake.url) as bot:
        sent = await bot.send(DM, Outbound("d1", "x"))
        fake.delete(ADA, int(sent.native_id))
        with pytest.raises(Gone) as gone:
            await bot.edit(DM, sent.native_id, Outbound("d1", "y"))
        assert gone.value.what == "message"
        fake.block(ADA)
        with pytest.raises(Forbidden) as blocked:
            await bot.send(DM, Outbound("d2", "x"))
        assert blocked.value.who == "person"
