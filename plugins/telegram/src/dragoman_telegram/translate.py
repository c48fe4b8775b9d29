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
from dragoman_telegram.content import forwarded_from, stand_in, words_of
from dragoman_telegram.entities import Reading, read_entities, read_rich, read_text
from dragoman_telegram.events import Heading, departure, moved, press, reactions
from dragoman_telegram.fields import Json, as_int, as_map, as_text, one_line
from dragoman_telegram.quotes import quote_of

_MESSAGES: Final = ("message", "edited_message", "channel_post", "edited_channel_post")
_OTHERS: Final = {
    "callback_query": press,
    "message_reaction": reactions,
    "my_chat_member": departure,
}
UPDATE_KINDS: Final = (*_MESSAGES, *_OTHERS)
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
    """What an update comes to: events or nothing, and what an operator should know of it.

    ``forum`` says whether the chat has topics; ``query`` is a press that waits to be answered.
    """

    events: tuple[Inbound, ...] = ()
    warning: str = ""
    forum: bool = False
    query: str = ""


def translate(update: Json, me: Account, platform: str, now: datetime) -> Translation:
    """Read one update for the platform instance ``platform``; ``now`` dates what has no date."""
    kind = next((k for k in UPDATE_KINDS if k in update), None)
    if kind is None:
        return Translation()
    body, pressed = as_map(update[kind]), kind == "callback_query"
    message = as_map(body.get("message")) if pressed else body
    query = as_text(body.get("id")) if pressed else ""
    if pressed and not message:  # below a message that this bot has not sent itself
        return Translation(query=query)
    chat, number = as_map(message.get("chat")), as_int(update.get("update_id"))
    chat_id = as_int(chat.get("id"))
    sent_at = now if pressed else _date(body, edits=kind.startswith("edited_"))
    unnamed = kind in _MESSAGES and as_int(message.get("message_id")) is None
    if number is None or chat_id is None or sent_at is None or unnamed:
        return Translation(warning=f"a {kind} without id, chat or date was skipped", query=query)
    place, warning = _place(chat.get("type"))
    address = Address(platform, str(chat_id), _thread(message, place), place=place)
    heading = Heading(number, address, sent_at, me)
    if kind in _MESSAGES:
        found = _message(message, heading, edits=kind.startswith("edited_"))
    else:
        found = _OTHERS[kind](body, heading)
    return Translation(found, warning, chat.get("is_forum") is True, query)


def _message(message: Json, heading: Heading, *, edits: bool) -> tuple[Inbound, ...]:
    """Return a message or its edit; nothing for what nobody said, or said to another bot."""
    if elsewhere := moved(message, heading):
        return elsewhere
    me, direct = heading.me, heading.address.place is Place.DM
    reading, files = _read(message, me), attachments_of(message)
    empty = not (reading.text or files)
    foreign = reading.foreign and not (direct and me.username)  # nameless, it knows no name
    if empty or foreign or (edits and _moves(message)):
        return ()
    event = heading.event(
        Kind.EDIT if edits else Kind.MESSAGE,
        sender_of(message, as_map(message.get("chat")), me),
        text=reading.text,
        message_id=str(message["message_id"]),
        addressed=direct or reading.addressed or answers(message, me),
        attachments=files,
        album=as_text(message.get("media_group_id")),
        continues=not edits and _continues(message, reading),
        quote=quote_of(message, me),
        forwarded=forwarded_from(message),
    )
    return (event,)


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
        return Reading("" if attachments_of(message) else stand_in(message))
    raw = message.get("entities") if "text" in message else message.get("caption_entities")
    entities = read_entities(words, raw) + read_rich(words, message, me)
    return read_text(words, entities, me, commands=not forwarded_from(message))


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
    if forwarded_from(message) or reading.text.lstrip().startswith("/"):
        return False
    return LengthUnit.UTF16.measure(as_text(message.get("text"))) >= CUT


def _moves(message: Json) -> bool:
    """Whether an edit is only a step of a live location, which nobody wrote."""
    return "location" in message and not words_of(message)


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
