"""All that the server knows, under one lock."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from typing import Any, Literal

import attrs

from peers.clock import Clock
from peers.telegram_fake.chats import Bot, Chat
from peers.telegram_fake.errors import Json, bad
from peers.telegram_fake.files import FileStore
from peers.telegram_fake.hook import Delivery, Hook
from peers.telegram_fake.journal import Call
from peers.telegram_fake.limits import Floodgate
from peers.telegram_fake.messages import Message, Version
from peers.telegram_fake.updates import UpdateQueue

Rich = Literal["known", "unknown", "refused", "markup"]


@attrs.frozen
class Notice:
    """A chat action, such as "typing"."""

    at: float
    chat_id: int
    action: str
    thread: int | None = None


@attrs.frozen
class Draft:
    """A preview of a message that is still being written."""

    at: float
    chat_id: int
    draft_id: int
    text: str
    """What it says; of a rich one, in plain words. Empty: the bot thinks."""
    thread: int | None = None
    can_stop: bool = False
    keep_on_stop: bool = False
    rich: Json | None = None


@attrs.define(eq=False)
class Press:
    """A button that somebody pressed, and what the bot answered."""

    id: str
    at: float
    answer: Json | None = None


@attrs.define(eq=False)
class World:
    """The state; every access holds ``changed``, and every change is notified there."""

    bot: Bot
    clock: Clock
    updates: UpdateQueue
    gate: Floodgate
    changed: threading.Condition = attrs.field(
        factory=lambda: threading.Condition(threading.RLock())
    )
    chats: dict[int, Chat] = attrs.field(factory=dict)
    messages: dict[tuple[int, int], Message] = attrs.field(factory=dict)
    files: FileStore = attrs.field(factory=FileStore)
    calls: list[Call] = attrs.field(factory=list)
    notices: list[Notice] = attrs.field(factory=list)
    drafts: list[Draft] = attrs.field(factory=list)
    previews: dict[tuple[int, int | None], Draft] = attrs.field(factory=dict)
    """The drafts that are shown, by chat and topic; R22 says for how long."""
    stopped: set[tuple[int, int]] = attrs.field(factory=set)
    """The drafts that people have stopped, by chat and number."""
    strict: bool = True
    rich: Rich = "known"
    """R27b: whether rich messages are part of this server; one may be too old, want none, or know
    them by their markup only."""
    presses: dict[str, Press] = attrs.field(factory=dict)
    commands: dict[tuple[str, str], list[Json]] = attrs.field(factory=dict)
    menu_buttons: dict[int | None, Json] = attrs.field(factory=dict)
    names: dict[str, str] = attrs.field(factory=dict)
    """The bot's names by language."""
    inline: dict[str, Message] = attrs.field(factory=dict)
    """Messages that people sent by way of the bot: it knows their ids only."""
    hook: Hook | None = None
    loopback_webhooks: bool = False
    """Whether a webhook may be on this machine, and without TLS."""
    deliveries: list[Delivery] = attrs.field(factory=list)
    numbers: Iterator[int] = attrs.field(factory=lambda: itertools.count(1))
    on_update: Callable[[], None] = lambda: None
    _last: dict[int, int] = attrs.field(factory=dict)
    _history: dict[int, list[Message]] = attrs.field(factory=dict)

    def push(self, kind: str, body: Any) -> int | None:
        """Queue an update and wake the poll that waits for one."""
        with self.changed:
            number = self.updates.push({kind: body})
            self.changed.notify_all()
        self.on_update()
        return number

    def chat(self, chat_id: Any) -> Chat:
        """R11: return a chat that the bot knows, named by number or by ``@username``."""
        if chat_id is None or chat_id == "":
            raise bad("chat_id is empty")
        if isinstance(chat_id, str):
            named = (c for c in self.chats.values() if c.username and f"@{c.username}" == chat_id)
            found = next(named, None)
        else:
            found = self.chats.get(chat_id)
        if found is None:
            raise bad("chat not found")
        return found

    def meet(self, number: int, *, topics: bool = False) -> Chat:
        """Return a chat, made up from its id where it is new."""
        found = self.chats.get(number)
        if found is None:
            found = self.chats[number] = Chat.guess(number, topics=topics)
        return found

    def find(self, chat: Chat, message_id: Any) -> Message | None:
        """Return a message that still exists for the bot."""
        found = self.messages.get((chat.id, message_id))
        return found if found is not None and found.alive else None

    def next_id(self, chat: Chat) -> int:
        """R12: private chats and groups share one numbering, others have their own.

        There the first message is the one that made the chat; a forum's general topic has its id.
        """
        scope = chat.id if chat.own_ids else 0
        self._last[scope] = self._last.get(scope, int(chat.own_ids)) + 1
        return self._last[scope]

    def next_album(self) -> int:
        """Return a number that no album has had."""
        return 13_000_000_000_000_000 + next(self.numbers)

    def add(self, chat: Chat, sender: int, author: Json, **more: Any) -> Message:
        """Put a message into a chat."""
        now = self.clock.time()
        message = Message(self.next_id(chat), chat, sender, author, now, **more)
        message.versions.append(Version(now, message.body.text))
        self.messages[chat.id, message.id] = message
        self._history.setdefault(chat.id, []).append(message)
        self.changed.notify_all()
        return message

    def history(self, chat_id: int) -> list[Message]:
        """Return a chat's messages in order."""
        return self._history.get(chat_id, [])

    def wire(self, message: Message) -> Json:
        """Return a message as JSON, with the one that it replies to.

        R18: in a topic, what replies to nothing refers to the message that opened the topic.
        """
        target = message.reply_to if message.reply_to is not None else message.thread
        original = self.messages.get((message.chat.id, target)) if target is not None else None
        found = message.json(None if original is message else original)
        root = self._root(message)
        return found if root is None else found | {"message_thread_id": root}

    def _root(self, message: Message) -> int | None:
        """R29: in a supergroup without topics, replies name the message that they began with."""
        if message.chat.kind != "supergroup" or message.reply_to is None:
            return None
        root = message.reply_to
        while (found := self.messages.get((message.chat.id, root))) and found.reply_to is not None:
            root = found.reply_to
        return root
