"""aiogram judges the fake: its models parse every answer and every update."""

from __future__ import annotations

import anyio
import pytest

from peers.telegram_fake import TelegramFake
from peers.telegram_fake.samples import SAMPLES
from peers.telegram_fake.updates import KINDS

pytestmark = pytest.mark.anyio
PERSON, GROUP, FORUM = 700000001, -1500000001, -1001500000002


async def test_its_table_of_parameters_is_the_one_of_the_reference():
    """Each method takes what aiogram 3.31 knows of it, less what is deprecated there."""
    import aiogram.methods

    from peers.telegram_fake.parameters import FIELDS, PARAMETERS

    deprecated = {
        "allow_sending_without_reply",
        "callback_query_id",
        "disable_web_page_preview",
        "receiver_user_id",
        "reply_to_message_id",
    }
    for method, known in PARAMETERS.items():
        model = getattr(aiogram.methods, method[0].upper() + method[1:])
        own = set() if method == "answerCallbackQuery" else deprecated
        assert set(known) == set(model.model_fields) - own, method
    for name, fields in FIELDS.items():
        title = "".join(part.title() for part in name.split("_"))
        model = getattr(aiogram.types, f"Input{title}" if name == "rich_message" else title)
        assert fields == set(model.model_fields), name
    assert set(aiogram.types.Update.model_fields) - {"update_id"} == KINDS


async def test_the_account_and_the_chats_are_complete_objects(fake: TelegramFake, bot):
    fake.add_chat(GROUP, "group", "Friends")
    me = await bot.get_me()
    assert (me.id, me.is_bot, me.username) == (fake.bot_id, True, "dragoman_bot")
    chat = await bot.get_chat(GROUP)
    assert (chat.id, chat.type, chat.title) == (GROUP, "group", "Friends")


async def test_updates_come_again_until_a_higher_offset_confirms_them(fake: TelegramFake, bot):
    first = fake.say(PERSON, PERSON, "one").update_id
    second = fake.say(PERSON, PERSON, "two").update_id
    assert second == first + 1
    for _ in range(2):
        found = await bot.get_updates(limit=100)
        assert [update.update_id for update in found][:1] == [first]
    [left] = await bot.get_updates(offset=second)
    assert left.message.text == "two"
    assert fake.pending() == (second,)
    fake.cut("getUpdates", after_apply=True)
    from aiogram.exceptions import TelegramNetworkError

    with pytest.raises(TelegramNetworkError):
        await bot.get_updates(offset=second + 1)
    assert fake.pending() == (), "the request confirms, not its answer"


async def test_every_kind_of_update_that_people_cause_is_parsed(fake: TelegramFake, bot):
    kinds = sorted(KINDS)
    await bot.get_updates(allowed_updates=kinds)
    fake.person(PERSON, "Ada", username="ada")
    said = fake.say(GROUP, PERSON, "@dragoman_bot hi 🎉 /stop")
    fake.edit(GROUP, said.message_id, "hello")
    fake.react(GROUP, said.message_id, PERSON, "👍")
    fake.say(PERSON, PERSON, "hi")
    fake.block(PERSON)
    fake.unblock(PERSON)
    fake.migrate(GROUP, -1001500000009)
    topic = fake.topic(FORUM, "Plans", PERSON)
    fake.say(FORUM, PERSON, "in the topic", thread=topic)
    fake.add_chat(-1001500000005, "channel", "News")
    posted = fake.say(-1001500000005, 1, "post")
    fake.edit(-1001500000005, posted.message_id, "post, better")
    found = []
    while fake.pending():
        found += await bot.get_updates(offset=found[-1].update_id + 1 if found else None)
    assert [update.event_type for update in found] == [
        "message",
        "edited_message",
        "message_reaction",
        "message",
        "my_chat_member",
        "my_chat_member",
        "message",
        "message",
        "message",
        "message",
        "channel_post",
        "edited_channel_post",
    ]
    group, edited, reaction, _, blocked, _, moved, arrived, opened, inside, *_ = found
    assert [e.type for e in group.message.entities] == ["mention", "bot_command"]
    assert group.message.entities[1].extract_from(group.message.text) == "/stop"
    assert group.message.from_user.username == "ada"
    assert edited.edited_message.edit_date is not None
    assert reaction.message_reaction.new_reaction[0].emoji == "👍"
    assert blocked.my_chat_member.new_chat_member.status == "kicked"
    assert moved.message.migrate_to_chat_id == -1001500000009
    assert arrived.message.migrate_from_chat_id == GROUP
    assert opened.message.forum_topic_created.name == "Plans"
    assert inside.message.is_topic_message
    assert inside.message.chat.is_forum
    assert inside.message.reply_to_message.forum_topic_created is not None


