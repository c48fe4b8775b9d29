"""Messages as the server keeps them, and as a person sees them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from peers.telegram_fake.chats import Chat
from peers.telegram_fake.errors import Json
from peers.telegram_fake.rich_shapes import buttons, written
from peers.telegram_fake.text import Formatted


@attrs.frozen
class Version:
    """What a message showed from a time on."""

    at: float
    text: str


@attrs.frozen
class Shown:
    """A message as a person sees it; ``text`` is a caption where there are files."""

    message_id: int
    sender: int
    text: str
    versions: tuple[Version, ...]
    """Every text it has had, oldest first."""
    deleted: bool = False
    thread: int | None = None
    reply_to: int | None = None
    buttons: tuple[tuple[str, ...], ...] = ()
    """The labels of the inline keyboard, row by row; then those inside of a rich message."""
    files: tuple[str, ...] = ()
    """The ids of its files."""
    reactions: Mapping[int, tuple[str, ...]] = attrs.field(factory=dict)
    """Emoji by the id of who reacted."""
    entities: tuple[Json, ...] = ()
    """How the text is formatted, and what Telegram found in it by itself."""
    blocks: tuple[Json, ...] = ()
    """R27: what a rich message is made of; ``text`` has its words then."""


@attrs.define(eq=False)
class Message:
    """One message, alive until it is deleted or forgotten."""

    id: int
    chat: Chat
    sender: int
    author: Json
    """What says who wrote it: ``from``, ``sender_chat``."""
    date: float
    body: Formatted = attrs.field(factory=lambda: Formatted(""))
    media: Json = attrs.field(factory=dict)
    """``photo``, ``document`` and the like as the wire has them; empty for text."""
    service: Json = attrs.field(factory=dict)
    """What happened, for messages that nobody wrote."""
    markup: Json | None = None
    thread: int | None = None
    reply_to: int | None = None
    album: str = ""
    quote: Json | None = None
    """R30: the words of the message replied to that it is about."""
    source: tuple[int, int] | None = None
    """R29: the channel's post that it repeats in the discussion group."""
    preview: Json | None = None
    rich: Json | None = None
    """R27: the content of a rich message; ``body`` says it in plain words then."""
    edited: float | None = None
    versions: list[Version] = attrs.field(factory=list)
    reactions: dict[int, tuple[str, ...]] = attrs.field(factory=dict)
    deleted: bool = False
    forgotten: bool = False

    @property
    def alive(self) -> bool:
        return not (self.deleted or self.forgotten)

    @property
    def buttons(self) -> list[list[Json]]:
        """The rows of its inline keyboard, and what can be pressed in a rich message."""
        rows: list[list[Json]] = list((self.markup or {}).get("inline_keyboard", []))
        inside = list(buttons((self.rich or {}).get("blocks", [])))
        return rows + ([inside] if inside else [])

    def change(self, body: Formatted, at: float, rich: Json | None = None) -> None:
        """Show another text."""
        self.body, self.edited, self.rich = body, at, rich
        self.versions.append(Version(at, body.text))

    def json(self, original: Message | None = None) -> Json:
        """Return the message as the wire has it; ``original`` is what it replies to."""
        found: Json = {
            "message_id": self.id,
            **self.author,
            "chat": self.chat.json,
            "date": int(self.date),
        }
        if self.edited is not None:
            found["edit_date"] = int(self.edited)
        if self.thread is not None:
            found["message_thread_id"] = self.thread
            found["is_topic_message"] = True
        if original is not None and original.alive:
            found["reply_to_message"] = original.json()
        if self.quote is not None:
            found["quote"] = self.quote
        return found | self._content() | self.service

    def _content(self) -> Json:
        found: Json = dict(self.media)
        text, entities = ("caption", "caption_entities") if self.media else ("text", "entities")
        if self.rich is not None:
            found["rich_message"] = self.rich
        elif self.body.text:
            found[text] = self.body.text
        if self.body.entities and self.rich is None:
            found[entities] = list(self.body.entities)
        if self.album:
            found["media_group_id"] = self.album
        if self.preview is not None:
            found["link_preview_options"] = self.preview
        if self.markup is not None:
            found["reply_markup"] = self.markup
        return found

    def shown(self) -> Shown:
        return Shown(
            message_id=self.id,
            sender=self.sender,
            text=self.body.text,
            versions=tuple(self.versions),
            deleted=self.deleted,
            thread=self.thread,
            reply_to=self.reply_to,
            buttons=tuple(
                tuple("".join(written(button["text"])) for button in row) for row in self.buttons
            ),
            files=tuple(file_ids(self.media)),
            reactions=dict(self.reactions),
            entities=self.body.entities,
            blocks=tuple((self.rich or {}).get("blocks", ())),
        )


def file_ids(media: Mapping[str, Any]) -> list[str]:
    """Return the ids of a message's files: of a photo, its largest size."""
    found = [media["photo"][-1]["file_id"]] if "photo" in media else []
    kinds = ("document", "voice", "audio", "video", "animation", "video_note", "sticker")
    return found + [media[kind]["file_id"] for kind in kinds if kind in media]
