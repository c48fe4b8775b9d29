"""Telegram's updates and addresses, and ours. Pure: no I/O, no clock.

`translate` raises for no update, however broken.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final, Literal

import attrs

from dragoman import Address, Gone, Inbound, Kind, LengthUnit, Place
from dragoman_telegram.account import Account, answers, sender_of
from dragoman_telegram.attachments import attachments_of
from dragoman_telegram.content import forward_mark, stand_in, words_of
from dragoman_telegram.entities import Reading, read_entities, read_text
from dragoman_telegram.fields import Json, as_int, as_map, as_text, one_line

UPDATE_KINDS: Final = ("message", "edited_message", "channel_post", "edited_channel_post")
"""What the bot asks Telegram for, and all that `translate` understands."""

CUT: Final = 4000
"""UTF-16 units from which on a text may be a part that the sender's client cut off. The limit is
4096; clients cut at a blank before it."""

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
    message, edits = as_map(update[kind]), kind.startswith("edited_")
    chat = as_map(message.get("chat"))
    native_id, chat_id = as_int(update.get("update_id")), as_int(chat.get("id"))
    message_id, sent_at = as_int(message.get("message_id")), _date(message, edits=edits)
    if native_id is None or chat_id is None or message_id is None or sent_at is None:
        return Translation(warning=f"a {kind} without id, chat or date was skipped")
    place, warning = _place(chat.get("type"))
    reading = _read(message, me)
    if (
        not reading.text
        or (reading.foreign and place is not Place.DM)
        or (edits and _moves(message))
    ):
        return Translation(warning=warning or _migration(message, chat_id))
    event = Inbound(
        native_id=str(native_id),
        address=Address(
            platform=platform,
            channel=str(chat_id),
            thread=_thread(message, place),
            place=place,
        ),
        sender=sender_of(message, chat, me),
        text=forward_mark(message) + reading.text,
        sent_at=sent_at,
        message_id=str(message_id),
        addressed=place is Place.DM or reading.addressed or answers(message, me),
        attachments=attachments_of(message),
        album=as_text(message.get("media_group_id")),
        continues=not edits and _continues(message, reading),
        kind=Kind.EDIT if edits else Kind.MESSAGE,
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


def _continues(message: Json, reading: Reading) -> bool:
    """Whether the sender's client probably cut a long text here; others' words and commands count
    as whole."""
    if "forward_origin" in message or reading.text.lstrip().startswith("/"):
        return False
    return LengthUnit.UTF16.measure(as_text(message.get("text"))) >= CUT


def _moves(message: Json) -> bool:
    """Whether an edit is only a step of a live location, which nobody wrote."""
    return "location" in message and not words_of(message)


def _migration(message: Json, chat_id: int) -> str:
    """Return what to tell the operator where a group has become a supergroup, with a new id."""
    new, old = (as_int(message.get(f"migrate_{way}_chat_id")) for way in ("to", "from"))
    if new is not None:
        return f"group {chat_id} became the supergroup {new}: {_RENAME}"
    if old is not None:
        return f"supergroup {chat_id} was the group {old}: {_RENAME}"
    return ""


_RENAME: Final = "routes and access lists have to name the new id"


def _date(message: Json, *, edits: bool) -> datetime | None:
    """Return when the text was written, as Telegram says: for an edit, when it was edited."""
    seconds = as_int(message.get("edit_date")) if edits else None
    if seconds is None:
        seconds = as_int(message.get("date"))
    if seconds is None or seconds < 0:
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        return None
