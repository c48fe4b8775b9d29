"""hikari judges the fake: it starts, parses all it is sent, and keeps to the gateway's rules."""

from __future__ import annotations

import pytest

from peers.discord_fake import DiscordFake

pytestmark = pytest.mark.anyio


async def test_it_finds_the_guild_and_hears_people(
    fake: DiscordFake, guild: int, channel: int, ada: int, hikari_bot
):
    bot, heard = hikari_bot
    arrived = await heard.next("GuildAvailableEvent")
    assert (arrived.guild.id, list(arrived.channels)) == (guild, [channel])
    hello = fake.say(channel, ada, f"hello <@{fake.bot_id}>", stickers=["wave"])
    said = await heard.next("GuildMessageCreateEvent")
    assert (said.message.id, said.author.username) == (hello, "ada")
    assert said.message.user_mentions_ids == [fake.bot_id]
    fake.say(fake.dm(ada), ada, "psst")
    assert (await heard.next("DMMessageCreateEvent")).content == "psst"
    assert (await bot.rest.fetch_my_user()).id == fake.bot_id
    assert (await bot.rest.fetch_application()).owner.id == fake.owner_id


async def test_it_answers_edits_uploads_reacts_and_shows_that_it_writes(
    fake: DiscordFake, channel: int, ada: int, hikari_bot
):
    import hikari

    bot, heard = hikari_bot
    question = fake.say(channel, ada, "?")
    event = await heard.next("GuildMessageCreateEvent")
    answer = await event.message.respond("answer", reply=True)
    await answer.edit("better answer")
    file = await bot.rest.create_message(channel, attachment=hikari.Bytes(b"abc", "a.txt"))
    assert await file.attachments[0].read() == b"abc"
    await event.message.add_reaction("👍")
    await bot.rest.trigger_typing(channel)
    first, second, third = fake.shown(channel)
    assert first.reactions == {"👍": (fake.bot_id,)}
    assert (second.text, second.reply_to, len(second.versions)) == ("better answer", question, 2)
    assert third.files == {"a.txt": b"abc"}
    assert len(fake.typings(channel)) == 1
    history = await bot.rest.fetch_messages(channel)
    assert [one.id for one in history] == [third.id, second.id, first.id]


async def test_the_same_nonce_is_one_message(fake: DiscordFake, channel: int, clock, hikari_bot):
    bot, _ = hikari_bot
    first = await bot.rest.create_message(channel, "once", nonce="n-1")
    again = await bot.rest.create_message(channel, "once", nonce="n-1")
    assert (first.id, fake.said_by_bot(channel)) == (again.id, ["once"])
    clock.advance(301)
    later = await bot.rest.create_message(channel, "once", nonce="n-1")
    assert later.id != first.id


async def test_threads_and_posts(fake: DiscordFake, guild: int, channel: int, ada: int, hikari_bot):
    bot, heard = hikari_bot
    question = fake.say(channel, ada, "?")
    thread = await bot.rest.create_message_thread(channel, question, "topic")
    assert thread.id == question
    forum = fake.add_channel(guild, "ideas", "forum")
    await heard.next("GuildChannelCreateEvent")
    post = await bot.rest.create_forum_post(forum, "an idea", "what if")
    assert fake.said_by_bot(post.id) == ["what if"]


async def test_commands_and_buttons(
    fake: DiscordFake, guild: int, channel: int, ada: int, hikari_bot
):
    import hikari

    bot, heard = hikari_bot
    command = bot.rest.slash_command_builder("ask", "Ask me")
    await bot.rest.set_application_commands(fake.bot_id, [command], guild)
    used = fake.slash(channel, ada, "ask")
    interaction = (await heard.next("CommandInteractionCreateEvent")).interaction
    await interaction.create_initial_response(hikari.ResponseType.DEFERRED_MESSAGE_CREATE)
    assert used.thinking
    row = bot.rest.build_message_action_row()
    row.add_interactive_button(hikari.ButtonStyle.PRIMARY, "go", label="Go")
    sent = await interaction.edit_initial_response("Shall I?", component=row)
    pressed = fake.press(sent.id, ada, "Go")
    interaction = (await heard.next("ComponentInteractionCreateEvent")).interaction
    await interaction.create_initial_response(
        hikari.ResponseType.MESSAGE_UPDATE, "I do", components=[]
    )
    assert pressed.answer == 7
    assert fake.said_by_bot(channel) == ["I do"]


async def test_it_resumes_after_a_cut_and_after_being_told_to(
    fake: DiscordFake, channel: int, ada: int, hikari_bot
):
    _, heard = hikari_bot
    fake.drop()
    fake.say(channel, ada, "while away")
    assert (await heard.next("GuildMessageCreateEvent")).content == "while away"
    await heard.next("ShardResumedEvent")
    fake.reconnect()
    await heard.next("ShardResumedEvent")
    assert [one.resumed for one in fake.connections] == [False, True, True]


async def test_an_invalid_session_is_begun_anew(
    fake: DiscordFake, channel: int, ada: int, hikari_bot
):
    _, heard = hikari_bot
    await heard.next("ShardReadyEvent")
    fake.invalidate()
    await heard.next("ShardReadyEvent")
    fake.say(channel, ada, "after")
    assert (await heard.next("GuildMessageCreateEvent")).content == "after"
    assert len(fake.sessions) == 1


@pytest.mark.parametrize("fake", [{"heartbeat": 0.3}], indirect=True)
async def test_it_leaves_a_connection_whose_heartbeats_are_not_acknowledged(
    fake: DiscordFake, channel: int, ada: int, hikari_bot
):
    _, heard = hikari_bot
    await fake.reached(lambda: fake.heartbeats() > 1)
    fake.mute()
    await fake.reached(lambda: fake.connections[0].closed_by == "client")
    fake.mute(muted=False)
    fake.say(channel, ada, "while away")
    assert (await heard.next("GuildMessageCreateEvent")).content == "while away"
    assert fake.connections[0].code not in (1000, 1001)
    assert fake.connections[-1].resumed


async def test_a_429_and_a_502_are_waited_out(fake: DiscordFake, channel: int, hikari_bot):
    bot, _ = hikari_bot
    fake.limit("create_message", 0.05)
    fake.garble("edit_message", 502)
    sent = await bot.rest.create_message(channel, "once")
    await sent.edit("twice")
    assert fake.said_by_bot(channel) == ["twice"]
    assert [call.status for call in fake.calls_of("create_message")] == [429, 200]
    assert [call.status for call in fake.calls_of("edit_message")] == [502, 200]
