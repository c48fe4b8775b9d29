"""What holds for every update, however broken."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dragoman import Kind, Place
from dragoman_telegram.account import Account
from dragoman_telegram.entities import read_entities
from dragoman_telegram.translate import UPDATE_KINDS, translate

ME = Account(7, "dragoman_bot")
NOW = datetime(2027, 1, 15, tzinfo=UTC)

FIELDS = [
    "update_id",
    "message",
    "channel_post",
    "edited_message",
    "edited_channel_post",
    "edit_date",
    "media_group_id",
    "photo",
    "document",
    "animation",
    "file_id",
    "file_name",
    "mime_type",
    "file_size",
    "width",
    "height",
    "migrate_to_chat_id",
    "chat",
    "id",
    "type",
    "is_forum",
    "title",
    "from",
    "sender_chat",
    "message_id",
    "date",
    "text",
    "caption",
    "entities",
    "caption_entities",
    "offset",
    "length",
    "user",
    "message_thread_id",
    "is_topic_message",
    "reply_to_message",
    "forward_origin",
    "sender_user",
    "first_name",
    "username",
    "voice",
    "duration",
    "location",
    "latitude",
    "longitude",
    "dice",
    "emoji",
    "value",
    "sticker",
    "callback_query",
    "message_reaction",
    "my_chat_member",
    "old_reaction",
    "new_reaction",
    "custom_emoji_id",
    "new_chat_member",
    "status",
    "data",
    "quote",
    "external_reply",
    "origin",
    "migrate_from_chat_id",
    "author_signature",
]
WORDS = ("private", "supergroup", "mention", "bot_command", "text_mention", "@dragoman_bot", "/x@y")

CHARACTERS = "ab@/_x ,:\n\t]\0é日🎉\u200d\ud83d\udc00"
texts = st.text(st.sampled_from(CHARACTERS), max_size=30)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(0, 20),
    st.floats(),
    texts,
    st.sampled_from(WORDS),
)
json_like = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.sampled_from(FIELDS) | texts, inner, max_size=8),
    ),
    max_leaves=30,
)
entity = st.fixed_dictionaries(
    {"type": st.sampled_from(WORDS), "offset": st.integers(-2, 30), "length": st.integers(-2, 30)}
)
plausible = st.fixed_dictionaries(
    {"message_id": st.integers(0), "date": st.integers(0, 2**32), "text": texts},
    optional={
        "entities": st.lists(entity, max_size=5),
        "from": json_like,
        "sender_chat": json_like,
        "forward_origin": json_like,
        "reply_to_message": json_like,
        "message_thread_id": scalars,
        "edit_date": scalars,
        "media_group_id": scalars,
        "photo": json_like,
        "document": json_like,
        "quote": json_like,
        "external_reply": json_like,
        "migrate_to_chat_id": scalars,
        "migrate_from_chat_id": scalars,
        "message": json_like,
        "data": texts,
        "old_reaction": json_like,
        "new_reaction": json_like,
        "new_chat_member": json_like,
    },
)
updates = st.builds(
    lambda number, kind, message: {
        "update_id": number,
        kind: message | {"chat": {"id": -5, "type": "group"}},
    },
    st.integers(0),
    st.sampled_from(UPDATE_KINDS),
    plausible,
)


@given(st.dictionaries(st.sampled_from(FIELDS), json_like, max_size=8) | updates)
def test_no_update_raises_and_every_event_has_a_text_that_can_be_stored(update: Any) -> None:
    for event in translate(update, ME, "tg", NOW).events:
        said = event.kind in {Kind.MESSAGE, Kind.EDIT}
        assert not said or event.text.strip() or event.attachments
        assert event.kind not in {Kind.PRESS, Kind.REACTION, Kind.MOVED} or event.data
        assert event.sender.id or event.address.place is Place.CHANNEL or event.kind is Kind.LEFT
        assert event.sent_at.utcoffset() == timedelta(0)
        files = [text for file in event.attachments for text in (file.id, file.name, file.mime)]
        quoted = (event.quote.text, event.quote.author) if event.quote else ()
        places = (event.address.channel, event.address.thread, event.album)
        for text in (event.text, event.sender.name, event.data, *places, *files, *quoted):
            text.encode()


@given(st.text(st.sampled_from("ab@ é日🎉\u200d"), max_size=30), st.data())
def test_an_entity_covers_what_utf16_counting_says(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    units = [len(part.encode("utf-16-le")) // 2 for part in (text[:start], text[start:end])]
    found = read_entities(text, [{"type": "x", "offset": units[0], "length": units[1]}])
    assert [text[e.start : e.end] for e in found] == ([text[start:end]] if end > start else [])
