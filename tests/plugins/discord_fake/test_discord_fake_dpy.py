"""discord.py judges the fake: it logs in, parses all it is sent, and gets its own calls through."""

from __future__ import annotations

import io

import pytest

from peers.discord_fake import DiscordFake, Limits, Window

pytestmark = pytest.mark.anyio


async def test_it_finds_the_guild_with_channels_threads_and_itself(
    fake: DiscordFake, guild: int, channel: int, dpy
):
    [found] = dpy.guilds
    assert (found.id, found.name, found.me.id) == (guild, "Friends", fake.bot_id)
    assert [one.id for one in found.text_channels] == [channel]
    assert found.get_channel(channel).permissions_for(found.me).send_messages
    assert dpy.application_id == fake.bot_id
    info = await dpy.application_info()
    assert info.flags.gateway_message_content_limited
    assert info.verify_key == fake.verify_key


async def test_people_are_heard_in_guilds_threads_and_direct_conversations(
    fake: DiscordFake, channel: int, ada: int, dpy
):
    hello = fake.say(channel, ada, f"hello <@{fake.bot_id}> 🎉", files={"a.png": b"picture"})
    heard = await dpy.heard.next("message")
    assert (heard.id, heard.author.name, heard.mentions[0].id) == (hello, "ada", fake.bot_id)
    assert await heard.attachments[0].read() == b"picture"
    thread = fake.open_thread(channel, ada, "plans", message=hello)
    assert (await dpy.heard.next("thread_create")).id == thread == hello
    fake.say(thread, ada, "in the thread", stickers=["wave"])
    inside = await dpy.heard.next("message", lambda m: m.content == "in the thread")
    assert (inside.channel.id, inside.channel.parent_id) == (thread, channel)
    assert inside.stickers[0].name == "wave"
    fake.say(fake.dm(ada), ada, "psst")
    private = await dpy.heard.next("message", lambda m: m.content == "psst")
    assert private.guild is None
    assert private.channel.type.name == "private"


async def test_what_people_do_is_parsed(fake: DiscordFake, guild: int, channel: int, ada: int, dpy):
    first = fake.say(channel, ada, "one")
    reply = fake.say(channel, ada, "two", reply_to=first)
    heard = await dpy.heard.next("message", lambda m: m.id == reply)
    assert heard.reference.resolved.content == "one"
    fake.say(channel, ada, forward=first)
    forwarded = await dpy.heard.next("message", lambda m: m.message_snapshots)
    assert forwarded.message_snapshots[0].content == "one"
    fake.say(channel, ada, poll=("Tea?", ["Yes", "No"]))
    asked = await dpy.heard.next("message", lambda m: m.poll)
    assert [answer.text for answer in asked.poll.answers] == ["Yes", "No"]
    fake.edit(first, "ONE")
    edited = await dpy.heard.next("raw_message_edit")
    assert edited.message.content == "ONE"
    assert edited.message.edited_at is not None
    fake.react(first, ada, "👍")
    assert str((await dpy.heard.next("raw_reaction_add")).emoji) == "👍"
    fake.unreact(first, ada, "👍")
    assert (await dpy.heard.next("raw_reaction_remove")).message_id == first
    fake.type(channel, ada)
    assert (await dpy.heard.next("raw_typing")).channel_id == channel
    fake.delete_many(first, reply)
    assert (await dpy.heard.next("raw_bulk_message_delete")).message_ids == {first, reply}
    other = fake.add_channel(guild, "news", "announcement")
    assert (await dpy.heard.next("guild_channel_create")).id == other
    fake.rename(other, "old news")
    await dpy.heard.next("guild_channel_update")
    fake.remove_channel(other)
    assert (await dpy.heard.next("guild_channel_delete")).name == "old news"
    fake.outage(guild)
    await dpy.heard.next("guild_unavailable")
    fake.recover(guild)
    await dpy.heard.next("guild_available")
    fake.expel(guild)
    assert (await dpy.heard.next("guild_remove")).id == guild


