"""The product's own Telegram platform is the third client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import attrs
import pytest

from dragoman import (
    Address,
    Conflict,
    Forbidden,
    Gone,
    Moved,
    Outbound,
    Place,
    RateLimited,
    Refused,
    Secret,
    Unauthorized,
    Unknown,
)
from dragoman.testing.suite_host import SuiteHost
from dragoman_telegram.config import TelegramConfig
from dragoman_telegram.platform import Telegram, open_telegram
from peers.telegram_fake import TOKEN, TelegramFake

pytestmark = pytest.mark.anyio
PERSON, GROUP, FORUM = 700000001, -1500000001, -1001500000002
DM = Address("telegram", str(PERSON))
IN_GROUP = Address("telegram", str(GROUP), place=Place.GROUP)


@pytest.fixture
async def platform(fake: TelegramFake, tmp_path: Path) -> AsyncIterator[Telegram]:
    config = TelegramConfig(token=Secret("env TOKEN", TOKEN), api_url=fake.url)
    async with opened(config, tmp_path) as telegram:
        yield telegram


@asynccontextmanager
async def opened(config: TelegramConfig, folder: Path) -> AsyncIterator[Telegram]:
    host = SuiteHost("telegram", folder)
    async with open_telegram(config, host) as telegram, anyio.create_task_group() as tasks:
        host.attach(tasks)
        yield telegram
        tasks.cancel_scope.cancel()


async def test_a_conversation_goes_both_ways_and_is_confirmed(
    fake: TelegramFake, platform: Telegram
):
    events = []

    async def deliver(event) -> None:
        events.append(event)
        await platform.typing(event.address)
        receipt = await platform.send(
            event.address, Outbound("d1", "one", reply_to=event.message_id)
        )
        await platform.edit(event.address, receipt.native_id, Outbound("d1", "one, two"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(platform.run, deliver)
        said = fake.say(PERSON, PERSON, "hello 🎉")
        await fake.reached(lambda: fake.said_by_bot(PERSON) == ["one, two"])
        await fake.reached(lambda: fake.pending() == ())
        tasks.cancel_scope.cancel()
    assert (events[0].text, events[0].native_id) == ("hello 🎉", str(said.update_id))
    assert fake.chat(PERSON)[-1].reply_to == said.message_id
    assert len(fake.notices(PERSON)) == 1


async def test_topics_are_kept_apart(fake: TelegramFake, platform: Telegram):
    thread = fake.topic(FORUM, "Plans", PERSON)
    topic = Address("telegram", str(FORUM), str(thread), place=Place.GROUP)
    await platform.send(topic, Outbound("d", "inside"))
    await platform.send(attrs.evolve(topic, thread=""), Outbound("d", "outside"))
    assert fake.said_by_bot(FORUM, thread) == ["inside"]
    assert fake.said_by_bot(FORUM) == ["inside", "outside"]
    fake.delete_topic(FORUM, thread)
    with pytest.raises(Gone) as gone:
        await platform.send(topic, Outbound("d", "late"))
    assert gone.value.what == "thread"


async def test_refusals_become_the_errors_to_act_on(fake: TelegramFake, platform: Telegram):
    fake.say(PERSON, PERSON, "?")
    fake.say(GROUP, PERSON, "?")
    receipt = await platform.send(DM, Outbound("d", "same"))
    same = await platform.edit(DM, receipt.native_id, Outbound("d", "same"))
    assert same.shown == "same", "what is shown already is no error"
    with pytest.raises(Refused, match="too long"):
        await platform.send(DM, Outbound("d", "x" * 4097))
    with pytest.raises(Refused, match="text is empty"):
        await platform.send(DM, Outbound("d", " "))
    fake.forget(PERSON, int(receipt.native_id))
    with pytest.raises(Gone) as gone:
        await platform.edit(DM, receipt.native_id, Outbound("d", "other"))
    assert gone.value.what == "message"
    fake.fail("sendMessage", status=429, retry_after=4)
    with pytest.raises(RateLimited) as flood:
        await platform.send(DM, Outbound("d", "x"))
    assert flood.value.retry_after == 4.0
    fake.migrate(GROUP, -1001500000009)
    with pytest.raises(Moved) as moved:
        await platform.send(IN_GROUP, Outbound("d", "x"))
    assert moved.value.address.channel == "-1001500000009"
    await platform.send(moved.value.address, Outbound("d", "x"))
    assert fake.said_by_bot(-1001500000009) == ["x"]
    fake.block(PERSON)
    with pytest.raises(Forbidden):
        await platform.send(DM, Outbound("d", "x"))
    with pytest.raises(Gone):
        await platform.send(Address("telegram", "42"), Outbound("d", "x"))


async def test_an_answer_that_is_lost_leaves_the_send_uncertain(
    fake: TelegramFake, platform: Telegram
):
    fake.say(PERSON, PERSON, "?")
    fake.cut("sendMessage", after_apply=True)
    fake.cut("sendMessage")
    for _ in range(2):
        with pytest.raises(Unknown):
            await platform.send(DM, Outbound("d", "perhaps"))
    assert fake.said_by_bot(PERSON) == ["perhaps"]


async def test_a_second_consumer_ends_the_run_and_a_wrong_token_too(
    fake: TelegramFake, platform: Telegram, http, tmp_path: Path
):
    async def deliver(event) -> None: ...

    async with anyio.create_task_group() as tasks:
        over = anyio.Event()

        async def ours() -> None:
            with pytest.raises(Conflict):
                await platform.run(deliver)
            over.set()
            tasks.cancel_scope.cancel()

        tasks.start_soon(ours)
        await fake.reached(lambda: len(fake.calls_of("getUpdates")) == 1)
        while not over.is_set():  # somebody else who does not give way
            await http.get("getUpdates", params={"timeout": 20})
    assert over.is_set()
    wrong = TelegramConfig(token=Secret("env TOKEN", f"{TOKEN[:-1]}y"), api_url=fake.url)
    async with opened(wrong, tmp_path) as other:
        with pytest.raises(Unauthorized):
            await other.send(DM, Outbound("d", "x"))
