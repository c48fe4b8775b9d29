"""Telegram's updates and addresses, and ours. Pure: no I/O, no clock.

`translate` raises for no update, however broken.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final, Literal

import attrs

from dragoman import Address, Gone, Inbound, Place, Sender
from dragoman_telegram.account import SHARED_ACCOUNTS, Account
from dragoman_telegram.content import (
    chat_name,
    forward_mark,
    person_name,
    stand_in,
    words_of,
)
from dragoman_telegram.entities import Reading, read_entities, read_text
from dragoman_telegram.fields import Json, as_int, as_map, as_text, one_line

UPDATE_KINDS: Final = ("message", "channel_post")
"""What the bot asks Telegram for, and all that `translate` understands."""

GENERAL_TOPIC: Final = 1
"""Every forum has this topic. Messages in it may come with or without the id; it must not be
named when one is sent."""

_PLACES: Final = {
    "private": Place.DM,
    "group": Place.GROUP,
    "supergroup": Place.GROUP,
    "channel": Place.CHANNEL,
}


@attrs.frozen
class Translation:
    """What an update comes to: an event or nothing, and what an operator should know of it.

    ``forum`` says whether the chat has topics.
    """

    event: Inbound | None = None
    warning: str = ""
    forum: bool = False


def translate(update: Json, me: Account, platform: str) -> Translation:
    """Read one update for the platform instance ``platform``."""
    kind = next((k for k in UPDATE_KINDS if k in update), None)
    if kind is None:
        return Translation()
    message = as_map(update[kind])
    chat = as_map(message.get("chat"))
    native_id, chat_id = as_int(update.get("update_id")), as_int(chat.get("id"))
    message_id, sent_at = as_int(message.get("message_id")), _date(message.get("date"))
    if native_id is None or chat_id is None or message_id is None or sent_at is None:
        return Translation(warning=f"a {kind} without id, chat or date was skipped")
    place, warning = _place(chat.get("type"))
    reading = _read(message, me)
    if not reading.text or (reading.foreign and place is not Place.DM):
        return Translation(warning=warning)
    event = Inbound(
        native_id=str(native_id),
        address=Address(
            platform=platform,
            channel=str(chat_id),
            thread=_thread(message, place),
            place=place,
        ),
        sender=_sender(message, chat, me),
        text=forward_mark(message) + reading.text,
        sent_at=sent_at,
        message_id=str(message_id),
        addressed=place is Place.DM or reading.addressed or _answers(message, me),
    )
    return Translation(event, warning, forum=chat.get("is_forum") is True)


def chat_parameters(address: Address) -> dict[str, int]:
    """Return the target of a call that shows something new. Every such call takes it from here."""
    target = {"chat_id": _number(address.channel, "channel")}
    if address.thread:
        target["message_thread_id"] = _number(address.thread, "thread")
    return target


def _number(text: str, what: Literal["channel", "thread"]) -> int:
    try:
        return int(text)
    except ValueError:
        raise Gone(what) from None


def _place(kind: Any) -> tuple[Place, str]:
    place = _PLACES.get(kind) if isinstance(kind, str) else None
    if place is not None:
        return place, ""
    shown = one_line(as_text(kind), 32) or "missing"
    return Place.GROUP, f"chat type {shown!r} is not known: its messages count as a group's"


def _read(message: Json, me: Account) -> Reading:
    words = words_of(message)
    if not words.strip():
        return Reading(stand_in(message))
    raw = message.get("entities") if "text" in message else message.get("caption_entities")
    entities = read_entities(words, raw)
    return read_text(words, entities, me, commands="forward_origin" not in message)


def _thread(message: Json, place: Place) -> str:
    thread = as_int(message.get("message_thread_id"))
    if thread is None or thread < 1:
        return ""
    if place is Place.DM:
        return str(thread)
    # In groups without topics the id names a chain of replies, which is no place of its own.
    topic = message.get("is_topic_message") is True and thread != GENERAL_TOPIC
    return str(thread) if topic else ""


def _sender(message: Json, chat: Json, me: Account) -> Sender:
    """Return who wrote a message: a person, or the chat in whose name it was written.

    Nobody vouches for the author behind a chat: such a sender has an id that no person can have,
    and counts as a bot.
    """
    author, behalf = as_map(message.get("from")), as_map(message.get("sender_chat"))
    identity = as_int(author.get("id"))
    if identity is not None and identity not in SHARED_ACCOUNTS and not behalf:
        is_bot = author.get("is_bot") is True or identity == me.id
        return Sender(str(identity), person_name(author), bot=is_bot)
    origin = as_map(as_map(message.get("forward_origin")).get("chat"))
    for candidate in (behalf, origin, chat):
        identity = as_int(candidate.get("id"))
        if identity is not None:
            return Sender(f"chat:{identity}", chat_name(candidate), bot=True)
    return Sender("chat:unknown", bot=True)


def _answers(message: Json, me: Account) -> bool:
    """Whether the message replies to one of the bot's.

    Inside a topic every message refers to the one that opened it, which is no reply to anybody.
    """
    original = as_map(message.get("reply_to_message"))
    ours = as_int(as_map(original.get("from")).get("id")) == me.id
    return ours and "forum_topic_created" not in original


def _date(value: Any) -> datetime | None:
    seconds = as_int(value)
    if seconds is None or seconds < 0:
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        return None