async def test_every_other_kind_can_be_sent_as_it_is(fake: TelegramFake, bot):
    from aiogram.types import Update

    assert set(SAMPLES) == KINDS
    await bot.get_updates(allowed_updates=sorted(KINDS))
    numbers = [fake.enqueue({kind: body}) for kind, body in SAMPLES.items()]
    assert numbers == list(range(numbers[0], numbers[0] + len(KINDS)))
    found = await bot.get_updates(offset=numbers[0])
    for update, (kind, body) in zip(found, SAMPLES.items(), strict=True):
        assert update.event_type == kind
        assert Update.model_validate({"update_id": 1, kind: body}).event_type == kind


async def test_a_kind_that_nobody_knows_yet_is_passed_on(fake: TelegramFake, bot):
    number = fake.enqueue({"quantum_message": {"spin": "up"}})
    [update] = await bot.get_updates()
    assert update.update_id == number


async def test_what_the_bot_says_is_what_people_see(fake: TelegramFake, bot, clock):
    question = fake.say(PERSON, PERSON, "?")
    sent = await bot.send_message(PERSON, "  *bold* 🎉\n", parse_mode="MarkdownV2")
    assert sent.text == "bold 🎉"
    assert [(e.type, e.offset, e.length) for e in sent.entities] == [("bold", 0, 4)]
    clock.advance(5)
    edited = await bot.edit_message_text(
        "<b>bolder</b>", chat_id=PERSON, message_id=sent.message_id, parse_mode="HTML"
    )
    assert (edited.text, edited.message_id) == ("bolder", sent.message_id)
    assert edited.edit_date - sent.date.timestamp() == 5
    assert await bot.send_chat_action(PERSON, "typing")
    asked, shown = fake.chat(PERSON)
    assert (asked.message_id, asked.text) == (question.message_id, "?")
    assert [version.text for version in shown.versions] == ["bold 🎉", "bolder"]
    assert shown.versions[1].at - shown.versions[0].at == pytest.approx(5)
    assert len(fake.notices(PERSON)) == 1
    assert await bot.delete_message(PERSON, sent.message_id)
    assert fake.chat(PERSON)[1].deleted
    assert fake.said_by_bot(PERSON) == []


