"""What reactions, presses, members and quotations come to, case by case."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from dragoman import Address, Inbound, Kind, Place, Quote, Sender
from dragoman_telegram.account import Account
from dragoman_telegram.translate import translate

ME = Account(7, "dragoman_bot")
NOW = datetime(2027, 1, 15, tzinfo=UTC)
ADA = {"id": 700000001, "is_bot": False, "first_name": "Ada"}
GROUP = {"id": -1001500000001, "type": "supergroup", "title": "Team"}
DM = {"id": 700000001, "type": "private"}
DATE = 1_800_000_000


def events(kind: str, **body: Any) -> tuple[Inbound, ...]:
    return translate({"update_id": 9, kind: body}, ME, "tg", NOW).events


def emoji(*names: str) -> list[dict[str, str]]:
    return [{"type": "emoji", "emoji": name} for name in names]


def test_every_reaction_that_came_or_went_is_an_event_of_its_own() -> None:
    """A2, invariant 1: with an id of its own, the same on every redelivery."""
    body = {
        "chat": GROUP,
        "message_id": 12,
        "user": ADA,
        "date": DATE,
        "old_reaction": emoji("👍", "🔥"),
        "new_reaction": emoji("🔥", "🎉"),
    }
    found = events("message_reaction", **body)
    assert [(one.native_id, one.data) for one in found] == [("9:0", "-👍"), ("9:1", "🎉")]
    assert {one.kind for one in found} == {Kind.REACTION}
    assert {one.message_id for one in found} == {"12"}
    assert found[0].sender == Sender("700000001", "Ada")
    assert found[0].address == Address("tg", "-1001500000001", place=Place.GROUP)
    assert found == events("message_reaction", **body)


@pytest.mark.parametrize(
    ("reaction", "data"),
    [
        ({"type": "custom_emoji", "custom_emoji_id": "5312"}, ["custom emoji 5312"]),
        ({"type": "paid"}, ["⭐"]),
        ({"type": "hologram"}, []),
        ("x", []),
    ],
)
def test_reactions_without_an_emoji_of_the_keyboard_have_a_name(
    reaction: object, data: list[str]
) -> None:
    found = events(
        "message_reaction",
        chat=GROUP,
        message_id=12,
        actor_chat=GROUP,
        date=DATE,
        old_reaction=None,
        new_reaction=[reaction],
    )
    assert [one.data for one in found] == data
    assert all(one.sender == Sender("chat:-1001500000001", "Team", bot=True) for one in found)


def test_fc_thr_08_a_press_names_its_button_and_the_topic_of_its_message() -> None:
    """A2: it has no date of its own."""
    message = {
        "message_id": 5,
        "chat": DM,
        "date": 1,
        "from": {"id": 7},
        "message_thread_id": 31,
        "is_topic_message": True,
    }
    update = {"id": "q1", "from": ADA, "message": message, "data": "s:1"}
    [found] = events("callback_query", **update)
    assert (found.kind, found.data, found.message_id) == (Kind.PRESS, "s:1", "5")
    assert found.address == Address("tg", "700000001", "31")
    assert (found.sender.id, found.sent_at) == ("700000001", NOW)
    assert translate({"update_id": 9, "callback_query": update}, ME, "tg", NOW).query == "q1"


@pytest.mark.parametrize(
    "change",
    [{"data": None}, {"from": None}, {"message": None}, {"message": {"chat": DM}}],
    ids=["game", "nobody", "inline", "no-id"],
)
def test_presses_that_are_nothing_to_the_gateway_are_still_answered(change: Any) -> None:
    update = {"id": "q1", "from": ADA, "data": "x", "message": {"message_id": 5, "chat": DM}}
    found = translate({"update_id": 9, "callback_query": update | change}, ME, "tg", NOW)
    assert (found.events, found.query) == ((), "q1")


@pytest.mark.parametrize(
    ("chat", "member", "left"),
    [
        (GROUP, {"status": "kicked"}, True),
        (GROUP, {"status": "left"}, True),
        (GROUP, {"status": "restricted", "is_member": False}, True),
        (GROUP, {"status": "restricted", "is_member": True}, False),
        (GROUP, {"status": "administrator"}, False),
        (DM, {"status": "kicked"}, True),
        (DM, {"status": "member"}, False),
        (GROUP, {"status": "left", "user": {"id": 8}}, False),
        (GROUP, None, False),
    ],
)
def test_where_the_bot_was_thrown_out_or_blocked_it_has_left(
    chat: dict[str, Any], member: Any, left: bool
) -> None:
    """A2."""
    member = member and {"user": {"id": 7}} | member
    found = events("my_chat_member", chat=chat, date=DATE, new_chat_member=member, **{"from": ADA})
    assert [(one.kind, one.address.channel) for one in found] == (
        [(Kind.LEFT, str(chat["id"]))] if left else []
    )


def message(**fields: Any) -> Inbound:
    base = {"message_id": 7, "date": DATE, "chat": GROUP, "from": ADA, "text": "and?"}
    [found] = events("message", **(base | fields))
    return found


ORIGINAL = {"message_id": 3, "chat": GROUP, "from": {"id": 7, "first_name": "Bot"}, "text": "a b"}


@pytest.mark.parametrize(
    ("fields", "quote"),
    [
        ({}, None),
        ({"reply_to_message": ORIGINAL}, Quote("a b", "Bot", "3", own=True)),
        (
            {"reply_to_message": ORIGINAL, "quote": {"text": "b", "position": 2}},
            Quote("b", "Bot", "3", own=True),
        ),
        (
            {"reply_to_message": ORIGINAL | {"from": ADA, "text": "", "caption": "c"}},
            Quote("c", "Ada", "3"),
        ),
        (
            {"reply_to_message": {"message_id": 3, "from": ADA, "voice": {"duration": 3}}},
            Quote("[voice message, 3 s]", "Ada", "3"),
        ),
        ({"reply_to_message": ORIGINAL | {"forum_topic_created": {}}}, None),
        (
            {
                "external_reply": {"origin": {"type": "user", "sender_user": ADA}},
                "quote": {"text": "elsewhere"},
            },
            Quote("elsewhere", "Ada"),
        ),
        (
            {"external_reply": {"origin": {"type": "channel", "chat": GROUP}, "photo": []}},
            Quote("[photo]", "Team"),
        ),
        ({"external_reply": {"origin": {"sender_user": {"id": 7}}}}, Quote("", own=True)),
    ],
)
def test_what_a_message_answers_is_quoted(fields: dict[str, Any], quote: Quote | None) -> None:
    """A2."""
    assert message(**fields).quote == quote


def test_fc_lop_01_a_post_that_telegram_carries_into_its_discussion_is_a_forward_by_a_chat() -> (
    None
):
    channel = {"id": -1007, "type": "channel", "title": "News"}
    found = message(
        is_automatic_forward=True,
        sender_chat=channel,
        forward_origin={"type": "channel", "chat": channel},
        **{"from": {"id": 777000}},
    )
    assert (found.forwarded, found.sender) == ("News", Sender("chat:-1007", "News", bot=True))


def test_messages_of_the_bot_itself_say_so() -> None:
    assert message(**{"from": {"id": 7}}).sender.own
    assert not message().sender.own
