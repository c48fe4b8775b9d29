"""Messages as the server keeps them, and as a person sees them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from peers.discord_fake.errors import Json
from peers.discord_fake.places import Channel, User

EPHEMERAL, LOADING, HAS_THREAD, COMPONENTS_V2 = 1 << 6, 1 << 7, 1 << 5, 1 << 15


@attrs.frozen
class Version:
    """What a message showed from a time on."""

    at: float
    text: str
    components: tuple[Json, ...] = ()


@attrs.frozen
class Pings:
    """Who is notified of a message."""

    users: frozenset[int] = frozenset()
    roles: frozenset[int] = frozenset()
    everyone: bool = False

    def __bool__(self) -> bool:
        return bool(self.users or self.roles or self.everyone)


@attrs.frozen
class Attachment:
    """A file of a message."""

    id: int
    name: str
    content: bytes = attrs.field(repr=False)
    media_type: str = "application/octet-stream"
    description: str | None = None


@attrs.frozen
class Shown:
    """A message as a person sees it."""

    id: int
    author: int
    text: str
    versions: tuple[Version, ...]
    """Everything that it has shown, oldest first."""
    deleted: bool
    reply_to: int | None
    pinged: Pings
    """Who was notified when it was sent. Edits notify nobody."""
    components: tuple[Json, ...]
    files: Mapping[str, bytes]
    embeds: tuple[Json, ...]
    reactions: Mapping[str, tuple[int, ...]]
    """Who reacted, by emoji."""
    seen_by: int | None
    """The only one who sees it, of an ephemeral one."""
    thinking: bool
    """Whether it only says that an answer is coming."""
    thread: int | None
    nonce: str | None

    @property
    def buttons(self) -> tuple[str, ...]:
        """The labels of the buttons that can be pressed."""
        found = [part for part in walk(self.components) if part.get("type") == 2]
        return tuple(part.get("label", "") for part in found if not part.get("disabled"))

    @property
    def displayed(self) -> str:
        """The text, or that of the text displays where components make up the message."""
        parts = [part["content"] for part in walk(self.components) if part.get("type") == 10]
        return "\n".join(([self.text] if self.text else []) + parts)


def walk(components: Any) -> Iterator[Json]:
    """Yield components and all that is in them, in the order in which they are shown."""
    for part in components or ():
        yield part
        yield from walk(part.get("components"))
        single = part.get("accessory"), part.get("component")
        yield from walk([inner for inner in single if isinstance(inner, dict)])


@attrs.define(eq=False)
class Message:
    """One message."""

    id: int
    channel: Channel
    author: User
    at: float
    content: str = ""
    type: int = 0
    flags: int = 0
    tts: bool = False
    embeds: list[Json] = attrs.field(factory=list)
    components: list[Json] = attrs.field(factory=list)
    attachments: list[Attachment] = attrs.field(factory=list)
    stickers: list[Json] = attrs.field(factory=list)
    poll: Json | None = None
    snapshots: list[Json] = attrs.field(factory=list)
    """What a forwarded message looked like."""
    reference: Json | None = None
    nonce: Any = None
    pings: Pings = attrs.field(factory=Pings)
    named: list[User] = attrs.field(factory=list)
    """``mentions`` of the wire."""
    edited: float | None = None
    deleted: bool = False
    versions: list[Version] = attrs.field(factory=list)
    reactions: dict[str, list[int]] = attrs.field(factory=dict)
    thread: Channel | None = None
    seen_by: int | None = None
    interaction: Json | None = None
    """The interaction that it answers, as the wire has it."""
    hook: int = 0
    """The webhook that wrote it."""

    @property
    def reply_to(self) -> int | None:
        """The message that it answers, which may be gone."""
        known = self.reference or {}
        replies = self.type in (19, 21) and "message_id" in known
        return int(known["message_id"]) if replies else None

    def show(self, at: float) -> None:
        """Note what it looks like from now on."""
        self.versions.append(Version(at, self.content, tuple(self.components)))

    def shown(self) -> Shown:
        return Shown(
            id=self.id,
            author=self.author.id,
            text=self.content,
            versions=tuple(self.versions),
            deleted=self.deleted,
            reply_to=self.reply_to,
            pinged=self.pings,
            components=tuple(self.components),
            files={one.name: one.content for one in self.attachments},
            embeds=tuple(self.embeds),
            reactions={emoji: tuple(users) for emoji, users in self.reactions.items()},
            seen_by=self.seen_by,
            thinking=bool(self.flags & LOADING),
            thread=None if self.thread is None else self.thread.id,
            nonce=None if self.nonce is None else str(self.nonce),
        )
