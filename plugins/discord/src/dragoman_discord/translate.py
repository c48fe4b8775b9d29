"""Discord's events, and ours. Pure: no I/O, no clock. Raises for no event, however broken."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final, Literal

import attrs

from dragoman import Address, Inbound, Kind, Place, Sender
from dragoman_discord.fields import Json, as_id, as_int, as_list, as_map, as_text, as_time, time_of
from dragoman_discord.gateway import Dispatch
from dragoman_discord.places import FORUMS, TALK, Channel, Places
from dragoman_discord.words import (
    Names,
    calls,
    files_of,
    forwarded_of,
    label_of,
    quote_of,
    text_of,
)

TOLD: Final = frozenset({0, 19})
"""Kinds of messages that people write: plain ones and replies. The others are the server's."""
CUT: Final = 1900
"""Characters from which on a text may be a part that the sender cut, of at most 2000."""


@attrs.frozen
class Scene:
    """What it takes to understand an event besides the event itself.

    ``names`` has the bot and the role that the event's server gave it; ``replies`` is the manifest's.
    """

    platform: str
    names: Names
    places: Places = attrs.field(repr=False)
    now: datetime
    replies: Literal["channel", "thread"] = "channel"


def translate(event: Dispatch, scene: Scene) -> tuple[Inbound, ...]:
    """Return what an event tells: nothing, one thing, or as many as it names."""
    data = event.data
    match event.name:
        case "MESSAGE_CREATE":
            return _one(message_of(data, scene))
        case "MESSAGE_UPDATE":
            return _one(_edit(data, scene))
        case "MESSAGE_DELETE":
            return tuple(_deletions([data.get("id")], data, scene))
        case "MESSAGE_DELETE_BULK":
            return tuple(_deletions(data.get("ids"), data, scene))
        case "MESSAGE_REACTION_ADD" | "MESSAGE_REACTION_REMOVE":
            return _one(_reaction(event, scene))
    return ()


def channel_of(data: Json, scene: Scene) -> Channel | None:
    """Return the channel or thread that an event lies in, as far as it is known."""
    identity = as_id(data.get("channel_id"))
    if not identity:
        return None
    guild = as_id(data.get("guild_id"))
    known = scene.places.get(identity) or Channel(identity, 0 if guild else 1, guild)
    return known if known.guild or not guild else attrs.evolve(known, guild=guild)


def message_of(data: Json, scene: Scene) -> Inbound | None:
    """Read a message; ``None`` for the bot's own and for those that nobody wrote."""
    channel, identity = channel_of(data, scene), as_id(data.get("id"))
    sender = sender_of(data)
    if channel is None or not identity or sender.id in {"", scene.names.me}:
        return None
    if as_int(data.get("type")) not in TOLD:
        return None
    inner = forwarded_of(data)
    files = (
        *files_of(data, channel.id, identity),
        *files_of(inner, channel.id, identity),
    )
    text = text_of(inner or data, scene.names)
    if not text and not files:
        return None
    quote = quote_of(data, scene.names)
    called = calls(data, scene.names) or (quote is not None and quote.own)
    address, place = _address(channel, identity, scene, called=called)
    return Inbound(
        native_id=identity,
        address=address,
        sender=sender,
        text=text,
        sent_at=as_time(data.get("timestamp")) or time_of(identity),
        message_id=identity,
        addressed=place is Place.DM or called or channel.owner == scene.names.me,
        attachments=files,
        continues=not inner and len(as_text(data.get("content"))) >= CUT,
        quote=quote,
        forwarded="another conversation" if inner else "",
        follows=channel.is_thread,
        within=scene.places.within(channel),
    )


def _address(
    channel: Channel, identity: str, scene: Scene, *, called: bool
) -> tuple[Address, Place]:
    """Return where a message belongs: into the thread that its answer will begin, if so wanted.

    Such a thread gets the id of the message, so it has a name before it is there.
    """
    address = scene.places.address(channel)
    begins = called and scene.replies == "thread" and channel.kind in TALK
    if begins or (channel.guild and not channel.is_thread and _is_begun(identity, scene)):
        address = attrs.evolve(address, thread=identity)
    return address, address.place


