"""Channels and their discussions, quotations, forwards, reactions, files, the bot's own face."""

from __future__ import annotations

from typing import Any

import pytest

from peers.telegram_fake import TelegramFake
from peers.telegram_fake.origins import from_channel, from_chat, from_hidden, from_user

pytestmark = pytest.mark.anyio
PERSON, OTHER, GROUP = 700000001, 700000002, -1500000001
FORUM, CHANNEL, DISCUSSION = -1001500000002, -1001500000005, -1001500000006


async def answered(http, method: str, **params: Any) -> Any:
    body = (await http.post(method, json=params)).json()
    assert body["ok"], body
    return body["result"]


async def refused(http, method: str, **params: Any) -> str:
    body = (await http.post(method, json=params)).json()
    assert not body["ok"], body
    return body["description"].removeprefix("Bad Request: ")


async def updates(fake: TelegramFake, bot) -> list[Any]:
    found: list[Any] = []
    while fake.pending():
        found += await bot.get_updates(offset=found[-1].update_id + 1 if found else None)
    return found


async def test_a_channels_posts_are_discussed_in_its_group(fake: TelegramFake, bot):
    fake.add_chat(CHANNEL, "channel", "News")
    fake.add_chat(DISCUSSION, "supergroup", "About the news")
    fake.link(CHANNEL, DISCUSSION)
    posted = fake.say(CHANNEL, 1, "post")
    shown = fake.repeated(CHANNEL, posted.message_id)
    comment = fake.say(DISCUSSION, PERSON, "hm", reply_to=shown)
    fake.say(DISCUSSION, OTHER, "no", reply_to=comment.message_id)
    fake.edit(CHANNEL, posted.message_id, "better post")
    post, forwarded, first, second, edited, changed = await updates(fake, bot)
    assert (post.channel_post.text, post.channel_post.sender_chat.id) == ("post", CHANNEL)
    message = forwarded.message
    assert message.is_automatic_forward
    assert (message.from_user.id, message.sender_chat.id) == (777000, CHANNEL)
    assert message.forward_origin.message_id == posted.message_id
    assert message.forward_origin.chat.title == "News"
    assert message.message_thread_id is None
    for one in (first, second):
        assert one.message.message_thread_id == shown, "a thread without a topic"
        assert one.message.is_topic_message is None
    assert edited.edited_channel_post.text == "better post"
    assert changed.edited_message.message_id == shown
    assert (await bot.get_chat(CHANNEL)).linked_chat_id == DISCUSSION
    mine = await bot.send_message(CHANNEL, "from the bot")
    [told] = [u for u in await updates(fake, bot) if u.message and u.message.text == mine.text]
    assert told.message.is_automatic_forward, "its own posts come back from the group"
    await mine.edit_text("again")
    assert fake.chat(DISCUSSION)[-1].text == "again"


@pytest.mark.parametrize("fake", [{"private_topics": True}], indirect=True)
async def test_private_chats_have_topics_where_the_bot_has_them(fake: TelegramFake, bot, ptb):
    assert (await bot.get_me()).has_topics_enabled
    fake.say(PERSON, PERSON, "hi")
    topic = await bot.create_forum_topic(PERSON, "Plans")
    number = topic.message_thread_id
    sent = await bot.send_message(PERSON, "inside", message_thread_id=number)
    assert sent.is_topic_message
    assert await bot.edit_forum_topic(PERSON, number, name="Other plans")
    assert await bot.send_message_draft(PERSON, 3, message_thread_id=number, text="so")
    assert fake.preview(PERSON) is None
    assert fake.preview(PERSON, number).text == "so"
    own = fake.topic(PERSON, "Mine", PERSON)
    fake.say(PERSON, PERSON, "there", thread=own)
    *_, opened, there = await updates(fake, ptb)
    assert opened.message.forum_topic_created.name == "Mine"
    assert (there.message.message_thread_id, there.message.is_topic_message) == (own, True)
    assert await bot.delete_forum_topic(PERSON, own)


async def test_without_them_a_private_chat_is_no_forum(fake: TelegramFake, http, bot):
    assert (await bot.get_me()).has_topics_enabled is False
    fake.say(PERSON, PERSON, "hi")
    said = await refused(http, "createForumTopic", chat_id=PERSON, name="Plans")
    assert said == "the chat is not a forum"


