"""All that the server knows, under one lock."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import attrs

from peers.slack_fake.clock import Clock
from peers.slack_fake.errors import Json, SlackError
from peers.slack_fake.files import FileStore
from peers.slack_fake.journal import Call, Delivery, Kind
from peers.slack_fake.limits import Floodgate
from peers.slack_fake.messages import Message, Version
from peers.slack_fake.workspace import PREFIXES, App, Channel, ChannelKind, Settings, Team, User


@attrs.frozen
class Status:
    """What an assistant's thread says that it is doing."""

    at: float
    channel: str
    thread: str
    status: str
    loading: tuple[str, ...] = ()


@attrs.define(eq=False)
class Hook:
    """R19: a URL that an interaction may be answered at."""

    path: str
    channel: str
    user: str
    ends: float
    thread: str | None = None
    message: str | None = None
    left: int = 5


@attrs.define(eq=False)
class Trigger:
    """R20: what lets a dialog be opened, once and soon."""

    user: str
    ends: float
    used: bool = False


@attrs.define(eq=False)
class World:
    """The state; every access holds ``changed``, and every change is notified there."""

    team: Team
    app: App
    clock: Clock
    gate: Floodgate
    settings: Settings = attrs.field(factory=Settings)
    changed: threading.Condition = attrs.field(
        factory=lambda: threading.Condition(threading.RLock())
    )
    root_url: str = ""
    """Where this server listens."""
    revoked: bool = False
    users: dict[str, User] = attrs.field(factory=dict)
    channels: dict[str, Channel] = attrs.field(factory=dict)
    messages: dict[str, dict[str, Message]] = attrs.field(factory=dict)
    """By channel and ``ts``, in order."""
    ephemerals: list[Message] = attrs.field(factory=list)
    files: FileStore = attrs.field(factory=FileStore)
    calls: list[Call] = attrs.field(factory=list)
    deliveries: list[Delivery] = attrs.field(factory=list)
    posted: dict[str, tuple[float, Message]] = attrs.field(factory=dict)
    """R11: by ``client_msg_id``."""
    statuses: list[Status] = attrs.field(factory=list)
    prompts: dict[tuple[str, str], Json] = attrs.field(factory=dict)
    titles: dict[tuple[str, str], str] = attrs.field(factory=dict)
    views: dict[str, Json] = attrs.field(factory=dict)
    tickets: set[str] = attrs.field(factory=set)
    """What a connection that may be opened has to show, once."""
    hooks: dict[str, Hook] = attrs.field(factory=dict)
    triggers: dict[str, Trigger] = attrs.field(factory=dict)
    numbers: Iterator[int] = attrs.field(factory=lambda: itertools.count(1))
    on_delivery: Callable[[Delivery], None] = lambda delivery: None
    on_stream: Callable[[Message], None] = lambda message: None
    _last_ts: int = 0

    def next_ts(self) -> str:
        """R5: return a moment that no message has had, later than all before it."""
        micro = max(int(self.clock.time() * 1_000_000), self._last_ts + 1)
        self._last_ts = micro
        return f"{micro // 1_000_000}.{micro % 1_000_000:06d}"

    def next_id(self, prefix: str) -> str:
        return f"{prefix}0{next(self.numbers):08d}"

    def user(self, user_id: str) -> User:
        """Return somebody, made up from the id where they are new."""
        if user_id not in self.users:
            self.users[user_id] = User(user_id, user_id.lower(), user_id.title(), self.team.id)
        return self.users[user_id]

    def channel(self, channel_id: Any) -> Channel:
        """R10: return a channel that the app may know of; a ``#name`` is one too."""
        found = self.channels.get(str(channel_id or ""))
        if found is None and str(channel_id).startswith("#"):
            name = str(channel_id)[1:]
            found = next((one for one in self.channels.values() if one.name == name), None)
        if found is None:
            raise SlackError("channel_not_found")
        if found.kind != "channel" and self.app.user_id not in found.members:
            raise SlackError("channel_not_found")
        return found

    def open(self, kind: ChannelKind, members: list[str], name: str = "", **more: Any) -> Channel:
        """Make a channel with an id of its own."""
        found = Channel(self.next_id(PREFIXES[kind]), name, kind, members, **more)
        self.channels[found.id] = found
        return found

    def direct(self, user_id: str) -> Channel:
        """Return the direct messages of the app and somebody."""
        self.user(user_id)
        for one in self.channels.values():
            if one.direct and user_id in one.members:
                return one
        return self.open("im", [self.app.user_id, user_id])

    def find(self, channel: Channel, ts: Any) -> Message | None:
        """Return a message that still exists."""
        found = self.messages.get(channel.id, {}).get(str(ts))
        return None if found is None or found.deleted else found

    def replies(self, root: Message) -> list[Message]:
        """Return what was answered in a thread and is still there."""
        found = self.messages[root.channel.id].values()
        return [one for one in found if one.thread == root.ts and not one.deleted]

    def add(self, message: Message) -> Message:
        """Put a message into its channel."""
        message.versions.append(Version(self.clock.time(), message.source))
        self.messages.setdefault(message.channel.id, {})[message.ts] = message
        self.changed.notify_all()
        return message

    def wire(self, message: Message, *, metadata: bool = False) -> Json:
        """Return a message as JSON, with its files and what the thread says of it."""
        found = message.json()
        if message.files and not message.tombstone:
            found["files"] = [self.files.json(one, self) for one in message.files]
        if metadata and message.metadata is not None:
            found["metadata"] = message.metadata
        if message.thread is not None:
            found["thread_ts"] = message.thread
            if message.broadcast:
                found["subtype"] = "thread_broadcast"
            root = self.messages[message.channel.id].get(message.thread)
            if root is not None:
                found["parent_user_id"] = root.user
        return found | self._thread_of(message)

    def _thread_of(self, root: Message) -> Json:
        if root.thread is not None or not (answers := self.replies(root)):
            return {}
        people = list(dict.fromkeys(one.user for one in answers))
        return {
            "thread_ts": root.ts,
            "reply_count": len(answers),
            "reply_users_count": len(people),
            "reply_users": people,
            "latest_reply": answers[-1].ts,
            "is_locked": False,
        }

    def deliver(self, kind: Kind, payload: Json, *, retries: bool = True) -> Delivery:
        """Hand a payload to the app, in the server's own time."""
        delivery = Delivery(kind, payload, retries)
        self.deliveries.append(delivery)
        self.changed.notify_all()
        self.on_delivery(delivery)
        return delivery

    def trigger(self, user: str) -> str:
        """R20: return a new ``trigger_id``."""
        found = f"{next(self.numbers)}.{self.team.id}.trigger"
        self.triggers[found] = Trigger(user, self.clock.time() + 3.0)
        return found

    def hook(self, channel: str, user: str, **more: Any) -> str:
        """R19: return a new ``response_url``."""
        path = f"/respond/{self.team.id}/{next(self.numbers)}"
        self.hooks[path] = Hook(path, channel, user, self.clock.time() + 1800.0, **more)
        return self.root_url + path
