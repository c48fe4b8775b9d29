"""A chat service in memory, and the people who use it: what a reference adapter speaks to."""

from __future__ import annotations

import html
import re
from typing import Any

import anyio
import anyio.lowlevel
import attrs

TOKEN = "reference-token"
ACCOUNT = "bot"
PERSON = "ada"


class ServiceError(Exception):
    """What the service's client raises; ``code`` is the service's own word."""

    def __init__(self, code: str, *, applied: bool = False, wait: float = 0.0) -> None:
        super().__init__(f"{code} ({TOKEN})")
        self.code = code
        self.applied = applied
        self.wait = wait


@attrs.define(eq=False)
class Message:
    """A message; ``room`` is its channel, or channel and thread."""

    id: str
    room: str
    author: str
    text: str
    buttons: list[tuple[str, str]] = attrs.field(factory=list)
    file: tuple[str, bytes] | None = None
    key: str = ""
    there: bool = True
    reactions: set[str] = attrs.field(factory=set)


@attrs.define(eq=False)
class Service:
    """One account's view of a service: calls of its client, and an outbox of events.

    Texts are HTML unless ``plain``; the limit is in UTF-16 units of what is shown. Events stay
    until they are confirmed.
    """

    longest: int = 200
    messages: dict[str, Message] = attrs.field(factory=dict)
    events: list[dict[str, Any]] = attrs.field(factory=list)
    confirmed: int = 0
    connections: int = 0
    typings: list[str] = attrs.field(factory=list)
    whispers: dict[str, list[str]] = attrs.field(factory=dict)
    """What one person was told in a room, and nobody else."""
    fault: ServiceError | None = None
    down: bool = False
    generation: int = 0
    _changed: anyio.Event = attrs.field(factory=anyio.Event)

    # The account's client.

    async def listen(self, after: int) -> list[dict[str, Any]]:
        """Return the events behind a place, once there are any."""
        await self._reach()
        generation = self.generation
        self.connections += 1
        self._tell()
        try:
            while len(self.events) <= after and generation == self.generation:
                await self._changed.wait()
            if generation != self.generation:
                raise ServiceError("connection lost")
            return self.events[after:]
        finally:
            self.connections -= 1

    async def confirm(self, place: int) -> None:
        await anyio.lowlevel.checkpoint()
        self.confirmed = max(self.confirmed, place)

    async def post(
        self,
        room: str,
        text: str,
        *,
        plain: bool = False,
        buttons: list[tuple[str, str]] | None = None,
        file: tuple[str, bytes] | None = None,
        key: str = "",
        reply: str = "",
    ) -> Message:
        await self._reach()
        fault, self.fault = self.fault, None
        if fault is not None and not fault.applied:
            raise fault
        if reply and not self.messages[reply].there:
            raise ServiceError("no reply")
        for message in self.messages.values():
            if key and message.key == key:
                return message
        message = self.add(room, ACCOUNT, self._shown(text, plain))
        message.buttons, message.file, message.key = list(buttons or ()), file, key
        if fault is not None:
            raise fault
        return message

    async def change(
        self, room: str, id_: str, text: str, *, plain: bool, buttons: list[tuple[str, str]]
    ) -> Message:
        await self._reach()
        message = self._own(room, id_)
        if message.text == self._shown(text, plain) and message.buttons == buttons:
            raise ServiceError("unchanged")
        message.text, message.buttons = self._shown(text, plain), buttons
        return message

    async def take_back(self, room: str, id_: str) -> None:
        await self._reach()
        self._own(room, id_).there = False

    async def mark(self, room: str, id_: str, emoji: str, *, on: bool) -> None:
        await self._reach()
        message = self._own(room, id_)
        if (emoji in message.reactions) is on:
            raise ServiceError("unchanged")
        (message.reactions.add if on else message.reactions.discard)(emoji)

    async def whisper(self, room: str, text: str) -> None:
        await self._reach()
        self.whispers.setdefault(room, []).append(text)

    async def type(self, room: str) -> None:
        await self._reach()
        self.typings.append(room)

    async def download(self, id_: str) -> bytes:
        await self._reach()
        file = self.messages[id_].file
        if file is None:
            raise ServiceError("no message")
        return file[1]

    async def find(self, room: str, key: str) -> Message | None:
        await self._reach()
        found = (one for one in self.messages.values() if (one.room, one.key) == (room, key))
        return next(found, None)

    # The people.

    def add(self, room: str, author: str, text: str, **more: Any) -> Message:
        """Say something; the account is told of it, also of what it says itself."""
        message = Message(str(len(self.messages) + 1), room, author, text)
        message.file = more.get("file")
        self.messages[message.id] = message
        self.tell("said", message, **more)
        return message

    def tell(self, kind: str, message: Message, **more: Any) -> None:
        """Put an event into the outbox."""
        event = {"kind": kind, "id": message.id, "room": message.room, "text": message.text}
        self.events.append(event | {"author": message.author, "number": len(self.events)} | more)
        self._tell()

    def drop(self) -> None:
        """Cut the connection."""
        self.generation += 1
        self._tell()

    async def heard(self) -> None:
        """Wait until the account listens."""
        while not self.connections:
            await self._changed.wait()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    def _own(self, room: str, id_: str) -> Message:
        message = self.messages.get(id_)
        if message is None or not message.there or message.room != room:
            raise ServiceError("no message")
        return message

    def _shown(self, text: str, plain: bool) -> str:
        shown = text if plain else html.unescape(re.sub("<[^>]*>", "", text))
        if len(shown.encode("utf-16-le")) // 2 > self.longest:
            raise ServiceError("too long")
        return shown

    async def _reach(self) -> None:
        await anyio.lowlevel.checkpoint()
        if self.down:
            raise ServiceError("unreachable")
