"""python-telegram-bot judges the fake: a second reading of the same protocol."""

from __future__ import annotations

import anyio
import pytest

from peers.telegram_fake import TelegramFake
from peers.telegram_fake.samples import SAMPLES
from peers.telegram_fake.updates import KINDS

pytestmark = pytest.mark.anyio
PERSON, GROUP, FORUM = 700000001, -1500000001, -1001500000002


async def test_its_application_receives_answers_and_edits(fake: TelegramFake):
    from telegram import Update
    from telegram.ext import Application, MessageHandler, filters
    from telegram.request import HTTPXRequest

    def request() -> HTTPXRequest:
        return HTTPXRequest(httpx_kwargs={"trust_env": False})

    async def answer(update: Update, context) -> None:
        sent = await update.message.reply_text(f"{update.message.text}?", do_quote=True)
        await sent.edit_text(f"{update.message.text}!")

    application = (
        Application.builder()
        .token(fake.token)
        .base_url(f"{fake.url}/bot")
        .base_file_url(f"{fake.url}/file/bot")
        .request(request())
        .get_updates_request(request())
        .build()
    )
    application.add_handler(MessageHandler(filters.TEXT, answer))
    async with application:
        await application.start()
        await application.updater.start_polling(timeout=1)
        asked = fake.say(PERSON, PERSON, "hi")
        await fake.reached(lambda: fake.said_by_bot(PERSON) == ["hi!"])
        await application.updater.stop()
        await application.stop()
    shown = fake.chat(PERSON)[-1]
    assert [version.text for version in shown.versions] == ["hi?", "hi!"]
    assert shown.reply_to == asked.message_id
    assert fake.pending() == ()


async def test_updates_come_again_until_they_are_confirmed(fake: TelegramFake, ptb):
    numbers = [fake.say(PERSON, PERSON, f"m{n}").update_id for n in range(3)]
    assert [one.update_id for one in await ptb.get_updates()] == numbers
    assert [one.update_id for one in await ptb.get_updates(offset=-1)] == numbers[-1:]
    assert fake.pending() == tuple(numbers[-1:]), "a negative offset forgets those before"


async def test_updates_are_read_by_its_models(fake: TelegramFake, ptb):
    from telegram.constants import ChatMemberStatus

    await ptb.get_updates(
        allowed_updates=["message", "edited_message", "message_reaction", "my_chat_member"]
    )
    said = fake.say(GROUP, PERSON, "/help@dragoman_bot")
    fake.edit(GROUP, said.message_id, "never mind")
    fake.react(GROUP, said.message_id, PERSON, "❤")
    fake.kick(GROUP)
    topic = fake.topic(FORUM, "Plans", PERSON)
    fake.say(FORUM, PERSON, "inside", thread=topic)
    found = []
    while fake.pending():
        found += await ptb.get_updates(offset=found[-1].update_id + 1 if found else None)
    message, edited, reaction, kicked, opened, inside = found
    assert message.message.parse_entities() == {
        message.message.entities[0]: "/help@dragoman_bot",
    }
    assert edited.edited_message.text == "never mind"
    assert reaction.message_reaction.new_reaction[0].emoji == "❤"
    assert kicked.my_chat_member.new_chat_member.status == ChatMemberStatus.BANNED
    assert opened.message.forum_topic_created.name == "Plans"
    assert inside.message.message_thread_id == topic
    assert inside.effective_chat.is_forum


async def test_every_kind_of_update_is_read_as_far_as_it_knows_it(fake: TelegramFake, ptb):
    """It knows the API up to 10.0: newer kinds pass as updates with an id and no more."""
    from telegram import Update

    await ptb.get_updates(allowed_updates=sorted(KINDS))
    for kind, body in SAMPLES.items():
        fake.enqueue({kind: body})
    found = await ptb.get_updates(offset=fake.pending()[0])
    known = set(Update.ALL_TYPES) & KINDS
    assert len(known) > 20
    for update, kind in zip(found, SAMPLES, strict=True):
        assert kind not in known or getattr(update, kind) is not None


