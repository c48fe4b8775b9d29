"""Buttons, deletions, reactions, drafts and lost topics, against the strict fake."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from dragoman import Address, Button, Forbidden, Gone, Moved, Outbound, Place, Refused
from dragoman_telegram.keyboards import keyboard
from dragoman_telegram.platform import Telegram
from peers.telegram_fake import TelegramFake

pytestmark = pytest.mark.anyio
OpenBot = Callable[..., AbstractAsyncContextManager[Telegram]]
ADA = 700000001
DM = Address("telegram", str(ADA))
FORUM = -1001500000001
TOPIC = Address("telegram", str(FORUM), "42", place=Place.GROUP)


def labels(buttons: dict[str, Any]) -> list[list[str]]:
    return [[one["text"] for one in row] for row in buttons["reply_markup"]["inline_keyboard"]]


def test_buttons_share_a_row_as_far_as_a_phone_is_wide() -> None:
    short = [Button(label, label) for label in ("Yes", "No", "Later", "Never")]
    assert labels(keyboard(short)) == [["Yes", "No", "Later"], ["Never"]]
    wide = [Button("x" * 20, "1"), Button("y" * 20, "2"), Button("z" * 10, "3")]
    assert labels(keyboard(wide)) == [["x" * 20], ["y" * 20, "z" * 10]]
    assert keyboard(()) == {}


async def test_buttons_are_shown_and_go_with_an_edit_that_has_none(
    fake: TelegramFake, open_bot: OpenBot
) -> None:
    """C2."""
    fake.add_chat(ADA, "private")
    yes = Button("Yes", "s:1", style="primary")
    async with open_bot(fake.url) as bot:
        sent = await bot.send(DM, Outbound("d1", "Go on?", buttons=(yes,)))
        assert fake.chat(ADA)[0].buttons == (("Yes",),)
        await bot.edit(DM, sent.native_id, Outbound("d1", "Go on!", buttons=(yes,)))
        assert fake.chat(ADA)[0].buttons == (("Yes",),)
        same = await bot.edit(DM, sent.native_id, Outbound("d1", "Go on!", buttons=(yes,)))
        assert same.native_id == sent.native_id
        await bot.edit(DM, sent.native_id, Outbound("d1", "Go on!"))
    assert fake.chat(ADA)[0].buttons == ()
    assert bot.capabilities.buttons >= 5


async def test_a_message_of_the_bot_can_be_taken_away_twice(
    fake: TelegramFake, open_bot: OpenBot
) -> None:
    """C2."""
    fake.add_chat(ADA, "private")
    async with open_bot(fake.url) as bot:
        sent = await bot.send(DM, Outbound("d1", "x"))
        await bot.delete(DM, sent.native_id)
        await bot.delete(DM, sent.native_id)
        assert fake.said_by_bot(ADA) == []
        with pytest.raises(Gone) as nowhere:
            await bot.delete(Address("telegram", "-5", place=Place.GROUP), sent.native_id)
    assert nowhere.value.what == "channel"
    assert bot.capabilities.delete


async def test_the_bot_reacts_with_what_telegram_takes(
    fake: TelegramFake, open_bot: OpenBot
) -> None:
    """C2: emoji as keyboards write them, too."""
    said = str(fake.say(ADA, ADA, "done").message_id)

    def shown() -> tuple[str, ...]:
        return dict(fake.chat(ADA)[0].reactions).get(fake.bot_id, ())

    async with open_bot(fake.url) as bot:
        await bot.react(DM, said, "👀", on=True)
        assert shown() == ("👀",)
        await bot.react(DM, said, "❤\ufe0f", on=True)
        assert shown() == ("❤",)
        await bot.react(DM, said, "❤\ufe0f", on=False)
        await bot.react(DM, said, "❤\ufe0f", on=False)
        assert shown() == ()
        with pytest.raises(Refused):
            await bot.react(DM, said, "🧮", on=True)
        with pytest.raises(Gone):
            await bot.react(DM, "999", "👀", on=True)
    assert bot.capabilities.reactions


async def test_fc_thr_08_a_draft_is_shown_in_its_topic_until_the_message_comes(
    fake: TelegramFake, open_bot: OpenBot
) -> None:
    """C2: the same delivery keeps its draft."""
    fake.say(ADA, ADA, "hi", thread=31)
    topic = Address("telegram", str(ADA), "31")
    async with open_bot(fake.url, drafts=True) as bot:
        await bot.draft(topic, Outbound("d1", "**One**"))
        await bot.draft(topic, Outbound("d1", "**One** two"))
        seen = fake.preview(ADA, 31)
        assert seen is not None
        assert seen.text == "One two"
        assert len({draft.draft_id for draft in fake.drafts(ADA)}) == 1
        await bot.draft(topic, Outbound("d2", "other"))
        assert len({draft.draft_id for draft in fake.drafts(ADA)}) == 2
        await bot.send(topic, Outbound("d1", "One two three"))
        assert fake.preview(ADA, 31) is None
        assert bot.capabilities.draft


@pytest.mark.parametrize(
    ("status", "words"),
    [(404, "Not Found: method not found"), (404, "Not Found"), (501, "Not Implemented")],
)
async def test_a_server_without_drafts_is_asked_once(
    fake: TelegramFake, open_bot: OpenBot, status: int, words: str
) -> None:
    """C2: previews are ordinary messages from then on."""
    fake.add_chat(ADA, "private")
    fake.fail("sendMessageDraft", status, words)
    async with open_bot(fake.url, drafts=True) as bot:
        await bot.draft(DM, Outbound("d1", "x"))
        assert not bot.capabilities.draft
        await bot.send(DM, Outbound("d1", "x"))
    assert fake.said_by_bot(ADA) == ["x"]


async def test_drafts_have_to_be_asked_for(fake: TelegramFake, open_bot: OpenBot) -> None:
    """Invariant 5: edits are certain, and what replaces a draft is not."""
    async with open_bot(fake.url) as bot:
        assert not bot.capabilities.draft


async def test_fc_thr_02_without_topics_an_answer_goes_to_the_chat_itself(
    fake: TelegramFake, open_bot: OpenBot
) -> None:
    """A2: two attempts, one message."""
    fake.add_chat(FORUM, "supergroup", "Team")
    async with open_bot(fake.url) as bot:
        with pytest.raises(Moved) as caught:
            await bot.send(TOPIC, Outbound("d1", "x"))
        await bot.send(caught.value.address, Outbound("d1", "x"))
    assert fake.said_by_bot(FORUM) == ["x"]
    assert len(fake.calls_of("sendMessage")) == 2


async def test_fc_thr_02_what_was_said_in_a_deleted_topic_never_comes_out_elsewhere(
    fake: TelegramFake, open_bot: OpenBot
) -> None:
    fake.add_chat(FORUM, "forum", "Team", bot_is_admin=False)
    number = fake.topic(FORUM, "Plans")
    topic = Address("telegram", str(FORUM), str(number), place=Place.GROUP)
    async with open_bot(fake.url) as bot:
        fake.close_topic(FORUM, number)
        with pytest.raises(Forbidden):
            await bot.send(topic, Outbound("d1", "x"))
        fake.delete_topic(FORUM, number)
        with pytest.raises(Gone) as gone:
            await bot.send(topic, Outbound("d2", "x"))
        fake.fail("getChat", 500)
        with pytest.raises(Gone):
            await bot.send(topic, Outbound("d3", "x"))
    assert gone.value.what == "thread"
    assert fake.said_by_bot(FORUM) == []


async def test_fc_thr_08_an_answer_to_a_lost_topic_of_a_private_chat_is_still_seen(
    fake: TelegramFake, open_bot: OpenBot
) -> None:
    fake.add_chat(ADA, "private")
    async with open_bot(fake.url) as bot:
        with pytest.raises(Moved) as caught:
            await bot.send(Address("telegram", str(ADA), "31"), Outbound("d1", "x"))
    assert caught.value.address == DM