async def test_what_it_says_is_what_people_see(fake: DiscordFake, channel: int, ada: int, dpy):
    import discord

    question = fake.say(channel, ada, "?")
    heard = await dpy.heard.next("message")
    async with heard.channel.typing():
        sent = await heard.reply(f"<@{ada}> hi", mention_author=False)
    await sent.edit(content="hello")
    file = discord.File(io.BytesIO(b"abc" * 1000), "a b.txt", description="letters")
    upload = await heard.channel.send("file", file=file)
    assert await upload.attachments[0].read() == b"abc" * 1000
    await heard.add_reaction("👍")
    view = discord.ui.View(timeout=None)
    view.add_item(discord.ui.Button(label="Go", custom_id="go"))
    await heard.channel.send("press", view=view)
    layout = discord.ui.LayoutView(timeout=None)
    layout.add_item(discord.ui.TextDisplay("**new** components"))
    await heard.channel.send(view=layout)
    asked, said, filed, buttons, displayed = fake.shown(channel)
    assert asked.id == question
    assert asked.reactions == {"👍": (fake.bot_id,)}
    assert [version.text for version in said.versions] == [f"<@{ada}> hi", "hello"]
    assert (said.reply_to, said.pinged.users) == (question, {ada})
    assert filed.files == {"a_b.txt": b"abc" * 1000}
    assert buttons.buttons == ("Go",)
    assert displayed.displayed == "**new** components"
    assert len(fake.typings(channel)) >= 1
    with pytest.raises(discord.HTTPException) as refused:
        await heard.channel.send("x" * 2001)
    assert refused.value.code == 50035
    assert "Must be 2000 or fewer in length." in str(refused.value)


async def test_it_reads_back_takes_back_and_deletes(fake: DiscordFake, channel: int, ada: int, dpy):
    for number in range(5):
        fake.say(channel, ada, f"m{number}")
    place = dpy.get_channel(channel)
    assert [m.content async for m in place.history(limit=2)] == ["m4", "m3"]
    [first] = [m async for m in place.history(limit=1, oldest_first=True)]
    after = [m.content async for m in place.history(after=first, limit=2)]
    assert after == ["m1", "m2"]
    sent = await place.send("mine")
    await sent.add_reaction("👀")
    again = await place.fetch_message(sent.id)
    assert [(str(one.emoji), one.me) for one in again.reactions] == [("👀", True)]
    await sent.remove_reaction("👀", dpy.user)
    await sent.delete()
    assert fake.message(sent.id).deleted
    assert fake.message(sent.id).reactions == {}


async def test_it_opens_threads_and_posts_in_forums(
    fake: DiscordFake, guild: int, channel: int, ada: int, dpy
):
    import discord

    question = fake.say(channel, ada, "?")
    heard = await dpy.heard.next("message")
    thread = await heard.create_thread(name="topic")
    assert thread.id == question
    await thread.send("in the thread")
    assert fake.said_by_bot(question) == ["in the thread"]
    alone = await heard.channel.create_thread(name="alone", type=discord.ChannelType.public_thread)
    assert fake.thread_named("alone") == alone.id
    await thread.edit(archived=True)
    forum = fake.add_channel(guild, "ideas", "forum", tags=["new"])
    place = await dpy.heard.next("guild_channel_create")
    post = await place.create_thread(
        name="an idea", content="what if", applied_tags=[place.available_tags[0]]
    )
    assert post.message.id == post.thread.id
    assert fake.said_by_bot(post.thread.id) == ["what if"]
    theirs = fake.post(forum, ada, "another", "or else")
    joined = await dpy.heard.next("message", lambda m: m.content == "or else")
    assert joined.id == joined.channel.id == theirs


