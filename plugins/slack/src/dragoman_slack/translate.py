"""Slack's events and ours. Pure: no I/O, no clock.

`translate` raises for no payload, however broken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final, TypeAlias

import attrs

from dragoman import Address, Inbound, Kind, Place, Sender
from dragoman_slack.account import Account, sender_of
from dragoman_slack.attachments import attachments_of, notes_of
from dragoman_slack.emoji import emoji_of
from dragoman_slack.fields import Json, as_map, as_text
from dragoman_slack.shared import shared_in
from dragoman_slack.text import mentioned, read

_SAID: Final = frozenset({"", "file_share", "thread_broadcast", "me_message", "bot_message"})
"""Kinds of messages in which somebody says something; the others tell of the channel."""
_LEFT: Final = (
    "channel_archive",
    "channel_deleted",
    "channel_left",
    "group_archive",
    "group_deleted",
    "group_left",
)


@attrs.frozen(kw_only=True)
class Reader:
    """What has to be known to read an event. ``names`` are those of people, by id."""

    me: Account
    platform: str
    threads: bool = True
    """Whether answers in channels go into a thread of their own."""
    names: Mapping[str, str] = attrs.field(factory=dict)

    def address(self, channel: str, *, workspace: str, thread: str = "") -> Address:
        """Return a place. Which thread that is, `thread_of` says."""
        return Address(
            platform=self.platform,
            channel=channel,
            thread=thread,
            workspace=self.me.workspace(workspace),
            place=place_of(channel),
        )

    def sender(self, user: str, team: str = "") -> Sender:
        """Return a person of whom nothing else is told."""
        return Sender(
            user,
            self.names.get(user, ""),
            workspace=team or self.me.team,
            own=user == self.me.user,
        )


def place_of(channel: str) -> Place:
    """Return what kind of chat a channel is; group messages among several people are a group."""
    return Place.DM if channel.startswith("D") else Place.GROUP


def is_reply(ts: str, thread_ts: str) -> bool:
    """Whether a message was written in a thread, and did not open one."""
    return bool(thread_ts) and thread_ts != ts


def thread_of(channel: str, ts: str, thread_ts: str, *, threads: bool) -> str:
    """Return the thread that a message belongs to: the only place where that is decided.

    What is written in a thread belongs to it. With ``threads``, a message in a channel opens the
    one that its answer goes to; in direct messages it does not.
    """
    if is_reply(ts, thread_ts):
        return thread_ts
    return ts if threads and place_of(channel) is not Place.DM else ""


def people_in(payload: Json) -> tuple[str, ...]:
    """Return the ids of the people whose names an event is better read with."""
    event = as_map(payload.get("event"))
    message = as_map(event.get("message")) or event
    author = as_text(message.get("user")) or as_text(event.get("user"))
    ids = (author, *mentioned(as_text(message.get("text"))))
    return tuple(dict.fromkeys(one for one in ids if one[:1] in {"U", "W"}))


def translate(payload: Json, reader: Reader) -> Inbound | None:
    """Read the payload of an event; ``None`` where nobody said or did anything for us."""
    event = as_map(payload.get("event"))
    kind, event_id = as_text(event.get("type")), as_text(payload.get("event_id"))
    read_it = _READERS.get(kind)
    if read_it is None or not event_id:
        return None
    context = as_text(payload.get("context_team_id")) or as_text(payload.get("team_id"))
    return read_it(_Event(event, kind, f"e:{event_id}", context), reader)


@attrs.frozen
class _Event:
    """An event, with what its envelope says of it."""

    body: Json
    kind: str
    native_id: str
    team: str

    @property
    def channel(self) -> str:
        return as_text(self.body.get("channel"))

    @property
    def at(self) -> datetime | None:
        return time_of(as_text(self.body.get("event_ts")) or as_text(self.body.get("ts")))


_Read: TypeAlias = Callable[[_Event, Reader], Inbound | None]


def _message(event: _Event, reader: Reader) -> Inbound | None:
    subtype = as_text(event.body.get("subtype"))
    if subtype == "message_changed":
        return _change(event, reader)
    if subtype == "message_deleted":
        return _deletion(event, reader, as_text(event.body.get("deleted_ts")))
    if subtype not in _SAID or reader.me.wrote(event.body):
        return None
    ts = as_text(event.body.get("ts"))
    # One mention comes as two events, with an id each: what they share is the message.
    return said(
        event.body, event.channel, reader, team=event.team, native_id=f"{event.channel}:{ts}"
    )


def said(
    message: Json,
    channel: str,
    reader: Reader,
    *,
    team: str = "",
    native_id: str = "",
    kind: Kind = Kind.MESSAGE,
    at: datetime | None = None,
) -> Inbound | None:
    """Return what somebody said in a channel, also where it is read from the history."""
    ts, thread_ts = as_text(message.get("ts")), as_text(message.get("thread_ts"))
    sent_at = at or time_of(ts)
    if sent_at is None or not channel:
        return None
    reading = read(as_text(message.get("text")), reader.me.user, reader.names)
    files, notes, shared = attachments_of(message), notes_of(message), shared_in(message, reader.me)
    forwarded = shared is not None and not reading.text
    words = shared.text if shared and forwarded else reading.text
    text = "\n".join(filter(None, (words, *notes)))
    if not (text or files or reading.addressed):
        return None
    thread = thread_of(channel, ts, thread_ts, threads=reader.threads)
    direct = place_of(channel) is Place.DM
    return Inbound(
        native_id=native_id or f"{channel}:{ts}",
        address=reader.address(channel, workspace=team, thread=thread),
        sender=sender_of(message, reader.me, reader.names.get(as_text(message.get("user")), "")),
        text=text,
        sent_at=sent_at,
        message_id=ts,
        addressed=direct or reading.addressed,
        attachments=files,
        kind=kind,
        quote=None if forwarded else shared,
        forwarded=(shared.author or "somebody") if shared and forwarded else "",
        follows=is_reply(ts, thread_ts) and not reading.other,
    )


def _change(event: _Event, reader: Reader) -> Inbound | None:
    """Read a message that says something else; previews and counts of answers change it as well."""
    now, before = (as_map(event.body.get(name)) for name in ("message", "previous_message"))
    if as_text(now.get("subtype")) == "tombstone":
        gone = _Event({**event.body, "previous_message": before}, "", event.native_id, event.team)
        return _deletion(gone, reader, as_text(now.get("ts")))
    same = as_text(now.get("text")) == as_text(before.get("text"))
    if same or not now.get("edited") or reader.me.wrote(now):
        return None
    if as_text(now.get("subtype")) not in _SAID:
        return None
    return said(
        now,
        event.channel,
        reader,
        team=event.team,
        native_id=event.native_id,
        kind=Kind.EDIT,
        at=event.at,
    )


def _deletion(event: _Event, reader: Reader, ts: str) -> Inbound | None:
    """Read that a message is gone: Slack does not say who took it away."""
    before = as_map(event.body.get("previous_message"))
    if not ts or reader.me.wrote(before):
        return None
    thread = thread_of(event.channel, ts, as_text(before.get("thread_ts")), threads=reader.threads)
    return _told(event, reader, Kind.DELETION, Sender(""), ts, thread=thread)


def _reaction(event: _Event, reader: Reader) -> Inbound | None:
    item, user = as_map(event.body.get("item")), as_text(event.body.get("user"))
    ts, name = as_text(item.get("ts")), as_text(event.body.get("reaction"))
    if as_text(item.get("type")) != "message" or not (ts and name) or user in {"", reader.me.user}:
        return None
    taken = "-" if event.kind == "reaction_removed" else ""
    placed = attrs.evolve(event, body={**event.body, "channel": as_text(item.get("channel"))})
    # The thread is not told; a message that opened one is named like it.
    thread = thread_of(placed.channel, ts, "", threads=reader.threads)
    return _told(
        placed,
        reader,
        Kind.REACTION,
        reader.sender(user),
        ts,
        thread=thread,
        data=f"{taken}{emoji_of(name)}",
    )


def _left(event: _Event, reader: Reader) -> Inbound | None:
    return _told(event, reader, Kind.LEFT, Sender(""))


def _member_left(event: _Event, reader: Reader) -> Inbound | None:
    return _left(event, reader) if as_text(event.body.get("user")) == reader.me.user else None


def _moved(event: _Event, reader: Reader) -> Inbound | None:
    old, new = (as_text(event.body.get(f"{which}_channel_id")) for which in ("old", "new"))
    if not new:
        return None
    placed = attrs.evolve(event, body={**event.body, "channel": old})
    return _told(placed, reader, Kind.MOVED, Sender(""), data=new)


def _told(
    event: _Event,
    reader: Reader,
    kind: Kind,
    sender: Sender,
    message_id: str = "",
    *,
    thread: str = "",
    data: str = "",
) -> Inbound | None:
    at = event.at
    if not event.channel or at is None:
        return None
    return Inbound(
        native_id=event.native_id,
        address=reader.address(event.channel, workspace=event.team, thread=thread),
        sender=sender,
        text="",
        sent_at=at,
        message_id=message_id,
        addressed=False,
        kind=kind,
        data=data,
    )


_READERS: Final[Mapping[str, _Read]] = {
    "message": _message,
    "app_mention": _message,
    "reaction_added": _reaction,
    "reaction_removed": _reaction,
    "member_left_channel": _member_left,
    "channel_id_changed": _moved,
    **dict.fromkeys(_LEFT, _left),
}


def time_of(ts: str) -> datetime | None:
    """Return the time that a ``ts`` tells."""
    seconds, dot, micros = ts.partition(".")
    if not (seconds.isascii() and seconds.isdigit()) or (dot and not micros.isdigit()):
        return None
    try:
        return datetime.fromtimestamp(int(seconds), UTC).replace(microsecond=int(micros[:6] or 0))
    except (OverflowError, OSError, ValueError):
        return None