async def test_reactions_are_told_by_name_in_groups_and_by_number_in_channels(
    fake: TelegramFake, bot
):
    kinds = ["message_reaction", "message_reaction_count"]
    await bot.get_updates(allowed_updates=kinds)
    fake.add_chat(CHANNEL, "channel")
    asked = fake.say(GROUP, PERSON, "?").message_id
    posted = fake.say(CHANNEL, 1, "post").message_id
    fake.react(GROUP, asked, PERSON, "👍", "5368324170671202286", "paid")
    fake.react(CHANNEL, posted, PERSON, "👍")
    fake.react(CHANNEL, posted, OTHER, "👍", "🔥")
    named, one, two = await updates(fake, bot)
    assert [r.type for r in named.message_reaction.new_reaction] == [
        "emoji",
        "custom_emoji",
        "paid",
    ]
    assert named.message_reaction.user.id == PERSON
    assert [r.total_count for r in one.message_reaction_count.reactions] == [1]
    counts = two.message_reaction_count.reactions
    assert [(r.type.emoji, r.total_count) for r in counts] == [("👍", 2), ("🔥", 1)]


async def test_answers_quote_words_here_and_elsewhere(fake: TelegramFake, bot, http):
    from aiogram.exceptions import TelegramBadRequest
    from aiogram.types import ReplyParameters

    asked = fake.say(GROUP, PERSON, "🎉 tea or coffee?").message_id
    fake.say(GROUP, OTHER, "that", reply_to=asked, quoting="coffee")
    fake.say(OTHER, OTHER, "see there", reply_to=(GROUP, asked), quoting="tea")
    story = {"reply_to_story": {"chat": {"id": PERSON, "type": "private"}, "id": 5}}
    fake.say(PERSON, PERSON, "nice", extra=story)
    _, here, elsewhere, told = await updates(fake, bot)
    assert here.message.reply_to_message.message_id == asked
    assert (here.message.quote.text, here.message.quote.position) == ("coffee", 10)
    external = elsewhere.message.external_reply
    assert (external.chat.id, external.message_id, external.origin.type) == (GROUP, asked, "user")
    assert elsewhere.message.quote.text == "tea"
    assert elsewhere.message.reply_to_message is None
    assert told.message.reply_to_story.id == 5

    reply = ReplyParameters(message_id=asked, quote="*tea*", quote_parse_mode="MarkdownV2")
    sent = await bot.send_message(GROUP, "that", reply_parameters=reply)
    assert (sent.quote.text, sent.quote.entities[0].type) == ("tea", "bold")
    wrong = ReplyParameters(message_id=asked, quote="water")
    with pytest.raises(TelegramBadRequest, match="QUOTE_TEXT_INVALID"):
        await bot.send_message(GROUP, "that", reply_parameters=wrong)
    far = {"message_id": asked, "chat_id": GROUP}
    found = await answered(
        http, "sendMessage", chat_id=PERSON, text="see there", reply_parameters=far
    )
    assert found["external_reply"]["message_id"] == asked


async def test_forwards_tell_where_they_are_from(fake: TelegramFake, bot, ptb):
    ada = fake.person(OTHER, "Ada", username="ada")
    group = fake.add_chat(GROUP, "group", "Friends")
    channel = fake.add_chat(CHANNEL, "channel", "News")
    said = fake.say(OTHER, OTHER, "words", photo=b"jpeg").message_id
    posted = fake.say(CHANNEL, 1, "post").message_id
    first = fake.forward(PERSON, PERSON, (OTHER, said))
    fake.forward(PERSON, PERSON, (OTHER, said), hidden=True)
    fake.forward(PERSON, PERSON, (CHANNEL, posted))
    fake.forward(GROUP, PERSON, (PERSON, first.message_id))
    for kind in (
        from_user(ada, 1),
        from_hidden("Nobody", 1),
        from_chat(group, 1, "boss"),
        from_channel(channel, 9, 1, "editor"),
    ):
        fake.say(PERSON, PERSON, "made up", extra={"forward_origin": kind})
    found = await updates(fake, bot)
    origins = [u.message.forward_origin for u in found if u.message and u.message.forward_origin]
    assert [one.type for one in origins] == [
        "user",
        "hidden_user",
        "channel",
        "user",
        "user",
        "hidden_user",
        "chat",
        "channel",
    ]
    assert origins[0].sender_user.username == origins[3].sender_user.username == "ada"
    assert (origins[1].sender_user_name, origins[2].message_id) == ("Ada", posted)
    assert (origins[6].author_signature, origins[7].author_signature) == ("boss", "editor")
    assert found[2].message.photo[-1].file_id
    fake.forward(PERSON, PERSON, (CHANNEL, posted))
    [update] = await ptb.get_updates(offset=fake.pending()[-1])
    assert update.message.forward_origin.chat.title == "News"


