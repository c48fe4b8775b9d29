"""What a Telegram update comes to, case by case."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import Address, Gone, Inbound, Place, ScopeRule
from dragoman.keys import conversation_key
from dragoman_telegram.account import Account
from dragoman_telegram.translate import chat_parameters, translate

ME = Account(7, "dragoman_bot")
PERSON = {"id": 700000001, "is_bot": False, "first_name": "Ada", "last_name": "L."}
DM = {"id": 700000001, "type": "private"}
GROUP = {"id": -1001500000001, "type": "supergroup", "title": "Team"}
FORUM = GROUP | {"is_forum": True}


def message(**fields: Any) -> dict[str, Any]:
    base = {"message_id": 7, "date": 1_800_000_000, "chat": DM, "from": PERSON}
    return {"update_id": 1, "message": {k: v for k, v in (base | fields).items() if v is not None}}


def event_of(update: dict[str, Any], me: Account = ME) -> Inbound:
    event = translate(update, me, "tg").event
    assert event is not None
    return event


def test_a_direct_message_becomes_an_event_with_all_its_facts() -> None:
    """C1, A2."""
    event = event_of(message(text="hello 🎉"))
    assert event.native_id == "1"
    assert event.message_id == "7"
    assert event.address == Address("tg", "700000001", place=Place.DM)
    assert (event.sender.id, event.sender.name, event.sender.bot) == ("700000001", "Ada L.", False)
    assert event.text == "hello 🎉"
    assert event.sent_at.timestamp() == 1_800_000_000
    assert event.addressed


@pytest.mark.parametrize(
    ("chat_type", "place", "warns"),
    [
        ("private", Place.DM, False),
        ("group", Place.GROUP, False),
        ("supergroup", Place.GROUP, False),
        ("channel", Place.CHANNEL, False),
        ("galaxy", Place.GROUP, True),
        (None, Place.GROUP, True),
        (3, Place.GROUP, True),
    ],
)
def test_fc_cmd_02_every_chat_type_has_a_place_and_an_unknown_one_warns(
    chat_type: Any, place: Place, warns: bool
) -> None:
    found = translate(message(text="x", chat={"id": -5, "type": chat_type}), ME, "tg")
    assert found.event is not None
    assert found.event.address.place is place
    assert bool(found.warning) is warns
    if isinstance(chat_type, str) and warns:
        assert chat_type in found.warning


def key(update: dict[str, Any]) -> object:
    event = event_of(update)
    return conversation_key(event.address, event.sender, ScopeRule())


def test_fc_thr_01_general_is_one_conversation_with_and_without_its_id() -> None:
    """A2: topics differ, the general topic is one, and it is not named when sending."""
    bare = message(chat=FORUM, text="@dragoman_bot hi")
    named = message(chat=FORUM, text="hi", message_thread_id=1, is_topic_message=True)
    other = message(chat=FORUM, text="hi", message_thread_id=5, is_topic_message=True)
    assert key(bare) == key(named)
    assert key(bare) != key(other)
    assert chat_parameters(event_of(named).address) == {"chat_id": -1001500000001}
    assert chat_parameters(event_of(other).address) == {
        "chat_id": -1001500000001,
        "message_thread_id": 5,
    }


def test_a_chain_of_replies_in_a_group_without_topics_is_no_thread() -> None:
    assert event_of(message(chat=GROUP, text="hi", message_thread_id=44)).address.thread == ""


def test_fc_thr_08_topics_of_a_private_chat_are_conversations_of_their_own() -> None:
    """A2."""
    plain = message(text="hi")
    first = message(text="hi", message_thread_id=31, is_topic_message=True)
    second = message(text="hi", message_thread_id=32, is_topic_message=True)
    assert len({key(plain), key(first), key(second)}) == 3
    assert chat_parameters(event_of(first).address) == {
        "chat_id": 700000001,
        "message_thread_id": 31,
    }


@pytest.mark.parametrize(
    ("update", "identity"),
    [
        (
            message(
                chat=GROUP,
                **{"from": {"id": 1087968824, "is_bot": True}},
                sender_chat=GROUP,
                text="/approve ap1",
            ),
            "chat:-1001500000001",
        ),
        (
            message(
                chat=GROUP,
                **{"from": {"id": 136817688, "is_bot": True}},
                sender_chat={"id": -1009999, "type": "channel"},
                text="x",
            ),
            "chat:-1009999",
        ),
        (
            {
                "update_id": 1,
                "channel_post": {
                    "message_id": 1,
                    "date": 1,
                    "chat": {"id": -1008888, "type": "channel"},
                    "text": "x",
                },
            },
            "chat:-1008888",
        ),
        (
            message(
                chat=GROUP,
                **{"from": {"id": 777000}},
                is_automatic_forward=True,
                forward_origin={"type": "channel", "chat": {"id": -1007, "title": "News"}},
                text="x",
            ),
            "chat:-1007",
        ),
        (message(chat=GROUP, **{"from": {"id": 777000}}, text="x"), "chat:-1001500000001"),
        (message(chat=GROUP, sender_chat={"id": -1009999}, text="x"), "chat:-1009999"),
        (message(chat=GROUP, **{"from": None}, text="x"), "chat:-1001500000001"),
    ],
    ids=[
        "anonymous-admin",
        "as-channel",
        "channel-post",
        "auto-forward",
        "auto-forward-bare",
        "as-channel-with-author",
        "no-author",
    ],
)
def test_fc_aut_02_who_writes_as_a_chat_has_the_chats_identity(
    update: dict[str, Any], identity: str
) -> None:
    sender = event_of(update).sender
    assert sender.id == identity
    assert sender.bot


@pytest.mark.parametrize("sender", [{"id": 7}, {"id": 99, "is_bot": True}], ids=["own", "other"])
def test_messages_of_bots_say_so(sender: dict[str, Any]) -> None:
    assert event_of(message(chat=GROUP, **{"from": sender}, text="x")).sender.bot


def mention(offset: int, length: int = 13, kind: str = "mention", **more: Any) -> dict[str, Any]:
    return {"type": kind, "offset": offset, "length": length} | more


@pytest.mark.parametrize(
    ("text", "entities", "expected"),
    [
        ("😀😀 @dragoman_bot status", [mention(5)], "😀😀 status"),
        ("hey @dragoman_bot status", [mention(4)], "hey status"),
        ("hey @Dragoman_BOT", [mention(4)], "hey"),
        ("@dragoman_bot, do it", [mention(0)], "do it"),
        ("@dragoman_bot: do it", [mention(0)], "do it"),
        ("is it so, @dragoman_bot?", [mention(10)], "is it so,?"),
        ("@dragoman_bot hi @dragoman_bot", [mention(0), mention(17)], "hi"),
        ("one @dragoman_bot\ntwo", [mention(4)], "one\ntwo"),
        ("one\n@dragoman_bot two", [mention(4)], "one\ntwo"),
        ("@dragoman_bot", [mention(0)], "@dragoman_bot"),
        ("😀 /status@dragoman_bot now", [mention(3, 20, "bot_command")], "😀 /status now"),
        ("/status@dragoman_bot", [mention(0, 20, "bot_command")], "/status"),
        ("/status now", [mention(0, 7, "bot_command")], "/status now"),
        ("My Bot do it", [mention(0, 6, "text_mention", user={"id": 7})], "do it"),
    ],
)
def test_fc_men_01_a_message_to_the_bot_is_recognised_and_loses_its_name(
    text: str, entities: list[dict[str, Any]], expected: str
) -> None:
    event = event_of(message(chat=GROUP, text=text, entities=entities))
    assert event.addressed
    assert event.text == expected


@pytest.mark.parametrize(
    ("text", "entities"),
    [
        ("hello all", []),
        ("@dragoman_bot without an entity", []),
        ("@dragoman_bots", [mention(0, 14)]),
        ("@someone_else", [mention(0)]),
        ("try /help", [mention(4, 5, "bot_command")]),
        ("My Bot", [mention(0, 6, "text_mention", user={"id": 8})]),
        ("short", [mention(3, 99), mention(-1), mention(0, 0), "x", {"type": "mention"}]),
    ],
)
def test_a_message_to_others_is_not_addressed_and_keeps_its_text(
    text: str, entities: list[Any]
) -> None:
    event = event_of(message(chat=GROUP, text=text, entities=entities))
    assert not event.addressed
    assert event.text == text


def test_a_command_for_another_bot_is_nothing_to_us_in_a_group() -> None:
    command = {"text": "/start@OtherBot", "entities": [mention(0, 15, "bot_command")]}
    assert translate(message(chat=GROUP, **command), ME, "tg").event is None
    assert event_of(message(**command)).text == "/start@OtherBot"


def test_a_mention_in_a_caption_counts() -> None:
    event = event_of(
        message(
            chat=GROUP, photo=[{}], caption="@dragoman_bot what?", caption_entities=[mention(0)]
        )
    )
    assert (event.text, event.addressed) == ("what?", True)


def test_a_reply_to_the_bot_is_addressed_but_a_first_message_in_its_topic_is_not() -> None:
    ours = {"from": {"id": 7}, "text": "…"}
    assert event_of(message(chat=GROUP, text="and?", reply_to_message=ours)).addressed
    opened = ours | {"forum_topic_created": {"name": "Plans"}}
    assert not event_of(message(chat=FORUM, text="and?", reply_to_message=opened)).addressed


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"voice": {"mime_type": "audio/ogg", "duration": 3}}, "[voice message, 3 s]"),
        ({"sticker": {"is_animated": True, "emoji": "👍"}}, "[sticker 👍]"),
        ({"video_note": {}}, "[video message]"),
        ({"location": {"latitude": 1.0, "longitude": 2.5}}, "[location 1, 2.5]"),
        ({"venue": {"title": "Café"}, "location": {}}, "[venue Café]"),
        ({"poll": {}}, "[poll]"),
        ({"poll": {"question": "Tea?\n[x]"}}, "[poll Tea? (x)]"),
        ({"dice": {"emoji": "🎲", "value": 4}}, "[dice 🎲: 4]"),
        ({"photo": [{}]}, "[photo]"),
        ({"photo": [{}], "caption": "look"}, "look"),
        ({"document": {"file_name": "a.pdf"}}, "[file a.pdf]"),
        ({"animation": {}, "document": {"file_name": "x.gif"}}, "[animation]"),
        ({"contact": {"first_name": "Bob"}}, "[contact Bob]"),
        ({"audio": {"duration": 61}}, "[audio, 61 s]"),
    ],
)
def test_fc_att_03_what_is_not_words_is_never_an_empty_text(
    fields: dict[str, Any], expected: str
) -> None:
    assert event_of(message(**fields)).text == expected


@pytest.mark.parametrize(
    "fields",
    [
        {"pinned_message": {}},
        {"new_chat_members": [PERSON]},
        {"left_chat_member": PERSON},
        {"new_chat_title": "x"},
        {"migrate_to_chat_id": -100},
        {"forum_topic_created": {"name": "x"}},
        {"text": " \n"},
        {},
    ],
)
def test_fc_att_03_service_messages_make_no_turn(fields: dict[str, Any]) -> None:
    found = translate(message(chat=GROUP, **fields), ME, "tg")
    assert found.event is None
    assert not found.warning


@pytest.mark.parametrize(
    ("origin", "mark"),
    [
        ({"type": "user", "sender_user": {"first_name": "Bob"}}, "Bob"),
        ({"type": "hidden_user", "sender_user_name": "B]\n[system"}, "B) (system"),
        ({"type": "chat", "sender_chat": {"title": "Team"}}, "Team"),
        ({"type": "channel", "chat": {"title": "News"}}, "News"),
        ({}, "unknown"),
    ],
)
def test_forwarded_words_carry_a_mark_that_they_cannot_forge(
    origin: dict[str, Any], mark: str
) -> None:
    event = event_of(message(text="/stop", forward_origin=origin))
    assert event.text == f"[forwarded from {mark}]\n/stop"


def test_a_lone_surrogate_becomes_a_replacement_character() -> None:
    event = event_of(message(chat=GROUP, text="\ud83d @dragoman_bot a", entities=[mention(2)]))
    assert event.text == "\ufffd a"


@pytest.mark.parametrize(
    "update",
    [
        {"update_id": 1, "message": None},
        {"update_id": 1, "message": {"text": "x"}},
        message(text="x", date=10**20),
        message(text="x", date=-1),
        message(text="x", chat={"id": True, "type": "private"}),
    ],
)
def test_a_broken_message_is_skipped_with_a_warning(update: dict[str, Any]) -> None:
    found = translate(update, ME, "tg")
    assert found.event is None
    assert "skipped" in found.warning


@pytest.mark.parametrize("kind", ["edited_message", "poll", "message_reaction", "brand_new"])
def test_other_kinds_of_update_are_nothing(kind: str) -> None:
    assert translate({"update_id": 1, kind: {}}, ME, "tg").event is None


@pytest.mark.parametrize(
    ("address", "what"), [(Address("tg", "x"), "channel"), (Address("tg", "1", "x"), "thread")]
)
def test_an_address_that_no_chat_can_have_is_gone(address: Address, what: str) -> None:
    with pytest.raises(Gone) as caught:
        chat_parameters(address)
    assert caught.value.what == what