async def test_refusals_arrive_as_the_errors_that_programs_branch_on(fake: TelegramFake, bot):
    from aiogram.exceptions import TelegramBadRequest, TelegramForbiddenError

    asked = fake.say(PERSON, PERSON, "?").message_id
    mine = (await bot.send_message(PERSON, "mine")).message_id
    gone = (await bot.send_message(PERSON, "gone")).message_id
    fake.forget(PERSON, gone)

    async def refused(call, words: str) -> None:
        with pytest.raises(TelegramBadRequest) as caught:
            await call
        assert words in caught.value.message

    edit = bot.edit_message_text
    await refused(bot.send_message(1, "x"), "Bad Request: chat not found")
    await refused(bot.send_message(PERSON, ""), "Bad Request: message text is empty")
    await refused(bot.send_message(PERSON, " \n"), "Bad Request: text must be non-empty")
    await refused(bot.send_message(PERSON, "🎉" * 2049), "Bad Request: message is too long")
    await refused(bot.send_message(PERSON, "x", message_thread_id=9), "message thread not found")
    await refused(
        edit("mine", chat_id=PERSON, message_id=mine), "Bad Request: message is not modified: "
    )
    await refused(edit("x", chat_id=PERSON, message_id=gone), "message to edit not found")
    await refused(edit("x", chat_id=PERSON, message_id=asked), "message can't be edited")
    await refused(edit("x" * 4097, chat_id=PERSON, message_id=mine), "MESSAGE_TOO_LONG")
    await refused(bot.delete_message(PERSON, 999), "message to delete not found")
    await refused(
        bot.send_message(PERSON, "a.b", parse_mode="MarkdownV2"),
        "can't parse entities: Character '.' is reserved and must be escaped with the preceding '\\'",
    )
    await refused(
        bot.send_message(PERSON, "<b>x", parse_mode="HTML"),
        "can't parse entities: Can't find end tag corresponding to start tag \"b\"",
    )
    assert (await bot.send_message(PERSON, "🎉" * 2048)).text == "🎉" * 2048
    fake.block(PERSON)
    with pytest.raises(TelegramForbiddenError, match="bot was blocked by the user"):
        await bot.send_message(PERSON, "x")
    fake.say(GROUP, PERSON, "hi")
    fake.kick(GROUP)
    with pytest.raises(TelegramForbiddenError, match="bot was kicked from the group chat"):
        await bot.send_message(GROUP, "x")


async def test_a_flood_limit_names_its_seconds(fake: TelegramFake, bot, clock):
    from aiogram.exceptions import TelegramRetryAfter

    fake.say(PERSON, PERSON, "?")
    fake.fail("sendMessage", status=429, retry_after=7, count=2)
    for _ in range(2):
        with pytest.raises(TelegramRetryAfter) as caught:
            await bot.send_message(PERSON, "x")
        assert caught.value.retry_after == 7
    await bot.send_message(PERSON, "x")
    assert fake.said_by_bot(PERSON) == ["x"]


async def test_a_group_that_moved_says_where(fake: TelegramFake, bot):
    from aiogram.exceptions import TelegramMigrateToChat

    fake.say(GROUP, PERSON, "?")
    fake.migrate(GROUP, -1001500000009)
    with pytest.raises(TelegramMigrateToChat) as caught:
        await bot.send_message(GROUP, "x")
    assert caught.value.migrate_to_chat_id == -1001500000009
    await bot.send_message(caught.value.migrate_to_chat_id, "x")
    assert fake.said_by_bot(-1001500000009) == ["x"]


async def test_the_older_of_two_polls_gets_the_conflict(fake: TelegramFake, bot):
    from aiogram.exceptions import TelegramConflictError

    ended = {}

    async def poll(name: str) -> None:
        try:
            ended[name] = await bot.get_updates(timeout=20)
        except TelegramConflictError as conflict:
            ended[name] = conflict

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(poll, "older")
        await fake.reached(lambda: len(fake.calls) == 1)
        tasks.start_soon(poll, "newer")
        await fake.reached(lambda: "answered" in fake.calls[0].stages)
        fake.say(PERSON, PERSON, "hi")
    assert "terminated by other getUpdates request" in ended["older"].message
    assert [update.message.text for update in ended["newer"]] == ["hi"]


async def test_a_webhook_excludes_polling(fake: TelegramFake, bot):
    from aiogram.exceptions import TelegramConflictError

    assert await bot.set_webhook("https://example.org/hook", secret_token="a-b_c")
    info = await bot.get_webhook_info()
    assert info.url == "https://example.org/hook"
    with pytest.raises(TelegramConflictError, match="while webhook is active"):
        await bot.get_updates()
    assert await bot.delete_webhook()
    assert await bot.get_updates() == []


