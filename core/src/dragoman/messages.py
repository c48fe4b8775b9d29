"""The values that cross the border between core and a platform."""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import TypeAlias

import attrs


class Place(enum.Enum):
    """What kind of chat an address names."""

    DM = "dm"
    GROUP = "group"
    CHANNEL = "channel"
    """A broadcast channel: posts have no personal author."""


@attrs.frozen
class Address:
    """Where on a platform something is said. Every call of an adapter takes its target from one.

    ``platform`` is the instance id of the manifest. ``thread`` is empty outside threads, and
    ``workspace`` is empty on platforms that have none.
    """

    platform: str
    channel: str
    thread: str = ""
    workspace: str = ""
    place: Place = Place.DM

    @property
    def lane(self) -> Lane:
        """The unit inside which people see an order."""
        return (self.platform, self.workspace, self.channel, self.thread)


Lane: TypeAlias = tuple[str, str, str, str]


class Kind(enum.Enum):
    """What an inbound event tells. ``data`` is that of `Inbound`."""

    MESSAGE = "message"
    """Something was said; a native command is one, too, with its ``/name arguments`` as text."""

    EDIT = "edit"
    """The message ``message_id`` now says ``text``."""

    DELETION = "deletion"
    """The message ``message_id`` is gone. Where the platform does not say who took it away, the
    sender's id is empty."""

    REACTION = "reaction"
    """Somebody reacted to the message ``message_id`` with the emoji ``data``; with a ``-`` before
    it, a reaction was taken back."""

    PRESS = "press"
    """A button was pressed: ``data`` is that of its `Button`, ``message_id`` the message with it."""

    MOVED = "moved"
    """The channel of ``address`` goes on under the id ``data``."""

    LEFT = "left"
    """The account is not in the channel or thread of ``address`` any more, or it is gone."""


@attrs.frozen
class Sender:
    """Who said it. ``id`` is the platform's immutable id; ``name`` is a label, never identity.

    ``workspace`` is the one that the id belongs to, where ids are not unique beyond it. ``own``
    marks this account itself: an adapter hands nothing over before it knows which one that is.
    ``roles`` are the ids of what the platform calls roles, as far as
    it tells them with an event.
    """

    id: str
    name: str = ""
    bot: bool = False
    workspace: str = ""
    own: bool = False
    roles: tuple[str, ...] = ()


@attrs.frozen
class Attachment:
    """A file that came with a message: what is known of it without fetching it.

    ``id`` is how the platform names the file, ``kind`` one of its words (``photo``, ``voice``);
    ``size`` counts bytes, and is ``None`` where the platform does not say. ``missing`` says why it
    cannot be had, where that is known.
    """

    id: str
    kind: str
    name: str = attrs.field(default="", repr=False)
    mime: str = ""
    size: int | None = None
    missing: str = ""


@attrs.frozen
class Quote:
    """The message that another one refers to, as far as the platform tells. ``own`` marks words of
    this account; ``author`` is a label."""

    text: str = attrs.field(repr=False)
    author: str = ""
    message_id: str = ""
    own: bool = False


