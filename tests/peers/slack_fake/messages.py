"""Messages as the server keeps them, and as a person sees them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import attrs

from peers.slack_fake.blocks import buttons, mentioned
from peers.slack_fake.errors import Json
from peers.slack_fake.text import called, plain
from peers.slack_fake.workspace import Channel


@attrs.frozen
class Version:
    """What a message said from a time on: as it was sent, before Slack made anything of it."""

    at: float
    source: str


@attrs.frozen
class Shown:
    """A message as a person sees it, with what it was made of."""

    ts: str
    user: str
    """Who wrote it; the app's own user for what the app wrote."""
    source: str
    """What was sent: text or Markdown, all parts of a stream together."""
    text: str
    """What the API gives as its text: escaped, in Slack's own marks."""
    blocks: tuple[Json, ...]
    versions: tuple[Version, ...]
    """Everything that it has said, oldest first."""
    thread: str | None = None
    """The ``ts`` of the message that opened its thread; ``None`` outside of threads."""
    subtype: str = ""
    deleted: bool = False
    edited: bool = False
    """Whether it is marked as edited."""
    streaming: Literal["", "in_progress", "completed"] = ""
    tasks: Mapping[str, Json] = attrs.field(factory=dict)
    """A stream's tasks by id."""
    files: tuple[str, ...] = ()
    reactions: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    """Who reacted, by the name of the emoji."""
    metadata: Json | None = None
    visible_to: str | None = None
    """The only person who sees it, for ephemeral messages."""

    @property
    def plain(self) -> str:
        """The text without escapes; mentions and links as words."""
        return plain(self.text)

    @property
    def called(self) -> frozenset[str]:
        """Whom it notifies: user ids, and ``here``, ``channel``, ``everyone``."""
        return frozenset(called(self.text) | mentioned(list(self.blocks)))

    @property
    def actions(self) -> tuple[str, ...]:
        """The ids of the buttons and menus."""
        return tuple(one["action_id"] for one in buttons(list(self.blocks)))


@attrs.define(eq=False)
class Stream:
    """R16: a message that is still being written."""

    began: float
    mode: Literal["", "markdown_text", "chunks"] = ""
    markdown: str = ""
    tasks: dict[str, Json] = attrs.field(factory=dict)
    plan: str = ""
    blocks: list[Json] = attrs.field(factory=list)
    open: bool = True


@attrs.define(eq=False)
class Message:
    """One message, alive until it is deleted."""

    ts: str
    channel: Channel
    user: str
    author: Json
    """What says who wrote it: ``user``, or the fields of an app."""
    text: str = ""
    blocks: list[Json] = attrs.field(factory=list)
    source: str = ""
    subtype: str = ""
    thread: str | None = None
    broadcast: bool = False
    metadata: Json | None = None
    files: list[str] = attrs.field(factory=list)
    attachments: list[Any] = attrs.field(factory=list)
    client_msg_id: str = ""
    extra: Json = attrs.field(factory=dict)
    edited: Json | None = None
    reactions: dict[str, list[str]] = attrs.field(factory=dict)
    versions: list[Version] = attrs.field(factory=list)
    stream: Stream | None = None
    visible_to: str | None = None
    deleted: bool = False
    tombstone: bool = False
    """Deleted, while its thread lives on."""

    @property
    def root(self) -> str:
        """The ``ts`` of the thread that it is in, or would open."""
        return self.thread or self.ts

    @property
    def streaming(self) -> bool:
        return self.stream is not None and self.stream.open

    def say(self, at: float, source: str, text: str, blocks: list[Json]) -> None:
        """Say something else from now on."""
        self.source, self.text, self.blocks = source, text, blocks
        self.versions.append(Version(at, source))

    def json(self) -> Json:
        """Return the message as the wire has it, without its files, metadata and thread."""
        if self.tombstone:
            gone = "This message was deleted."
            return {
                "type": "message",
                "subtype": "tombstone",
                "user": "USLACKBOT",
                "text": gone,
                "hidden": True,
                "ts": self.ts,
            }
        found: Json = {**self.author, "type": "message", "ts": self.ts, "text": self.text}
        if self.subtype:
            found["subtype"] = self.subtype
        for name in ("blocks", "attachments", "edited", "client_msg_id"):
            if value := getattr(self, name):
                found[name] = value
        if self.reactions:
            found["reactions"] = [
                {"name": name, "users": list(users), "count": len(users)}
                for name, users in self.reactions.items()
            ]
        if self.stream is not None:
            found["streaming_state"] = "in_progress" if self.stream.open else "completed"
        return found | self.extra

    def shown(self) -> Shown:
        stream = self.stream
        state: Literal["", "in_progress", "completed"] = ""
        if stream is not None:
            state = "in_progress" if stream.open else "completed"
        return Shown(
            ts=self.ts,
            user=self.user,
            source=self.source,
            text=self.text,
            blocks=tuple(self.blocks),
            versions=tuple(self.versions),
            thread=self.thread,
            subtype=self.subtype,
            deleted=self.deleted,
            edited=self.edited is not None,
            streaming=state,
            tasks=dict(stream.tasks) if stream is not None else {},
            files=tuple(self.files),
            reactions={name: tuple(users) for name, users in self.reactions.items()},
            metadata=self.metadata,
            visible_to=self.visible_to,
        )