async def test_a_message_that_was_sent_by_way_of_the_bot_has_no_chat(fake: TelegramFake, bot):
    from aiogram.exceptions import TelegramBadRequest
    from aiogram.types import InlineKeyboardButton, InlineKeyboardMarkup, InputRichMessage

    keyboard = {"inline_keyboard": [[{"text": "Go", "callback_data": "go"}]]}
    name = fake.inline_message("Ready?", keyboard)
    pressed = fake.press_inline(name, PERSON, "go")
    [update] = await updates(fake, bot)
    query = update.callback_query
    assert (query.message, query.inline_message_id, query.data) == (None, name, "go")
    assert await query.answer("Went")
    assert fake.answer_to(pressed.query_id)["text"] == "Went"
    again = InlineKeyboardMarkup(
        inline_keyboard=[[InlineKeyboardButton(text="Again", callback_data="again")]]
    )
    assert await bot.edit_message_text("Went.", inline_message_id=name, reply_markup=again) is True
    assert fake.inline(name).text == "Went."
    assert fake.inline(name).buttons == (("Again",),)
    rich = InputRichMessage(markdown="# Went")
    assert await bot.edit_message_text(inline_message_id=name, rich_message=rich) is True
    assert fake.inline(name).blocks[0]["type"] == "heading"
    with pytest.raises(LookupError):
        fake.press_inline(name, PERSON, "go")
    with pytest.raises(TelegramBadRequest, match="MESSAGE_ID_INVALID"):
        await bot.edit_message_text("x", inline_message_id="AgAA")


async def test_several_messages_are_deleted_at_once(fake: TelegramFake, http):
    asked = fake.say(PERSON, PERSON, "?").message_id
    sent = (await answered(http, "sendMessage", chat_id=PERSON, text="x"))["message_id"]
    ids = {"chat_id": PERSON, "message_ids": [asked, 9999, sent]}
    assert await answered(http, "deleteMessages", **ids) is True
    assert [one.deleted for one in fake.chat(PERSON)] == [True, True]
    none = await refused(http, "deleteMessages", chat_id=PERSON, message_ids=[])
    assert none == "message identifiers are not specified"
    many = await refused(http, "deleteMessages", chat_id=PERSON, message_ids=list(range(101)))
    assert many == "too many message identifiers specified"
    fake.fail("deleteMessages", status=429, retry_after=2)
    assert "retry after 2" in await refused(http, "deleteMessages", **ids)
    fake.add_chat(GROUP, "group", bot_is_admin=False)
    foreign = fake.say(GROUP, PERSON, "mine").message_id
    said = await refused(http, "deleteMessages", chat_id=GROUP, message_ids=[foreign])
    assert said == "message can't be deleted"


async def test_commands_are_kept_by_scope_and_language(fake: TelegramFake, bot, http):
    from aiogram.types import BotCommand, BotCommandScopeChat, BotCommandScopeChatMember

    fake.say(GROUP, PERSON, "?")
    general, here = (
        BotCommand(command="help", description="Help"),
        BotCommandScopeChat(chat_id=GROUP),
    )
    local = BotCommand(command="hilfe", description="Hilfe")
    one = BotCommandScopeChatMember(chat_id=GROUP, user_id=PERSON)
    assert await bot.set_my_commands([general])
    assert await bot.set_my_commands([local], scope=here, language_code="de")
    assert await bot.set_my_commands([local, general], scope=one)
    assert [one.command for one in await bot.get_my_commands()] == ["help"]
    assert await bot.get_my_commands(scope=here) == []
    [found] = await bot.get_my_commands(scope=here, language_code="de")
    assert (found.command, found.description) == ("hilfe", "Hilfe")
    assert len(fake.commands(f"chat_member:{GROUP}:{PERSON}")) == 2
    assert await bot.delete_my_commands(scope=one)
    assert fake.commands(f"chat_member:{GROUP}:{PERSON}") == []
    commands = [{"command": "help", "description": "Help"}]

    async def no(**scope: Any) -> str:
        return await refused(http, "setMyCommands", commands=commands, scope=scope)

    assert "Unsupported type" in await no(type="everybody")
    assert "chat not found" in await no(type="chat", chat_id=4711)
    assert 'find field "user_id"' in await no(type="chat_member", chat_id=GROUP)
    wrong = {"commands": commands, "language_code": "german"}
    assert await refused(http, "setMyCommands", **wrong) == "LANG_CODE_INVALID"