def _is_begun(identity: str, scene: Scene) -> bool:
    thread = scene.places.get(identity)
    return thread is not None and thread.is_thread and thread.owner == scene.names.me


def sender_of(data: Json) -> Sender:
    """Return who wrote a message. Ids are the same in all servers."""
    author, member = as_map(data.get("author")), as_map(data.get("member"))
    nick = as_text(member.get("nick"))
    return Sender(
        as_id(author.get("id")),
        label_of({"username": nick}) or label_of(author),
        bot=author.get("bot") is True or "webhook_id" in data,
        roles=roles_of(member),
    )


def roles_of(member: Json) -> tuple[str, ...]:
    """Return the roles that a server gave somebody; everybody's own is not among them."""
    return tuple(filter(None, map(as_id, as_list(member.get("roles")))))


def _edit(data: Json, scene: Scene) -> Inbound | None:
    """Read a change: of the words, not of what Discord adds below links."""
    edited = as_time(data.get("edited_timestamp"))
    message = message_of(data, scene) if edited else None
    if message is None or edited is None:
        return None
    mark = f"{message.message_id}:{int(edited.timestamp() * 1000)}"
    return attrs.evolve(message, native_id=mark, kind=Kind.EDIT, sent_at=edited, continues=False)


def _deletions(ids: object, data: Json, scene: Scene) -> Iterator[Inbound]:
    channel = channel_of(data, scene)
    for identity in map(as_id, as_list(ids)):
        if channel is not None and identity:
            yield Inbound(
                native_id=f"{identity}:gone",
                address=_address(channel, identity, scene, called=False)[0],
                sender=Sender(""),
                text="",
                sent_at=scene.now,
                message_id=identity,
                kind=Kind.DELETION,
                within=scene.places.within(channel),
            )


def _reaction(event: Dispatch, scene: Scene) -> Inbound | None:
    """Read a reaction to one of the bot's messages; of one that is taken back, Discord does not
    say whose message it was on."""
    data = event.data
    channel, identity = channel_of(data, scene), as_id(data.get("message_id"))
    person, emoji = as_id(data.get("user_id")), emoji_of(as_map(data.get("emoji")))
    author = as_id(data.get("message_author_id"))
    if channel is None or not (identity and person and emoji) or person == scene.names.me:
        return None
    if author and author != scene.names.me:
        return None
    member = as_map(data.get("member"))
    user = as_map(member.get("user"))
    taken = event.name == "MESSAGE_REACTION_REMOVE"
    return Inbound(
        native_id=f"reaction:{event.mark}",
        address=_address(channel, identity, scene, called=False)[0],
        sender=Sender(person, label_of(user), bot=user.get("bot") is True, roles=roles_of(member)),
        text="",
        sent_at=scene.now,
        message_id=identity,
        kind=Kind.REACTION,
        data=f"-{emoji}" if taken else emoji,
        within=scene.places.within(channel),
    )


def emoji_of(emoji: Json) -> str:
    """Return an emoji as reactions name it: itself, or name and id of a server's own."""
    name, identity = as_text(emoji.get("name")), as_id(emoji.get("id"))
    return f"{name}:{identity}" if identity else name


def left(channel: Channel, mark: str, scene: Scene) -> Inbound:
    """Return that a channel or thread is gone, or that the bot is not in it any more."""
    return Inbound(
        native_id=f"left:{channel.id}:{mark}",
        address=scene.places.address(channel),
        sender=Sender(""),
        text="",
        sent_at=scene.now,
        kind=Kind.LEFT,
        within=scene.places.within(channel),
    )


def lives_in(address: Address, message_id: str, places: Places) -> str:
    """Return the channel in which a message of a conversation is to be found.

    A thread's own channel, except for the message that it began at: that one stayed outside. The
    first message of a forum's post lies inside.
    """
    if not address.thread:
        return address.channel
    around = places.get(address.channel)
    outside = message_id == address.thread and not (around is not None and around.kind in FORUMS)
    return address.channel if outside else address.thread


def _one(event: Inbound | None) -> tuple[Inbound, ...]:
    return () if event is None else (event,)
