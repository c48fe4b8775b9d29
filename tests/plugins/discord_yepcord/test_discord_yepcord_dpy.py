"""discord.py, unpatched, lives on YEPCord behind the shim as it does on Discord."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
import attrs
import pytest
import yarl

from peers.yepcord import Yepcord

pytestmark = pytest.mark.anyio
discord = pytest.importorskip("discord")
FAST = {"chunk_guilds_at_startup": False, "guild_ready_timeout": 0.1}


@attrs.define(eq=False)
class Heard:
    """What a client was told, by name, in order."""

    queue: asyncio.Queue[tuple[str, Any]] = attrs.field(factory=asyncio.Queue)

    async def want(self, name: str, fits: Callable[[Any], bool] = lambda _: True) -> Any:
        """Return the next thing of a name that fits, within ten seconds."""
        with anyio.fail_after(10):
            while True:
                found, value = await self.queue.get()
                if found == name and fits(value):
                    return value


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
async def client(
    yepcord: Yepcord, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Any]:
    """A client that is ready, with a tree of commands."""
    from discord import app_commands
    from discord.gateway import DiscordWebSocket
    from discord.http import Route

    monkeypatch.setattr(Route, "BASE", yepcord.api_url)
    monkeypatch.setattr(DiscordWebSocket, "DEFAULT_GATEWAY", yarl.URL(yepcord.gateway_url))
    intents = discord.Intents.default()
    intents.message_content = True
    made = discord.Client(intents=intents, max_messages=None, **FAST)
    made.tree = app_commands.CommandTree(made)

    def hear(event: str, name: str) -> None:
        async def told(value: Any = None) -> None:
            await heard.queue.put((name, value))

        told.__name__ = event
        made.event(told)

    hear("on_ready", "ready")
    hear("on_resumed", "resumed")
    hear("on_message", "message")
    hear("on_raw_message_edit", "edit")
    hear("on_raw_reaction_add", "reaction")
    hear("on_interaction", "interaction")
    hear("on_thread_create", "thread")
    async with made:
        await made.login(yepcord.bot.token)
        running = asyncio.create_task(made.connect())
        await heard.want("ready")
        yield made
        await made.close()
        await running


async def test_it_hears_people_and_they_see_its_answers(yepcord, room, client, heard):
    assert [guild.id for guild in client.guilds] == [int(yepcord.guild_id)]
    said = yepcord.anna.say(room, "hello bot **x** 日本語 🎉")
    message = await heard.want("message", lambda one: one.id == int(said["id"]))
    assert (message.content, message.author.name) == ("hello bot **x** 日本語 🎉", "anna")
    assert message.guild.id == int(yepcord.guild_id)
    answer = await message.reply("an answer")
    await answer.edit(content="a better answer")
    await message.add_reaction("👍")
    yepcord.ben.react(said, "🎉")
    reaction = await heard.want("reaction", lambda one: one.user_id == int(yepcord.ben.id))
    assert (str(reaction.emoji), reaction.guild_id) == ("🎉", int(yepcord.guild_id))
    edited = yepcord.anna.edit(said, "hello again")
    assert (await heard.want("edit", lambda one: one.message_id == int(edited["id"]))) is not None
    asked, seen = yepcord.anna.messages(room)
    assert (asked["content"], seen["content"]) == ("hello again", "a better answer")
    assert seen["message_reference"]["message_id"] == said["id"]
    assert seen["author"]["bot"]
    assert {one["emoji"]["name"] for one in asked["reactions"]} == {"👍", "🎉"}


async def test_files_go_both_ways(yepcord, room, client, heard):
    content = bytes(range(256)) * 20
    yepcord.anna.upload(room, "mine.bin", content, "look", "application/octet-stream")
    message = await heard.want("message", lambda one: one.content == "look")
    assert await message.attachments[0].read() == content
    await message.channel.send(file=discord.File(io.BytesIO(content), "yours.bin"))
    [_, answer] = yepcord.ben.messages(room)
    assert answer["attachments"][0]["filename"] == "yours.bin"
    assert yepcord.ben.download(answer["attachments"][0]) == content


async def test_threads_of_both_are_open_to_both(yepcord, room, client, heard):
    said = yepcord.anna.say(room, "let us plan")
    message = await heard.want("message", lambda one: one.id == int(said["id"]))
    thread = await message.create_thread(name="plans")
    await thread.send("in the bot's thread")
    yepcord.ben.say(str(thread.id), "ben is here")
    inside = await heard.want("message", lambda one: one.content == "ben is here")
    assert (inside.channel.id, inside.channel.parent_id) == (thread.id, int(room))
    second = yepcord.anna.thread(yepcord.anna.say(room, "another"), "hers")
    await heard.want("thread", lambda one: one.id == int(second))
    yepcord.anna.say(second, "in anna's thread")
    inside = await heard.want("message", lambda one: one.content == "in anna's thread")
    await inside.reply("I see")
    assert yepcord.ben.texts(second) == ["in anna's thread", "I see"]


async def test_a_command_is_deferred_and_answered_in_three_messages(yepcord, room, client, heard):
    @client.tree.command(description="Ask something")
    async def ask(interaction: Any, question: str) -> None:
        await interaction.response.defer(thinking=True)
        await interaction.edit_original_response(content=f"{question}!")
        await interaction.followup.send("second")
        await interaction.followup.send("third")
        await heard.queue.put(("answered", interaction))

    await client.tree.sync()
    yepcord.ben.command(room, "ask", question="why")
    interaction = await heard.want("answered")
    assert interaction.user.id == int(yepcord.ben.id)
    assert yepcord.anna.texts(room) == ["why!", "second", "third"]


async def test_a_button_is_pressed_and_goes_away(yepcord, room, client, heard):
    class Choice(discord.ui.View):
        @discord.ui.button(label="Approve", custom_id="approve")
        async def approve(self, interaction: Any, button: Any) -> None:
            await interaction.response.edit_message(content="approved", view=None)
            await interaction.followup.send("for you alone", ephemeral=True)
            await heard.queue.put(("pressed", interaction))

    channel = client.get_partial_messageable(int(room))
    await channel.send("may I?", view=Choice(timeout=None))
    [shown] = yepcord.anna.messages(room)
    yepcord.anna.press(shown, "approve")
    pressed = await heard.want("pressed")
    assert pressed.user.id == int(yepcord.anna.id)
    [shown] = yepcord.anna.messages(room)
    assert (shown["content"], shown["components"]) == ("approved", [])
    assert [one["content"] for one in yepcord.shim.interactions.whispers.values()] == [
        "for you alone"
    ]


async def test_a_direct_conversation(yepcord, client, heard):
    conversation = yepcord.ben.conversation()
    yepcord.ben.say(conversation, "psst")
    message = await heard.want("message", lambda one: one.content == "psst")
    assert message.guild is None
    await message.reply("yes?")
    assert yepcord.ben.texts(conversation)[-2:] == ["psst", "yes?"]
    user = await client.fetch_user(int(yepcord.ben.id))
    await user.send("written first")
    assert yepcord.ben.texts(conversation)[-1] == "written first"


async def test_what_is_missed_comes_after_the_resume(yepcord, room, client, heard):
    session = client.ws.session_id
    yepcord.shim.drop()
    yepcord.anna.say(room, "while you were away")
    await heard.want("message", lambda one: one.content == "while you were away")
    assert client.ws.session_id == session
    yepcord.shim.reconnect()
    await heard.want("resumed")
    yepcord.anna.say(room, "still there?")
    await heard.want("message", lambda one: one.content == "still there?")


async def test_refusals_are_waited_out_or_told(yepcord, room, client):
    channel = client.get_partial_messageable(int(room))
    words = {"message": "You are being rate limited.", "retry_after": 0.05, "global": False}
    yepcord.shim.refuse("POST", "/messages", 429, words, times=2)
    async with anyio.create_task_group() as group:
        for number in range(3):
            group.start_soon(channel.send, f"part {number}")
    statuses = [call.status for call in yepcord.calls("POST", "/messages")]
    assert sorted(statuses) == [200, 200, 200, 429, 429]
    assert sorted(yepcord.anna.texts(room)) == ["part 0", "part 1", "part 2"]
    with pytest.raises(discord.HTTPException) as refused:
        await channel.send("x" * 2001)
    assert refused.value.code == 50035


async def test_a_message_with_the_same_nonce_is_shown_once(yepcord, room, client):
    channel = client.get_partial_messageable(int(room))
    first = await channel.send("once", nonce="nonce-of-a-part")
    second = await channel.send("once", nonce="nonce-of-a-part")
    assert first.id == second.id
    yepcord.shim.refuse("POST", "/messages", 502, "<html>bad gateway</html>")
    await channel.send("after the weather")
    assert yepcord.anna.texts(room) == ["once", "after the weather"]