async def test_a_command_is_deferred_answered_and_followed_up(
    fake: DiscordFake, guild: int, channel: int, ada: int, dpy
):
    import discord

    @dpy.tree.command(name="ask", description="Ask me")
    async def ask(interaction: discord.Interaction, question: str) -> None:
        await interaction.response.defer(thinking=True)
        await interaction.edit_original_response(content=f"About {question}: yes")
        await interaction.followup.send("and only for you", ephemeral=True)

    await dpy.tree.sync()
    assert fake.commands() == ["ask"]
    used = fake.slash(channel, ada, "ask", {"question": "tea"})
    await fake.reached(lambda: len(used.followups) == 1)
    assert used.answer == 5
    assert fake.said_by_bot(channel) == ["About tea: yes"]
    assert [one.text for one in fake.whispered(channel, ada)] == ["and only for you"]


async def test_a_button_opens_a_modal_whose_answer_changes_the_message(
    fake: DiscordFake, channel: int, ada: int, dpy
):
    import discord

    class Name(discord.ui.Modal, title="Who?"):
        name = discord.ui.TextInput(label="Name", custom_id="name")

        async def on_submit(self, interaction: discord.Interaction) -> None:
            await interaction.response.edit_message(content=f"Hi {self.name.value}", view=None)

    class Ask(discord.ui.View):
        @discord.ui.button(label="Tell", custom_id="tell")
        async def tell(self, interaction: discord.Interaction, button: object) -> None:
            await interaction.response.send_modal(Name())

    view = Ask(timeout=None)
    sent = await dpy.get_channel(channel).send("Who are you?", view=view)
    pressed = fake.press(sent.id, ada, "Tell")
    await fake.reached(lambda: pressed.modal)
    assert pressed.modal["title"] == "Who?"
    answered = fake.submit(pressed, {"name": "Ada"})
    await fake.reached(lambda: answered.answer)
    [shown] = fake.shown(channel)
    assert (shown.text, shown.buttons) == ("Hi Ada", ())
    view.stop()


async def test_it_resumes_after_a_cut_and_after_being_told_to(
    fake: DiscordFake, channel: int, ada: int, dpy
):
    fake.drop()
    fake.say(channel, ada, "while away")
    assert (await dpy.heard.next("message")).content == "while away"
    await dpy.heard.next("resumed")
    fake.reconnect()
    await dpy.heard.next("resumed")
    fake.say(channel, ada, "after")
    await dpy.heard.next("message", lambda m: m.content == "after")
    assert [one.resumed for one in fake.connections] == [False, True, True]
    assert all(one.path.startswith("/resume") for one in fake.connections[1:])
    assert len(fake.sessions) == 1


@pytest.mark.parametrize("headers", [True, False], ids=["with headers", "without"])
async def test_a_429_is_waited_out_and_nothing_is_said_twice(
    fake: DiscordFake, channel: int, dpy, headers: bool
):
    fake.limit("create_message", 0.05, count=2, headers=headers)
    await dpy.get_channel(channel).send("once")
    assert fake.said_by_bot(channel) == ["once"]
    assert [call.status for call in fake.calls_of("create_message")] == [429, 429, 200]


@pytest.mark.parametrize("fake", [{"clock": None}], indirect=True)
async def test_it_keeps_to_the_headers_of_a_bucket(fake: DiscordFake, channel: int, dpy):
    fake.limits = Limits({"create_message": Window(2, 0.2)})
    place = dpy.get_channel(channel)
    for number in range(5):
        await place.send(str(number))
    assert fake.said_by_bot(channel) == list("01234")
    assert fake.invalid_calls == 0


async def test_a_502_is_tried_again_with_the_same_nonce(fake: DiscordFake, channel: int, dpy):
    fake.garble("create_message", 502, apply=True)
    await dpy.get_channel(channel).send("once")
    assert fake.said_by_bot(channel) == ["once"]
    first, second = fake.calls_of("create_message")
    assert first.data["nonce"] == second.data["nonce"]
    assert first.data["enforce_nonce"]
