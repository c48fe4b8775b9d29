"""What a Telegram update comes to, case by case."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import attrs
import pytest

from dragoman import (
    Address,
    Attachment,
    Gone,
    Inbound,
    Kind,
    Place,
    ScopeRule,
    Sender,
    TurnInput,
)
from dragoman.keys import conversation_key
from dragoman_telegram.account import Account
from dragoman_telegram.translate import chat_parameters, translate

ME = Account(7, "dragoman_bot")
NOW = datetime(2027, 1, 15, tzinfo=UTC)
PERSON = {"id": 700000001, "is_bot": False, "first_name": "Ada", "last_name": "L."}
DM = {"id": 700000001, "type": "private"}
GROUP = {"id": -1001500000001, "type": "supergroup", "title": "Team"}
FORUM = GROUP | {"is_forum": True}


def message(**fields: Any) -> dict[str, Any]:
    base = {"message_id": 7, "date": 1_800_000_000, "chat": DM, "from": PERSON}
    return {"update_id": 1, "message": {k: v for k, v in (base | fields).items() if v is not None}}


def event_of(update: dict[str, Any], me: Account = ME) -> Inbound:
    [event] = translate(update, me, "tg", NOW).events
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
    found = translate(message(text="x", chat={"id": -5, "type": chat_type}), ME, "tg", NOW)
    [event] = found.events
    assert event.address.place is place
    assert bool(found.warning) is warns
    if isinstance(chat_type, str) and warns:
        assert chat_type in found.warning


def key(update: dict[str, Any]) -> object:
    event = event_of(update)
    return conversation_key(event.address, event.sender, ScopeRule(), "")


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
    assert translate(message(chat=GROUP, **command), ME, "tg", NOW).events == ()
    assert event_of(message(**command)).text == "/start@OtherBot"


def command(text: str) -> dict[str, Any]:
    return {"text": text, "entities": [mention(0, len(text.split(maxsplit=1)[0]), "bot_command")]}


@pytest.mark.parametrize(
    ("text", "heard", "addressed"),
    [
        ("/status@dragoman_bot", "/status", True),
        ("/profile@Dragoman_Bot  fast", "/profile  fast", True),
        ("/link@OtherBot 123", None, False),
        ("/weather", "/weather", False),
        ("/weather@dragoman_bot", "/weather", True),
        ("/status", "/status", True),
        ("/STATUS now", "/STATUS now", True),
    ],
)
def test_fc_cmd_01_commands_in_groups_are_those_of_this_bot(
    text: str, heard: str | None, addressed: bool
) -> None:
    """FC-CMD-01: with a name, and without one those that it has; what others have is not for it."""
    me = attrs.evolve(ME, commands=frozenset({"status", "profile"}))
    events = translate(message(chat=GROUP, **command(text)), me, "tg", NOW).events
    assert [(one.text, one.addressed) for one in events] == [(heard, addressed)] * bool(heard)
    [direct] = translate(message(**command(text)), me, "tg", NOW).events
    assert (direct.text, direct.addressed) == (heard or text, True)


@pytest.mark.parametrize("chat", [DM, GROUP])
def test_fc_cmd_01_a_bot_that_does_not_know_its_name_takes_no_command_with_one(chat: Any) -> None:
    """FC-CMD-01."""
    nobody = attrs.evolve(ME, username="")
    found = translate(message(chat=chat, **command("/status@dragoman_bot")), nobody, "tg", NOW)
    assert found.events == ()


def test_fc_men_02_a_mention_in_a_caption_counts_and_a_photo_needs_no_words() -> None:
    """FC-MEN-02: nor does one that replies to the bot."""
    asked = {"caption": "@dragoman_bot what?", "caption_entities": [mention(0)]}
    pictures = {"photo": [photo("F", 90)]}
    captioned = event_of(message(chat=GROUP, **pictures, **asked))
    bare = event_of(message(**pictures))
    answer = event_of(message(chat=GROUP, **pictures, reply_to_message={"from": {"id": 7}}))
    assert [one.text for one in (captioned, bare, answer)] == ["what?", "", ""]
    assert all(one.addressed for one in (captioned, bare, answer))
    assert {one.attachments[0].id for one in (captioned, bare, answer)} == {"F"}


def test_a_reply_to_the_bot_is_addressed_but_a_first_message_in_its_topic_is_not() -> None:
    ours = {"from": {"id": 7}, "text": "…"}
    assert event_of(message(chat=GROUP, text="and?", reply_to_message=ours)).addressed
    opened = ours | {"forum_topic_created": {"name": "Plans"}}
    assert not event_of(message(chat=FORUM, text="and?", reply_to_message=opened)).addressed


def test_fc_att_03_a_rich_message_says_what_its_blocks_do() -> None:
    """It has no text; one that names the bot speaks to it, and one that is answered is quoted."""
    called = {"type": "mention", "text": "@Dragoman_bot", "username": "Dragoman_bot"}
    cells = [[{"text": "a"}, {"text": {"type": "bold", "text": "b"}}], [{"text": "1"}, {}]]
    item = {"label": "1.", "blocks": [{"type": "paragraph", "text": "one"}]}
    blocks = [
        {"type": "heading", "size": 1, "text": [called, " look"]},
        {"type": "table", "cells": cells},
        {"type": "list", "items": [item, {"label": "2.", "blocks": []}]},
        {"type": "details", "summary": "more", "blocks": [item["blocks"][0]]},
        {"type": "divider"},
        "?",
    ]
    said = {"rich_message": {"blocks": blocks}}
    event = event_of(message(chat=GROUP, **said))
    assert event.addressed
    assert event.text == "look\na | b\n1 | \n1. one\n2.\nmore\none"
    other = [{"type": "paragraph", "text": "@dragoman_bot, without being found"}]
    assert not event_of(message(chat=GROUP, rich_message={"blocks": other})).addressed
    answer = event_of(message(chat=GROUP, text="and?", reply_to_message={"from": {"id": 7}} | said))
    assert answer.quote is not None
    assert answer.quote.own
    assert answer.quote.text.startswith("@Dragoman_bot look")
    assert translate(message(rich_message={"blocks": 5}), ME, "tg", NOW).events == ()


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
        {"forum_topic_created": {"name": "x"}},
        {"text": " \n"},
        {},
    ],
)
def test_fc_att_03_service_messages_make_no_turn(fields: dict[str, Any]) -> None:
    found = translate(message(chat=GROUP, **fields), ME, "tg", NOW)
    assert found.events == ()
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
    """A2: the words stay as they are, and no command is taken from them."""
    command = mention(0, 5, "bot_command")
    event = event_of(message(chat=GROUP, text="/stop", entities=[command], forward_origin=origin))
    assert (event.text, event.forwarded, event.addressed) == ("/stop", mark, False)


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
    found = translate(update, ME, "tg", NOW)
    assert found.events == ()
    assert "skipped" in found.warning


@pytest.mark.parametrize("kind", ["poll", "message_reaction", "brand_new"])
def test_fc_dup_04_other_kinds_of_update_are_nothing(kind: str) -> None:
    assert translate({"update_id": 1, kind: {}}, ME, "tg", NOW).events == ()


def edited(**fields: Any) -> dict[str, Any]:
    update = message(**fields)
    return {"update_id": 2, "edited_message": update["message"]}


def test_fc_dup_04_an_edit_is_an_event_of_its_own_that_names_the_message() -> None:
    """A2, C1: it is dated by the edit, and has the sender and the place of the message."""
    first = event_of(message(text="Write page"))
    event = event_of(edited(text="Write page, then verify", edit_date=1_800_000_060))
    assert (event.kind, first.kind) == (Kind.EDIT, Kind.MESSAGE)
    assert (event.native_id, event.message_id) == ("2", first.message_id)
    assert (event.address, event.sender) == (first.address, first.sender)
    assert event.text == "Write page, then verify"
    assert event.sent_at.timestamp() == 1_800_000_060


@pytest.mark.parametrize(
    ("signature", "name"), [({}, "News"), ({"author_signature": "A\nB"}, "A B")]
)
def test_fc_aut_02_a_post_of_a_channel_has_no_author_but_a_label(
    signature: dict[str, str], name: str
) -> None:
    chat = {"id": -1008888, "type": "channel", "title": "News"}
    post = {"message_id": 1, "date": 1, "chat": chat, "text": "x", **signature}
    event = event_of({"update_id": 3, "channel_post": post})
    assert event.sender == Sender("", name)
    assert (event.address.place, event.addressed) == (Place.CHANNEL, False)


def test_fc_dup_04_an_edited_channel_post_is_an_edit() -> None:
    post = {"message_id": 1, "date": 1, "chat": {"id": -1008888, "type": "channel"}, "text": "x"}
    event = event_of({"update_id": 3, "edited_channel_post": post})
    assert event.kind is Kind.EDIT
    assert event.sender.id == ""
    assert event.sent_at.timestamp() == 1


def test_a_step_of_a_live_location_is_nothing_to_answer() -> None:
    place = {"latitude": 1.0, "longitude": 2.0, "live_period": 900}
    assert event_of(message(location=place)).text == "[location 1, 2]"
    assert translate(edited(location=place), ME, "tg", NOW).events == ()


def photo(identity: str, width: int) -> dict[str, Any]:
    return {"file_id": identity, "width": width, "height": width, "file_size": 10 * width}


def test_fc_con_01_the_members_of_an_album_name_it_and_carry_their_files() -> None:
    """A2: the caption is the text of the one that has it."""
    found = [
        event_of(
            message(
                message_id=number,
                media_group_id="g1",
                photo=[photo(f"s{number}", 90), photo(f"l{number}", 800), photo("m", 320)],
                caption="look" if number == 102 else None,
            )
        )
        for number in (101, 102)
    ]
    assert [event.album for event in found] == ["g1", "g1"]
    assert [event.text for event in found] == ["", "look"]
    assert [event.attachments for event in found] == [
        (Attachment(f"l{number}", "photo", size=8000),) for number in (101, 102)
    ]
    assert event_of(message(text="alone")).album == ""


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (
            {"document": {"file_id": "F", "file_name": "big.zip", "file_size": 314572800}},
            Attachment("F", "document", name="big.zip", size=314572800),
        ),
        (
            {"audio": {"file_id": "F", "file_name": "a.mp3", "mime_type": "audio/mpeg"}},
            Attachment("F", "audio", name="a.mp3", mime="audio/mpeg"),
        ),
        (
            {"video": {"file_id": "F", "mime_type": "video/mp4", "file_size": True}},
            Attachment("F", "video", mime="video/mp4"),
        ),
        (
            {"animation": {"file_id": "F"}, "document": {"file_id": "F"}},
            Attachment("F", "animation"),
        ),
        (
            {"voice": {"mime_type": "audio/ogg", "duration": 3, "file_id": "V1"}},
            Attachment("V1", "voice", mime="audio/ogg"),
        ),
        ({"video_note": {"file_id": "F", "file_size": -1}}, Attachment("F", "video_note")),
        ({"sticker": {"emoji": "👍", "file_id": "S1"}}, Attachment("S1", "sticker", name="👍")),
        (
            {"document": {"file_id": "F", "file_name": "a\nIgnore\u202e\0.txt"}},
            Attachment("F", "document", name="a Ignore .txt"),
        ),
    ],
)
def test_fc_att_03_a_file_is_named_with_what_telegram_says_of_it(
    fields: dict[str, Any], expected: Attachment
) -> None:
    event = event_of(message(**fields))
    assert (event.text, event.attachments) == ("", (expected,))
    given = TurnInput(1, event.text, event.sender, event.sent_at, event.attachments)
    assert given.words.startswith(f"[{expected.kind} 1.1")


@pytest.mark.parametrize(
    "fields",
    [
        {"text": "x"},
        {"photo": []},
        {"photo": [{}]},
        {"document": {"file_name": "x"}},
        {"voice": {"file_id": 7}},
        {"contact": {"first_name": "Bob"}},
    ],
)
def test_without_a_file_id_there_is_no_file(fields: dict[str, Any]) -> None:
    found = translate(message(**fields), ME, "tg", NOW).events
    assert not [event for event in found if event.attachments]


@pytest.mark.parametrize(
    ("fields", "continues"),
    [
        ({"text": "x" * 4096}, True),
        ({"text": "x" * 4000}, True),
        ({"text": "x" * 3999}, False),
        ({"text": "🎉" * 2000}, True),
        ({"text": "🎉" * 1999}, False),
        ({"caption": "x" * 4096, "photo": [{}]}, False),
        ({"text": "x" * 4096, "forward_origin": {}}, False),
        ({"text": "/note " + "x" * 4090}, False),
        (
            {
                "text": "/note@dragoman_bot " + "x" * 4070,
                "entities": [{"type": "bot_command", "offset": 0, "length": 18}],
            },
            False,
        ),
    ],
)
def test_fc_con_02_only_a_text_near_the_clients_cut_may_go_on(
    fields: dict[str, Any], continues: bool
) -> None:
    assert event_of(message(**fields)).continues is continues
    assert not event_of(edited(**fields)).continues


@pytest.mark.parametrize("chat", [DM, GROUP], ids=["dm", "group"])
@pytest.mark.parametrize("name", ["dragoman_bot", "DRAGOMAN_BOT"])
def test_fc_con_03_a_command_for_this_bot_loses_its_name_and_keeps_its_case(
    chat: dict[str, Any], name: str
) -> None:
    event = event_of(
        message(chat=chat, text=f"/STOP@{name}", entities=[mention(0, 18, "bot_command")])
    )
    assert (event.text, event.addressed) == ("/STOP", True)


@pytest.mark.parametrize("kind", ["message", "edited_message"])
def test_fc_con_03_a_command_for_another_bot_in_a_group_is_not_for_us(kind: str) -> None:
    fields = message(chat=GROUP, text="/stop@other_bot", entities=[mention(0, 15, "bot_command")])[
        "message"
    ]
    assert translate({"update_id": 1, kind: fields}, ME, "tg", NOW).events == ()


@pytest.mark.parametrize(
    ("fields", "ids"),
    [
        ({"chat": {"id": -5, "type": "group"}, "migrate_to_chat_id": -1009}, ("-5", "-1009")),
        ({"chat": GROUP, "migrate_from_chat_id": -5}, ("-5", "-1001500000001")),
    ],
)
def test_fc_thr_07_a_group_that_moved_is_told_as_that_from_either_side(
    fields: dict[str, Any], ids: tuple[str, str]
) -> None:
    event = event_of(message(**fields))
    assert (event.kind, event.address.channel, event.data) == (Kind.MOVED, *ids)


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_fc_tim_01_dates_are_utc_in_the_hour_that_the_local_clock_has_twice(berlin: None) -> None:
    first, second = (datetime(2026, 10, 25, hour, 30, tzinfo=UTC) for hour in (0, 1))
    found = [
        event_of(message(text="x", date=int(moment.timestamp()))).sent_at
        for moment in (first, second)
    ]
    assert found == [first, second]
    assert [moment.isoformat() for moment in found] == [
        "2026-10-25T00:30:00+00:00",
        "2026-10-25T01:30:00+00:00",
    ]


@pytest.mark.parametrize(
    ("address", "what"), [(Address("tg", "x"), "channel"), (Address("tg", "1", "x"), "thread")]
)
def test_an_address_that_no_chat_can_have_is_gone(address: Address, what: str) -> None:
    with pytest.raises(Gone) as caught:
        chat_parameters(address)
    assert caught.value.what == what
