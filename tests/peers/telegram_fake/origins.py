"""R30: where words come from: forwards, quotations, answers to what stands elsewhere."""

from __future__ import annotations

from peers.telegram_fake.chats import Chat, Person
from peers.telegram_fake.entities import units
from peers.telegram_fake.errors import Json, bad
from peers.telegram_fake.messages import Message
from peers.telegram_fake.text import Formatted


def from_user(person: Person, date: int) -> Json:
    """Forwarded from somebody who lets that be seen."""
    return {"type": "user", "date": date, "sender_user": person.json}


def from_hidden(name: str, date: int) -> Json:
    """Forwarded from somebody who hides behind a name."""
    return {"type": "hidden_user", "date": date, "sender_user_name": name}


def from_chat(chat: Chat, date: int, signature: str = "") -> Json:
    """Forwarded from what a group's anonymous administrator, or a chat as such, wrote."""
    return {"type": "chat", "date": date, "sender_chat": chat.json} | _signed(signature)


def from_channel(chat: Chat, message_id: int, date: int, signature: str = "") -> Json:
    """Forwarded from a channel's post."""
    found: Json = {"type": "channel", "date": date, "chat": chat.json, "message_id": message_id}
    return found | _signed(signature)


def origin(message: Message) -> Json:
    """Return where a message would be forwarded from; a forward keeps its first origin."""
    date = int(message.date)
    if "forward_origin" in message.service:
        kept: Json = message.service["forward_origin"]
        return kept
    if message.chat.kind == "channel":
        return from_channel(message.chat, message.id, date)
    if "sender_chat" in message.author:
        return {"type": "chat", "date": date, "sender_chat": message.author["sender_chat"]}
    return {"type": "user", "date": date, "sender_user": message.author["from"]}


def external_reply(message: Message) -> Json:
    """Return what an answer in another chat says of the message that it answers."""
    found: Json = {"origin": origin(message), **message.media}
    if message.chat.kind != "private":
        found |= {"chat": message.chat.json, "message_id": message.id}
    return found


def quote(message: Message, wanted: Formatted) -> Json:
    """Return a quotation of a message; its words must be there as they are."""
    place = message.body.text.find(wanted.text)
    if place < 0 or not wanted.text:
        raise bad("QUOTE_TEXT_INVALID")
    found: Json = {
        "text": wanted.text,
        "position": units(message.body.text[:place]),
        "is_manual": True,
    }
    return found | ({"entities": list(wanted.entities)} if wanted.entities else {})


def _signed(signature: str) -> Json:
    return {"author_signature": signature} if signature else {}
