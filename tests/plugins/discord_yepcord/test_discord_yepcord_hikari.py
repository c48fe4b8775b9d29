"""hikari, unpatched, lives on YEPCord behind the shim as it does on Discord."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from peers.yepcord import Yepcord

pytestmark = pytest.mark.anyio
hikari = pytest.importorskip("hikari")


@pytest.fixture
async def bot(yepcord: Yepcord) -> AsyncIterator[Any]:
    """A bot that is started."""
    made = hikari.GatewayBot(
        yepcord.bot.token,
        rest_url=yepcord.api_url,
        banner=None,
        suppress_optimization_warning=True,
        force_color=False,
        logs=None,
        intents=hikari.Intents.ALL_UNPRIVILEGED | hikari.Intents.MESSAGE_CONTENT,
        auto_chunk_members=False,
    )
    with anyio.fail_after(20):
        await made.start(check_for_updates=False)
    yield made
    await made.close()


async def told(bot: Any, kind: type, **fields: Any) -> asyncio.Future[Any]:
    """Return what resolves at the next event of a kind whose message or self has these fields."""
    found: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    async def listen(event: Any) -> None:
        about = getattr(event, "message", event)
        fits = all(getattr(about, name, None) == value for name, value in fields.items())
        if fits and not found.done():
            found.set_result(event)

    bot.event_manager.subscribe(kind, listen)
    return found


async def test_it_hears_people_and_they_see_its_answers(yepcord, room, bot):
    waiting = await told(bot, hikari.GuildMessageCreateEvent, content="hello hikari")
    said = yepcord.anna.say(room, "hello hikari")
    with anyio.fail_after(10):
        event = await waiting
    answer = await event.message.respond("an answer", reply=True)
    await answer.edit("a better answer")
    await event.message.add_reaction("👍")
    await bot.rest.create_message(
        int(room), "with a file", attachment=hikari.Bytes(b"abc" * 1000, "a.txt")
    )
    asked, seen, filed = yepcord.ben.messages(room)
    assert (seen["content"], filed["content"]) == ("a better answer", "with a file")
    assert seen["message_reference"]["message_id"] == said["id"]
    assert [one["emoji"]["name"] for one in asked["reactions"]] == ["👍"]
    assert yepcord.ben.download(filed["attachments"][0]) == b"abc" * 1000


async def test_a_thread_and_a_command(yepcord, room, bot):
    await bot.rest.set_application_commands(
        int(yepcord.bot.id), [bot.rest.slash_command_builder("ping", "Answers")]
    )
    waiting = await told(bot, hikari.InteractionCreateEvent)
    yepcord.ben.command(room, "ping")
    with anyio.fail_after(10):
        event = await waiting
    await event.interaction.create_initial_response(hikari.ResponseType.MESSAGE_CREATE, "pong")
    said = yepcord.anna.say(room, "a plan")
    thread = await bot.rest.create_message_thread(int(room), int(said["id"]), "plans")
    await bot.rest.create_message(thread, "inside")
    assert yepcord.ben.texts(room)[0] == "pong"
    assert yepcord.ben.texts(str(int(thread.id))) == ["inside"]


async def test_a_lost_connection_is_resumed(yepcord, room, bot):
    waiting = await told(bot, hikari.GuildMessageCreateEvent, content="while you were away")
    resumed = await told(bot, hikari.ShardResumedEvent)
    yepcord.shim.drop()
    yepcord.anna.say(room, "while you were away")
    with anyio.fail_after(20):
        await waiting
        await resumed