@attrs.frozen
class Inbound:
    """One thing that a platform told us.

    ``native_id`` is the platform's own id of the *event*: unique per instance, the same on every
    redelivery. ``message_id`` is the id of the message that it is about, as replies and edits name
    it. ``addressed`` says whether a message in a group speaks to the bot (mention by entity, reply
    to the bot, command); it is true in direct messages. ``sent_at`` is the platform's time, with
    a time zone; it dates the message and is never used for order or leases.

    ``kind`` says what it tells, ``data`` is explained there. ``quote`` is the message that it
    answers; ``forwarded`` names whose words a forwarded message holds (empty: it is none), and no
    command is taken from it. ``follows`` says that it continues a thread, so that it speaks to the
    bot where the bot has taken part. ``within`` are the ids of what holds the channel (a category),
    the nearest first, for access lists and routes. ``twin`` says that the platform tells one message
    by two events, with the same sender and ``message_id``: whichever comes later is the same message,
    and speaks to the bot if either does. ``answerable`` says that a message was given in a way that
    can be answered to its sender alone, by `Answers.answer`, as a slash command can.

    ``album`` names what came together, as an album of photos does: its members become one input.
    ``continues`` says that the sender's client probably cut a long text here, so that the rest is
    about to follow. ``joined``, ``late`` and ``notes`` are core's own: several messages were made
    into this one; it came too late to be made one with the message that it belongs to; what has
    become of earlier messages since.
    """

    native_id: str
    address: Address
    sender: Sender
    text: str = attrs.field(repr=False)
    sent_at: datetime = attrs.field()
    message_id: str = ""
    addressed: bool = True
    attachments: tuple[Attachment, ...] = ()
    album: str = ""
    continues: bool = False
    kind: Kind = Kind.MESSAGE
    data: str = ""
    quote: Quote | None = None
    forwarded: str = ""
    follows: bool = False
    within: tuple[str, ...] = ()
    twin: bool = False
    answerable: bool = False
    joined: bool = False
    late: bool = False
    notes: tuple[str, ...] = attrs.field(default=(), repr=False)

    @property
    def reply_to(self) -> str:
        """What the first answer refers to: where others may write, the message."""
        return "" if self.address.place is Place.DM else self.message_id

    @sent_at.validator
    def _has_zone(self, _: object, value: datetime) -> None:
        if value.tzinfo is None:
            msg = "sent_at needs a time zone"
            raise ValueError(msg)


@attrs.frozen(kw_only=True)
class OutboundFile:
    """A file to show. ``path`` is the gateway's own copy, ``size`` counts bytes, ``name`` has no
    folders in it. ``kind`` is ``image``, ``voice``, ``audio``, ``video`` or ``file``. A copy that
    cannot be read is `dragoman.Refused`."""

    path: Path = attrs.field(repr=False)
    name: str = attrs.field(repr=False)
    size: int
    mime: str = "application/octet-stream"
    kind: str = "file"


@attrs.frozen
class Button:
    """A button below a message. ``label`` has at most 40 characters, ``data`` at most 64 bytes of
    ASCII; ``style`` is ``""``, ``"primary"`` or ``"danger"``."""

    label: str
    data: str
    style: str = ""


@attrs.frozen
class Outbound:
    """One message part to show. ``text`` is Markdown, already within the platform's limit.

    ``delivery_id`` names the message, the same on every attempt: platforms with idempotent sends
    derive their key from it. It begins with the ledger row's id. ``created_at`` is when the row was
    written, so before any attempt. ``plain`` asks for ``text`` as it is, without any conversion.
    ``final`` is false while an answer streams: the part will be edited again.

    ``shown`` is, in an edit, the text that the message shows as far as core knows: a platform with
    streams of its own may send only what follows it. ``ordinary`` asks to use no short-lived handle
    (an interaction, a stream), since the platform said `dragoman.Expired` before. With ``file``,
    ``text`` is its caption, possibly empty. ``buttons`` are all that the message has, in order: an
    edit without any takes them away.

    Mentions in ``text`` notify nobody unless the platform's own table allows it.
    """

    delivery_id: str
    text: str = attrs.field(repr=False)
    reply_to: str = ""
    plain: bool = False
    final: bool = True
    shown: str = attrs.field(default="", repr=False)
    ordinary: bool = False
    file: OutboundFile | None = None
    buttons: tuple[Button, ...] = ()
    created_at: datetime | None = None


@attrs.frozen
class Receipt:
    """What a platform said of a message that it shows.

    ``native_id`` names the message in later edits. ``shown`` is the text that the platform
    returned, as `Dialect.normal` takes it, or ``None`` where it returns none.
    """

    native_id: str
    shown: str | None = attrs.field(default=None, repr=False)


Deliver: TypeAlias = Callable[[Inbound], Awaitable[None]]
"""Given to `Platform.run`: returns when the event is durable, so that the platform may be told
"received". It never runs a turn and never waits for one."""
