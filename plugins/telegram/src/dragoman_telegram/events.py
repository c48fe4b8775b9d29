"""Updates that are no messages: reactions, pressed buttons, chats that move or end. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import attrs

from dragoman import Address, Inbound, Kind, Sender
from dragoman_telegram.account import Account, sender_from, sender_of
from dragoman_telegram.content import chat_name
from dragoman_telegram.fields import Json, as_int, as_list, as_map, as_text, one_line

_AWAY: Final = frozenset({"left", "kicked"})


@attrs.frozen
class Heading:
    """What every update says: its number, where and when; and who the bot is."""

    number: int
    address: Address
    sent_at: datetime
    me: Account

    def event(self, kind: Kind, sender: Sender, **more: Any) -> Inbound:
        """Return an event; ``more`` are fields of `Inbound`."""
        fields = {"text": "", **more}
        return Inbound(
            address=fields.pop("address", self.address),
            native_id=fields.pop("native_id", str(self.number)),
            sender=sender,
            sent_at=self.sent_at,
            kind=kind,
            **fields,
        )


def reactions(update: Json, heading: Heading) -> tuple[Inbound, ...]:
    """Return an event for every reaction that was taken back or set, in this order."""
    message_id = as_int(update.get("message_id"))
    sender = _reactor(update, heading.me)
    if message_id is None or sender is None:
        return ()
    before, after = (_emoji(update.get(f"{when}_reaction")) for when in ("old", "new"))
    changes = [f"-{one}" for one in before if one not in after]
    changes += [one for one in after if one not in before]
    return tuple(
        heading.event(
            Kind.REACTION,
            sender,
            native_id=f"{heading.number}:{position}",
            message_id=str(message_id),
            data=data,
        )
        for position, data in enumerate(changes)
    )


def press(query: Json, heading: Heading) -> tuple[Inbound, ...]:
    """Return a press of a button."""
    user, data = as_map(query.get("from")), as_text(query.get("data"))
    message_id = as_int(as_map(query.get("message")).get("message_id"))
    if as_int(user.get("id")) is None or message_id is None or not data:
        return ()
    sender = sender_from(user, heading.me)
    return (heading.event(Kind.PRESS, sender, message_id=str(message_id), data=data),)


def departure(change: Json, heading: Heading) -> tuple[Inbound, ...]:
    """Return that the bot is not in a chat any more, or that a person has blocked it."""
    member, user = as_map(change.get("new_chat_member")), as_map(change.get("from"))
    away = as_text(member.get("status")) in _AWAY or member.get("is_member") is False
    if not away or as_int(as_map(member.get("user")).get("id")) not in {heading.me.id, None}:
        return ()
    known = as_int(user.get("id")) is not None
    return (heading.event(Kind.LEFT, sender_from(user, heading.me) if known else Sender("")),)


def moved(message: Json, heading: Heading) -> tuple[Inbound, ...]:
    """Return that a group has become a supergroup, with a new id.

    Telegram says so by a message in each of the two, in any order.
    """
    new, old = (as_int(message.get(f"migrate_{way}_chat_id")) for way in ("to", "from"))
    here = heading.address
    if (new, old) == (None, None):
        return ()
    before, after = (here.channel, str(new)) if old is None else (str(old), here.channel)
    sender = sender_of(message, as_map(message.get("chat")), heading.me)
    address = attrs.evolve(here, channel=before, thread="")
    return (heading.event(Kind.MOVED, sender, address=address, data=after),)


def _reactor(update: Json, me: Account) -> Sender | None:
    """Return who reacted; a chat in whose name somebody did counts as a bot."""
    user, chat = as_map(update.get("user")), as_map(update.get("actor_chat"))
    if as_int(user.get("id")) is not None:
        return sender_from(user, me)
    identity = as_int(chat.get("id"))
    return None if identity is None else Sender(f"chat:{identity}", chat_name(chat), bot=True)


def _emoji(raw: object) -> list[str]:
    """Return reactions by what people see; a custom one has a number only, a paid one is a star."""
    found = []
    for item in map(as_map, as_list(raw)):
        custom = one_line(as_text(item.get("custom_emoji_id")))
        name = one_line(as_text(item.get("emoji"))) or (custom and f"custom emoji {custom}")
        name = name or ("⭐" if as_text(item.get("type")) == "paid" else "")
        if name:
            found.append(name)
    return list(dict.fromkeys(found))
