"""Sends that are repeated, refused, limited or lost, and what core is told of each."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import anyio
import pytest

from dragoman import (
    Address,
    Button,
    Forbidden,
    Gone,
    NotSent,
    Outbound,
    Place,
    PlatformError,
    RateLimited,
    Refused,
    Unauthorized,
    Unknown,
)
from peers.discord_fake import DiscordFake, Limits, Window

pytestmark = pytest.mark.anyio


def out(name: str, text: str, **more: Any) -> Outbound:
    return Outbound(name, text, created_at=datetime.now(UTC), **more)


@pytest.fixture
def room(fake: DiscordFake) -> Address:
    """A channel."""
    guild = fake.add_guild()
    channel = fake.add_channel(guild)
    return Address("discord", str(channel), "", str(guild), Place.GROUP)


async def test_a_send_whose_answer_was_lost_is_shown_once_when_it_is_repeated(
    fake: DiscordFake, open_bot: Any, room: Address
) -> None:
    """B7, invariant 5: Discord knows the key again."""
    fake.cut("create_message", after_apply=True)
    message = out("d1", "once")
    async with open_bot() as bot:
        with pytest.raises(Unknown):
            await bot.send(room, message)
        receipt = await bot.send(room, message)
        await bot.send(room, out("d2", "once"))
    shown = fake.shown(int(room.channel))
    assert [one.text for one in shown] == ["once", "once"]
    assert str(shown[0].id) == receipt.native_id
    assert [len(one.nonce or "") for one in shown] == [25, 25]


async def test_a_lost_send_is_found_in_the_history(
    fake: DiscordFake, open_bot: Any, room: Address
) -> None:
    """B7, invariant 5: beyond the window of keys; by author, time and text, tables included."""
    ada, table = fake.person("Ada"), "| a | b |\n|---|---|\n| 1 | 2 |"
    channel = int(room.channel)
    async with open_bot() as bot:
        await bot.send(room, out("d0", "another"))
        lost = out("d1", table)
        assert await bot.look_up(room, lost) is None
        fake.cut("create_message", after_apply=True)
        with pytest.raises(Unknown):
            await bot.send(room, lost)
        for number in range(120):
            fake.say(channel, ada, f"talk {number}")
        found = await bot.look_up(room, lost)
        assert found is not None
        assert fake.message(int(found.native_id)).text == found.shown
        assert await bot.look_up(room, out("d2", "never sent")) is None


async def test_a_lost_send_is_known_by_its_key_where_the_gateway_told_of_it(
    fake: DiscordFake, live: Any, room: Address, inbox: Any
) -> None:
    """Two messages with the same words are told apart."""
    ada = fake.person("Ada")
    async with live() as bot:
        first = await bot.send(room, out("d1", "same"))
        fake.cut("create_message", after_apply=True)
        with pytest.raises(Unknown):
            await bot.send(room, out("d2", "same"))
        fake.say(int(room.channel), ada, "so far")
        await inbox.wait(1)
        found = await bot.look_up(room, out("d2", "same"))
    assert found is not None
    assert found.native_id != first.native_id


async def test_nobody_is_notified_unless_the_manifest_says_so(
    fake: DiscordFake, open_bot: Any, room: Address
) -> None:
    """C1: what the model writes calls nobody; everybody never."""
    ada = fake.person("Ada")
    fake.join(int(room.workspace), ada)
    words = f"@everyone @here <@{ada}>"
    asked = fake.say(int(room.channel), ada, "hello")
    async with open_bot() as bot:
        await bot.send(room, out("d1", words, reply_to=str(asked)))
    async with open_bot(mentions=True) as bot:
        await bot.send(room, out("d2", words, reply_to=str(asked)))
    none, some = fake.shown(int(room.channel))[-2:]
    assert not none.pinged
    assert (some.pinged.users, some.pinged.everyone) == ({ada}, False)


async def test_buttons_stand_in_rows_and_an_edit_without_any_takes_them_away(
    fake: DiscordFake, open_bot: Any, room: Address
) -> None:
    buttons = tuple(Button(f"B{number}", f"b:{number}") for number in range(7))
    async with open_bot() as bot:
        receipt = await bot.send(room, out("d1", "choose", buttons=buttons))
        rows = fake.message(int(receipt.native_id)).components
        assert [len(row["components"]) for row in rows] == [5, 2]
        await bot.edit(room, receipt.native_id, out("d1", "chosen"))
    assert fake.message(int(receipt.native_id)).components == ()


async def test_fc_edt_06_answers_to_deleted_messages_are_shown(
    fake: DiscordFake, open_bot: Any, room: Address
) -> None:
    """The reply goes out without its reference; an edit of what is gone says so."""
    ada = fake.person("Ada")
    asked = fake.say(int(room.channel), ada, "forget it")
    fake.delete(asked)
    async with open_bot() as bot:
        receipt = await bot.send(room, out("d1", "answer", reply_to=str(asked)))
        fake.delete(int(receipt.native_id))
        with pytest.raises(Gone, match="message"):
            await bot.edit(room, receipt.native_id, out("d1", "answer, more"))
        with pytest.raises(Gone, match="message"):
            await bot.edit(room, "no number", out("d1", "answer"))


@pytest.mark.parametrize(
    ("status", "code", "error"),
    [
        (401, 0, Unauthorized),
        (403, 50013, Forbidden),
        (403, 50001, Forbidden),
        (403, 50007, Forbidden),
        (403, 0, Forbidden),
        (404, 10003, Gone),
        (400, 50035, Refused),
        (400, 50006, Refused),
        (413, 40005, Refused),
        (500, 0, Unknown),
        (503, 0, Unknown),
    ],
)
async def test_refusals_are_told_by_what_to_do_next(
    fake: DiscordFake, open_bot: Any, room: Address, status: int, code: int, error: type
) -> None:
    fake.fail("create_message", status, code)
    async with open_bot() as bot:
        with pytest.raises(error):
            await bot.send(room, out("d1", "x"))
    assert len(fake.calls_of("create_message")) == 1


async def test_pages_for_people_are_no_answers(
    fake: DiscordFake, open_bot: Any, room: Address
) -> None:
    """A proxy before Discord speaks HTML: its refusals are waits, the rest is unknown."""
    async with open_bot() as bot:
        for status, error in ((502, Unknown), (200, Unknown), (403, RateLimited)):
            fake.garble("create_message", status)
            with pytest.raises(error):
                await bot.send(room, out("d1", "x"))
    async with open_bot() as bot:
        fake.ban("create_message", retry_after=600)
        with pytest.raises(RateLimited) as caught:
            await bot.send(room, out("d1", "x"))
    assert (caught.value.retry_after, caught.value.scope) == (600, "instance")


async def test_a_refusal_names_the_field_and_nothing_of_the_message(
    fake: DiscordFake, open_bot: Any, room: Address
) -> None:
    async with open_bot() as bot:
        with pytest.raises(Refused) as caught:
            await bot.send(room, out("d1", "secret words " * 200))
    assert "content: BASE_TYPE_MAX_LENGTH" in str(caught.value)
    assert "secret" not in str(caught.value)


async def test_a_person_who_takes_no_messages_is_told_apart_from_a_chat(
    fake: DiscordFake, open_bot: Any, room: Address
) -> None:
    ada = fake.person("Ada")
    direct = Address("discord", str(fake.dm(ada)))
    fake.close_to_bots(ada)
    fake.forbid(int(room.channel), "SEND_MESSAGES")
    async with open_bot() as bot:
        with pytest.raises(Forbidden) as person:
            await bot.send(direct, out("d1", "x"))
        with pytest.raises(Forbidden) as chat:
            await bot.send(room, out("d2", "x"))
    assert (person.value.who, chat.value.who) == ("person", "chat")


@pytest.mark.parametrize("headers", [True, False])
@pytest.mark.parametrize(
    ("scope", "ours"), [("user", "method"), ("shared", "channel"), ("global", "instance")]
)
async def test_a_429_closes_what_it_names_and_is_not_tried_again(
    fake: DiscordFake, open_bot: Any, room: Address, scope: Any, ours: str, headers: bool
) -> None:
    fake.limit("create_message", 7.5, scope=scope, headers=headers)
    async with open_bot() as bot:
        with pytest.raises(RateLimited) as caught:
            await bot.send(room, out("d1", "x"))
        with pytest.raises(RateLimited) as again:  # known beforehand: nothing leaves
            await bot.send(room, out("d1", "x"))
    assert caught.value.retry_after == pytest.approx(7.5)
    assert caught.value.scope == (ours if headers or scope == "global" else "method")
    assert 7 < again.value.retry_after <= 7.5
    assert len(fake.calls_of("create_message")) == 1


async def test_parallel_sends_into_one_channel_wait_for_each_other(
    fake: DiscordFake, open_bot: Any, room: Address
) -> None:
    """No 429 is earned: the headers say what is left, and a short wait is waited."""
    fake.limits = Limits({"create_message": Window(3, 0.3)})
    fake_errors: list[PlatformError] = []

    async def send(bot: Any, number: int) -> None:
        try:
            await bot.send(room, out(f"d{number}", f"m{number}"))
        except PlatformError as error:
            fake_errors.append(error)

    async with open_bot() as bot, anyio.create_task_group() as tasks:
        for number in range(8):
            tasks.start_soon(send, bot, number)
    assert fake_errors == []
    assert len(fake.said_by_bot(int(room.channel))) == 8
    assert fake.invalid_calls == 0


async def test_a_long_wait_is_left_to_core(fake: DiscordFake, open_bot: Any, room: Address) -> None:
    fake.limits = Limits({"create_message": Window(2, 30.0)})
    other = Address("discord", str(fake.add_channel(int(room.workspace))), "", room.workspace)
    async with open_bot() as bot:
        await bot.send(room, out("d1", "one"))
        await bot.send(room, out("d2", "two"))
        with pytest.raises(RateLimited) as caught:
            await bot.send(room, out("d3", "three"))
        await bot.send(other, out("d4", "elsewhere"))
    assert 25 < caught.value.retry_after <= 30
    assert [call.status for call in fake.calls_of("create_message")] == [200, 200, 200]


async def test_a_call_that_cannot_leave_is_known_not_to_have_left(
    fake: DiscordFake, host: Any, room: Address
) -> None:
    from dragoman import Secret
    from dragoman_discord.config import DiscordConfig
    from dragoman_discord.platform import open_discord

    config = DiscordConfig(token=Secret("env T", fake.token), api_url="http://127.0.0.1:9/api/v10")
    async with open_discord(config, host) as bot:
        with pytest.raises(NotSent, match="connecting failed"):
            await bot.send(room, out("d1", "x"))


async def test_an_emoji_that_discord_does_not_know_is_refused(
    fake: DiscordFake, open_bot: Any, room: Address
) -> None:
    asked = fake.say(int(room.channel), fake.person("Ada"), "hello")
    async with open_bot() as bot:
        with pytest.raises(Refused):
            await bot.react(room, str(asked), "no emoji", on=True)
        await bot.react(room, str(asked), "👍", on=True)
        await bot.react(room, str(asked), "👍", on=True)
        await bot.react(room, str(asked), "👍", on=False)
        await bot.react(room, str(asked), "👍", on=False)


async def test_a_thread_that_was_archived_takes_an_answer_and_a_locked_one_does_not(
    fake: DiscordFake, open_bot: Any, room: Address
) -> None:
    thread = fake.open_thread(int(room.channel), fake.person("Ada"), with_bot=True)
    here = Address("discord", room.channel, str(thread), room.workspace, Place.GROUP)
    async with open_bot() as bot:
        fake.archive(thread)
        receipt = await bot.send(here, out("d1", "late"))
        fake.archive(thread)
        with pytest.raises(Gone, match="message"):
            await bot.edit(here, receipt.native_id, out("d1", "later"))
        fake.archive(thread, locked=True)
        with pytest.raises(Forbidden):
            await bot.send(here, out("d2", "too late"))
        fake.remove_channel(thread)
        with pytest.raises(Gone, match="thread"):
            await bot.send(here, out("d3", "far too late"))
    assert fake.calls_of("create_message")[0].ok