async def test_files_go_both_ways(fake: TelegramFake, bot):
    from aiogram.types import BufferedInputFile, InputMediaPhoto

    fake.say(PERSON, PERSON, "look", photo=b"jpeg", media_group="g")
    fake.say(PERSON, PERSON, document=("a.txt", b"abc"), media_group="g")
    photo, document = [update.message for update in await bot.get_updates()]
    assert photo.caption == "look"
    assert photo.media_group_id == document.media_group_id == "g"
    found = await bot.get_file(document.document.file_id)
    assert (await bot.download_file(found.file_path)).read() == b"abc"
    sent = await bot.send_document(PERSON, BufferedInputFile(b"xyz", "b.txt"), caption="here")
    assert (sent.document.file_name, sent.caption) == ("b.txt", "here")
    again = await bot.send_document(PERSON, sent.document.file_id)
    assert fake.file(again.document.file_id) == b"xyz"
    album = await bot.send_media_group(
        PERSON,
        [
            InputMediaPhoto(media=BufferedInputFile(b"1", "1.jpg"), caption="first"),
            InputMediaPhoto(media=BufferedInputFile(b"2", "2.jpg")),
        ],
    )
    assert len({message.media_group_id for message in album}) == 1
    assert [fake.file(one.files[0]) for one in fake.chat(PERSON)[-2:]] == [b"1", b"2"]
    assert (await bot.send_photo(PERSON, BufferedInputFile(b"p", "p.jpg"))).photo[-1].file_size == 1


async def test_buttons_topics_reactions_drafts_and_commands(fake: TelegramFake, bot):
    from aiogram.exceptions import TelegramBadRequest
    from aiogram.types import (
        BotCommand,
        InlineKeyboardButton,
        InlineKeyboardMarkup,
        ReactionTypeEmoji,
    )

    def keyboard(data: str) -> InlineKeyboardMarkup:
        button = InlineKeyboardButton(text="Yes", callback_data=data)
        return InlineKeyboardMarkup(inline_keyboard=[[button]])

    asked = fake.say(PERSON, PERSON, "?").message_id
    sent = await bot.send_message(PERSON, "Sure?", reply_markup=keyboard("y" * 64))
    assert fake.chat(PERSON)[-1].buttons == (("Yes",),)
    pressed = fake.press(PERSON, sent.message_id, PERSON, "y" * 64)
    [update] = await bot.get_updates(offset=pressed.update_id)
    assert (update.callback_query.id, update.callback_query.data) == (pressed.query_id, "y" * 64)
    assert await update.callback_query.answer("Done")
    assert fake.answer_to(pressed.query_id)["text"] == "Done"
    with pytest.raises(TelegramBadRequest, match="query is too old"):
        await update.callback_query.answer()
    await bot.edit_message_reply_markup(chat_id=PERSON, message_id=sent.message_id)
    assert fake.chat(PERSON)[-1].buttons == ()
    with pytest.raises(TelegramBadRequest, match="BUTTON_DATA_INVALID"):
        await bot.send_message(PERSON, "Sure?", reply_markup=keyboard("y" * 65))
    assert await bot.set_message_reaction(PERSON, asked, [ReactionTypeEmoji(emoji="👀")])
    assert fake.chat(PERSON)[0].reactions == {fake.bot_id: ("👀",)}
    assert await bot.send_message_draft(PERSON, 5, text="thinking of")
    assert [draft.text for draft in fake.drafts(PERSON)] == ["thinking of"]
    assert await bot.set_my_commands([BotCommand(command="help", description="Help")])
    assert fake.commands() == [{"command": "help", "description": "Help"}]

    fake.add_chat(FORUM, "forum", bot_is_admin=True)
    topic = await bot.create_forum_topic(FORUM, "Plans")
    inside = await bot.send_message(FORUM, "x", message_thread_id=topic.message_thread_id)
    assert inside.is_topic_message
    assert [one.text for one in fake.chat(FORUM, topic.message_thread_id)] == ["", "x"]
    assert await bot.close_forum_topic(FORUM, topic.message_thread_id)
    with pytest.raises(TelegramBadRequest, match="message thread not found"):
        await bot.send_message(FORUM, "x", message_thread_id=1)
    with pytest.raises(TelegramBadRequest, match="TEXTDRAFT_PEER_INVALID"):
        await bot.send_message_draft(FORUM, 5, text="x")