async def test_refusals_become_its_errors(fake: TelegramFake, ptb):
    from telegram.error import BadRequest, ChatMigrated, Forbidden, NetworkError, RetryAfter

    fake.say(PERSON, PERSON, "?")
    sent = await ptb.send_message(PERSON, "x")
    with pytest.raises(BadRequest, match="Message is not modified"):
        await sent.edit_text("x")
    fake.forget(PERSON, sent.message_id)
    with pytest.raises(BadRequest, match="Message to edit not found"):
        await sent.edit_text("y")
    with pytest.raises(BadRequest, match="Message is too long"):
        await ptb.send_message(PERSON, "x" * 4097)
    with pytest.raises(BadRequest, match="Chat not found"):
        await ptb.send_message(42, "x")
    with pytest.raises(BadRequest, match="Message to be replied not found"):
        await ptb.send_message(PERSON, "x", reply_to_message_id=4711)
    with pytest.raises(BadRequest, match="end of bold entity at byte offset 5"):
        await ptb.send_message(PERSON, "🎉 *x", parse_mode="MarkdownV2")
    fake.fail("sendMessage", status=429, retry_after=3)
    with pytest.raises(RetryAfter) as flood:
        await ptb.send_message(PERSON, "x")
    assert flood.value.retry_after.total_seconds() == 3
    fake.say(GROUP, PERSON, "?")
    fake.migrate(GROUP, -1001500000009)
    with pytest.raises(ChatMigrated) as moved:
        await ptb.send_message(GROUP, "x")
    assert moved.value.new_chat_id == -1001500000009
    fake.block(PERSON)
    with pytest.raises(Forbidden, match="bot was blocked by the user"):
        await ptb.send_message(PERSON, "x")
    fake.unblock(PERSON)
    fake.cut("sendMessage", after_apply=True)
    with pytest.raises(NetworkError):
        await ptb.send_message(PERSON, "once")
    assert fake.said_by_bot(PERSON)[-1] == "once"


async def test_the_older_poll_gets_the_conflict(fake: TelegramFake, ptb):
    from telegram.error import Conflict

    async with anyio.create_task_group() as tasks:

        async def older() -> None:
            with pytest.raises(Conflict, match="terminated by other getUpdates"):
                await ptb.get_updates(timeout=20)
            fake.say(PERSON, PERSON, "hi")

        tasks.start_soon(older)
        await fake.reached(lambda: len(fake.calls) == 2)  # getMe came first
        assert [one.message.text for one in await ptb.get_updates(timeout=20)] == ["hi"]


async def test_media_files_buttons_and_reactions(fake: TelegramFake, ptb):
    from telegram import InlineKeyboardButton, InlineKeyboardMarkup, InputMediaDocument

    asked = fake.say(PERSON, PERSON, document=("q.txt", b"question"))
    [update] = await ptb.get_updates()
    found = await update.message.document.get_file()
    assert bytes(await found.download_as_bytearray()) == b"question"
    album = await ptb.send_media_group(
        PERSON,
        [InputMediaDocument(b"1", filename="1.txt"), InputMediaDocument(b"2", filename="2.txt")],
        caption="both",
    )
    assert album[0].caption == "both"
    assert [message.document.file_name for message in album] == ["1.txt", "2.txt"]
    assert (await ptb.send_photo(PERSON, b"jpeg", filename="p.jpg")).photo
    markup = InlineKeyboardMarkup([[InlineKeyboardButton("Go", callback_data="go")]])
    sent = await ptb.send_message(PERSON, "Go?", reply_markup=markup)
    pressed = fake.press(PERSON, sent.message_id, PERSON, "go")
    [update] = await ptb.get_updates(offset=pressed.update_id)
    assert await update.callback_query.answer()
    assert update.callback_query.message.text == "Go?"
    assert await ptb.set_message_reaction(PERSON, asked.message_id, "👍")
    assert (await ptb.get_chat(PERSON)).id == PERSON
    assert await ptb.set_my_commands([("help", "Help")])
    assert await ptb.send_message_draft(PERSON, 1, "…")
    topic_chat = fake.add_chat(FORUM, "forum")
    topic = await ptb.create_forum_topic(FORUM, "Plans")
    assert topic.message_thread_id in topic_chat.topics
    assert await ptb.send_chat_action(FORUM, "typing", message_thread_id=topic.message_thread_id)
    assert fake.notices(FORUM)[0].thread == topic.message_thread_id