async def test_the_menu_button_and_the_name_can_be_set(fake: TelegramFake, bot, http):
    from aiogram.types import MenuButtonCommands

    fake.say(PERSON, PERSON, "?")
    fake.say(GROUP, PERSON, "?")
    assert (await bot.get_chat_menu_button(PERSON)).type == "default"
    assert await bot.set_chat_menu_button(menu_button=MenuButtonCommands())
    assert (await bot.get_chat_menu_button(PERSON)).type == "commands"
    web = {"type": "web_app", "text": "Open", "web_app": {"url": "https://a.example"}}
    await answered(http, "setChatMenuButton", chat_id=PERSON, menu_button=web)
    assert (await bot.get_chat_menu_button(PERSON)).text == "Open"
    assert "private chat" in await refused(http, "setChatMenuButton", chat_id=GROUP)
    assert "Unsupported" in await refused(http, "setChatMenuButton", menu_button={"type": "x"})
    assert (await bot.get_my_name()).name == "Dragoman"
    assert await bot.set_my_name("Übersetzer", language_code="de")
    assert (await bot.get_my_name(language_code="de")).name == "Übersetzer"
    assert (await bot.get_my_name()).name == "Dragoman"


async def test_files_of_every_kind_come_in_and_large_ones_cannot_be_fetched(
    fake: TelegramFake, bot, http
):
    kinds = ("voice", "audio", "video", "animation", "video_note", "sticker", "document")
    for kind in kinds:
        fake.say(PERSON, PERSON, file=(kind, f"{kind}.bin", b"content"))
    for kind, update in zip(kinds, await updates(fake, bot), strict=True):
        sent = getattr(update.message, kind)
        found = await bot.get_file(sent.file_id)
        assert (await bot.download_file(found.file_path)).read() == b"content"
    album = fake.album(PERSON, PERSON, [b"1", b"2", b"3"], "look")
    found = await updates(fake, bot)
    assert [u.message.caption for u in found[-3:]] == ["look", None, None]
    assert len({u.message.media_group_id for u in found[-3:]}) == 1
    assert len(album) == 3
    fake.say(PERSON, PERSON, file=("video", "long.mp4", bytes((20 << 20) + 1)))
    [large] = (await updates(fake, bot))[-1:]
    assert large.message.video.file_size == (20 << 20) + 1
    said = await refused(http, "getFile", file_id=large.message.video.file_id)
    assert said == "file is too big"


async def test_albums_mix_pictures_and_films_and_nothing_else(fake: TelegramFake, bot, http, ptb):
    from aiogram.types import BufferedInputFile, InputMediaPhoto, InputMediaVideo
    from telegram import InputMediaAudio

    fake.say(PERSON, PERSON, "?")
    photo = await bot.send_photo(PERSON, BufferedInputFile(b"p", "p.jpg"))
    known = photo.photo[-1].file_id
    album = await bot.send_media_group(
        PERSON,
        [
            InputMediaPhoto(media=known, caption="both"),
            InputMediaVideo(media=BufferedInputFile(b"v", "v.mp4")),
        ],
    )
    assert (album[0].caption, album[1].video.file_name) == ("both", "v.mp4")
    assert (
        len(await ptb.send_media_group(PERSON, [InputMediaAudio(b"1"), InputMediaAudio(b"2")])) == 2
    )
    again = await bot.send_animation(PERSON, BufferedInputFile(b"a", "a.gif"))
    assert fake.file(again.animation.file_id) == b"a"
    assert (await ptb.send_video_note(PERSON, b"round")).video_note.length
    for kind in ("document", "audio"):
        media = [{"type": "photo", "media": known}, {"type": kind, "media": known}]
        said = await refused(http, "sendMediaGroup", chat_id=PERSON, media=media)
        assert said == f"{kind} can't be mixed with other media types"
