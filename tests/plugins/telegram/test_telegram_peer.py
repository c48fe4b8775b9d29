"""The real client against a Bot API server that nobody here wrote."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from dragoman import (
    Address,
    Conflict,
    Inbound,
    Outbound,
    Place,
    RateLimited,
    Refused,
    SystemClock,
    Transport,
    Unknown,
)
from dragoman_telegram.platform import Telegram
from peers.botapi import BotApi

pytestmark = pytest.mark.anyio
OpenBot = Callable[..., AbstractAsyncContextManager[Telegram]]
DM = Address("telegram", "700000001")
TOPIC = Address("telegram", "-1001500000001", "5", place=Place.GROUP)
GENERAL = Address("telegram", "-1001500000001", place=Place.GROUP)


class Hasty(SystemClock):
    """Waits no longer than it takes."""

    async def sleep(self, seconds: float) -> None:
        await anyio.lowlevel.checkpoint()


class Inbox:
    """A durable store, as far as an adapter can tell."""

    def __init__(self) -> None:
        self.events: list[Inbound] = []
        self._arrived = anyio.Event()

    async def deliver(self, event: Inbound) -> None:
        self.events.append(event)
        self._arrived.set()
        self._arrived = anyio.Event()

    async def wait(self, count: int) -> list[Inbound]:
        with anyio.fail_after(60):
            while len(self.events) < count:
                await self._arrived.wait()
        return self.events


async def calls(botapi: BotApi, method: str, count: int = 1) -> list[dict[str, Any]]:
    return await anyio.to_thread.run_sync(botapi.wait_calls, method, count)


async def test_a_message_comes_in_and_its_answer_is_shown_and_edited(
    botapi: BotApi, open_bot: OpenBot, host: Any
) -> None:
    """C1, C2: the whole way, over the wire."""
    inbox = Inbox()
    async with open_bot(botapi.url) as bot, anyio.create_task_group() as tasks:
        tasks.start_soon(bot.run, inbox.deliver)
        number = botapi.say(700000001, "hello 🎉 日本語", message_id=11)
        [event] = await inbox.wait(1)
        assert (event.text, event.native_id, event.address) == ("hello 🎉 日本語", str(number), DM)
        await bot.typing(event.address)
        receipt = await bot.send(event.address, Outbound("d1", "one", reply_to=event.message_id))
        assert receipt.shown == "one"
        assert botapi.messages(700000001) == {int(receipt.native_id): "one"}
        edited = await bot.edit(event.address, receipt.native_id, Outbound("d1", "one, two"))
        assert (edited.native_id, edited.shown) == (receipt.native_id, "one, two")
        assert botapi.messages(700000001) == {int(receipt.native_id): "one, two"}
        tasks.cancel_scope.cancel()
    assert host.bound == ["7"]
    [sent] = botapi.calls("sendMessage")
    assert sent["params"]["reply_parameters"] == {
        "message_id": 11,
        "allow_sending_without_reply": True,
    }
    assert botapi.calls("sendChatAction")[0]["params"] == {"chat_id": 700000001, "action": "typing"}


async def test_the_offset_advances_only_after_deliver_has_returned(
    botapi: BotApi, open_bot: OpenBot
) -> None:
    """B2, invariant 1: Telegram is told "received" only after the event is durable."""
    entered, durable = anyio.Event(), anyio.Event()

    async def deliver(event: Inbound) -> None:
        entered.set()
        await durable.wait()

    number = botapi.say(700000001, "hi", message_id=1)
    async with open_bot(botapi.url) as bot, anyio.create_task_group() as tasks:
        tasks.start_soon(bot.run, deliver)
        with anyio.fail_after(60):
            await entered.wait()
        await bot.typing(DM)  # a whole exchange later there still is no second poll
        assert [call["params"]["offset"] for call in botapi.calls("getUpdates")] == [0]
        durable.set()
        assert (await calls(botapi, "getUpdates", 2))[1]["params"]["offset"] == number + 1
        tasks.cancel_scope.cancel()


async def test_a_batch_that_was_not_stored_to_its_end_comes_again(
    botapi: BotApi, open_bot: OpenBot
) -> None:
    """B2, invariant 1: what the store did not keep is not lost."""
    inbox = Inbox()

    async def full(event: Inbound) -> None:
        await inbox.deliver(event)
        if len(inbox.events) == 2:
            raise OSError("disk full")

    for number in (1, 2, 3):
        botapi.say(700000001, f"m{number}", message_id=number)
    async with open_bot(botapi.url) as bot:
        with pytest.raises(OSError, match="disk full"):
            await bot.run(full)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bot.run, inbox.deliver)
            await inbox.wait(5)
            tasks.cancel_scope.cancel()
    assert [event.text for event in inbox.events] == ["m1", "m2", "m1", "m2", "m3"]
    assert len({event.native_id for event in inbox.events}) == 3


async def test_a_new_process_gets_what_the_old_one_had_not_confirmed(
    botapi: BotApi, open_bot: OpenBot
) -> None:
    """B2: the offset lives at the server."""
    botapi.say(700000001, "hi", message_id=1)
    for _ in range(2):
        inbox = Inbox()

        async def deliver(event: Inbound, inbox: Inbox = inbox) -> None:
            await inbox.deliver(event)
            await anyio.sleep_forever()

        async with open_bot(botapi.url) as bot, anyio.create_task_group() as tasks:
            tasks.start_soon(bot.run, deliver)
            await inbox.wait(1)
            tasks.cancel_scope.cancel()


async def test_fc_thr_01_a_topic_is_named_when_sending_and_general_is_not(
    botapi: BotApi, open_bot: OpenBot
) -> None:
    inbox = Inbox()
    async with open_bot(botapi.url) as bot, anyio.create_task_group() as tasks:
        tasks.start_soon(bot.run, inbox.deliver)
        botapi.say(-1001500000001, "hi", message_id=1, user_id=5, chat_type="supergroup", thread=5)
        botapi.say(-1001500000001, "hi", message_id=2, user_id=5, chat_type="supergroup", thread=1)
        first, second = await inbox.wait(2)
        assert (first.address, second.address) == (TOPIC, GENERAL)
        for address in (TOPIC, GENERAL):
            await bot.typing(address)
            receipt = await bot.send(address, Outbound("d", "x"))
            await bot.edit(address, receipt.native_id, Outbound("d", "y"))
        tasks.cancel_scope.cancel()

    def threads(method: str) -> list[int | None]:
        return [call["params"].get("message_thread_id") for call in botapi.calls(method)]

    assert threads("sendMessage") == [5, None]
    assert threads("sendChatAction") == [5, 1]
    assert threads("editMessageText") == [None, None]


async def test_fc_dup_03_two_pollers_of_one_token_end_in_a_conflict_that_says_why(
    botapi: BotApi, open_bot: OpenBot, host: Any
) -> None:
    host.clock = Hasty()
    inbox = Inbox()
    async with (
        open_bot(botapi.url) as first,
        open_bot(botapi.url) as second,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(first.run, inbox.deliver)
        await calls(botapi, "getUpdates")
        with pytest.raises(Conflict, match="another program polls"):
            await second.run(inbox.deliver)
        botapi.say(700000001, "still here", message_id=1)
        await inbox.wait(1)
        tasks.cancel_scope.cancel()


async def test_a_webhook_in_the_way_is_reported_with_its_remedy_and_left_alone(
    botapi: BotApi, open_bot: OpenBot
) -> None:
    def set_webhook() -> None:
        body = json.dumps({"url": "https://example.org/hook"}).encode()
        url = f"{botapi.url}/bot{botapi.token}/setWebhook"
        with urllib.request.urlopen(
            urllib.request.Request(url, body, {"content-type": "application/json"})
        ) as response:
            assert response.status == 200

    await anyio.to_thread.run_sync(set_webhook)
    async with open_bot(botapi.url) as bot:
        with pytest.raises(Conflict, match="deleteWebhook"):
            await bot.run(Inbox().deliver)
    assert not botapi.calls("deleteWebhook")


async def test_the_limit_counts_utf16_units_as_telegram_does(
    botapi: BotApi, open_bot: OpenBot
) -> None:
    async with open_bot(botapi.url) as bot:
        limit, dialect = bot.capabilities.max_text, bot.capabilities.dialect
        longest = "🎉" * 2048
        assert dialect.length(longest) == limit == 4096
        assert (await bot.send(DM, Outbound("d1", longest))).shown == longest
        for text in ("x" * 4097, "🎉" * 2048 + "x"):
            assert dialect.length(text) == 4097
            with pytest.raises(Refused, match="too long"):
                await bot.send(DM, Outbound("d2", text))


async def test_a_send_whose_answer_was_lost_is_unknown_and_was_carried_out_once(
    botapi: BotApi, open_bot: OpenBot
) -> None:
    """Invariant 5: only the caller may decide to say it again."""
    botapi.lose_answer("sendMessage")
    async with open_bot(botapi.url) as bot:
        with pytest.raises(Unknown):
            await bot.send(DM, Outbound("d1", "x"))
    assert list(botapi.messages(700000001).values()) == ["x"]
    assert len(botapi.calls("sendMessage")) == 1


async def test_a_refused_call_leaves_the_connection_good_for_the_next(
    botapi: BotApi, open_bot: OpenBot
) -> None:
    botapi.refuse("sendMessage", 429, "Too Many Requests", parameters={"retry_after": 2})
    async with open_bot(botapi.url) as bot:
        with pytest.raises(RateLimited):
            await bot.send(DM, Outbound("d1", "x"))
        await bot.send(DM, Outbound("d1", "x"))
    assert [call["status"] for call in botapi.calls("sendMessage")] == [429, 200]


async def test_cancelling_ends_the_poll_at_the_server_too(
    botapi: BotApi, open_bot: OpenBot
) -> None:
    """Invariant 9: nothing of a run outlives its scope, and the same object runs again."""
    inbox = Inbox()
    async with open_bot(botapi.url) as bot:
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(bot.run, inbox.deliver)
                await calls(botapi, "getUpdates")
                tasks.cancel_scope.cancel()
        botapi.say(700000001, "later", message_id=1)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run_again, bot, inbox)
            await inbox.wait(1)
            tasks.cancel_scope.cancel()


async def run_again(bot: Telegram, inbox: Inbox) -> None:
    """Run as core does: the server may need a moment to see that the old poll has gone."""
    while True:
        try:
            await bot.run(inbox.deliver)
        except Conflict:
            await anyio.lowlevel.checkpoint()


async def test_capabilities_say_what_the_bot_api_offers(open_bot: OpenBot) -> None:
    """A connection is silent only once a poll is overdue by twice its margin."""
    async with open_bot("http://127.0.0.1:1", poll_timeout=20, poll_margin=4.0) as bot:
        found = bot.capabilities
    assert found.transport is Transport.AWAITED_CURSOR
    assert found.edit
    assert found.typing
    assert not found.idempotent_send
    assert found.silence == 28


async def test_a_server_that_has_no_rich_messages_shows_the_answer_all_the_same(
    botapi: BotApi, open_bot: OpenBot
) -> None:
    """C2: whichever way it says so, for sends and for edits."""
    async with open_bot(botapi.url, rich="auto") as bot:
        for number in range(3):
            sent = await bot.send(DM, Outbound(f"d{number}", "…"))
            edited = await bot.edit(DM, sent.native_id, Outbound(f"d{number}", "# One\n\n- a"))
            assert edited.shown == "# One\n\n- a"
        sent = await bot.send(DM, Outbound("d4", "# Two"))
        again = await bot.send(DM, Outbound("d5", "# Two"))
    assert sent.shown == again.shown == "# Two"
    assert len(botapi.calls("sendRichMessage")) <= 1
    assert list(botapi.messages(700000001).values())[-2:] == ["Two", "Two"]
