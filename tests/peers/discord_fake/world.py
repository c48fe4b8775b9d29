"""All that the server knows, under one lock."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

import attrs

from peers.clock import Clock
from peers.discord_fake.errors import Json, refusal, unknown
from peers.discord_fake.events import FLAGS, wanted, without_content
from peers.discord_fake.files import Shelf
from peers.discord_fake.journal import Call, Frame
from peers.discord_fake.messages import Message
from peers.discord_fake.places import DM, PRIVATE, Channel, Guild, User
from peers.discord_fake.sessions import Budget, Session
from peers.discord_fake.snowflakes import Snowflakes, snowflake
from peers.discord_fake.wire import message_json

_PRIVATE_MESSAGES: Final = frozenset({"MESSAGE_CREATE", "MESSAGE_UPDATE"})


@attrs.frozen
class Typing:
    """Somebody was shown to be writing, for ten seconds."""

    at: float
    channel: int
    user: int


@attrs.define(eq=False)
class World:
    """The state; every access holds ``changed``, and every change is notified there."""

    bot: User
    token: str
    clock: Clock
    ids: Snowflakes
    shelf: Shelf
    budget: Budget
    privileged: frozenset[str]
    owner: int
    verify_key: str
    nonce_window: float = 300.0
    strict: bool = True
    gateway_url: str = ""
    resume_url: str = ""
    endpoint: str = ""
    """Where interactions are posted to, instead of being sent over the gateway."""
    changed: threading.Condition = attrs.field(
        factory=lambda: threading.Condition(threading.RLock())
    )
    users: dict[int, User] = attrs.field(factory=dict)
    guilds: dict[int, Guild] = attrs.field(factory=dict)
    channels: dict[int, Channel] = attrs.field(factory=dict)
    messages: dict[int, Message] = attrs.field(factory=dict)
    interactions: dict[int, Any] = attrs.field(factory=dict)
    commands: dict[int | None, list[Json]] = attrs.field(factory=dict)
    """Commands by guild; ``None`` has those for everywhere."""
    nonces: dict[str, tuple[float, Message]] = attrs.field(factory=dict)
    sessions: dict[str, Session] = attrs.field(factory=dict)
    calls: list[Call] = attrs.field(factory=list)
    frames: list[Frame] = attrs.field(factory=list)
    typings: list[Typing] = attrs.field(factory=list)
    on_event: Callable[[], None] = lambda: None
    on_interaction: Callable[[Any], None] = lambda _: None
    """Told of an interaction that is to be posted to the endpoint."""
    _history: dict[int, list[Message]] = attrs.field(factory=dict)

    @property
    def flags(self) -> int:
        """The application's flags."""
        found = 0
        for name in self.privileged:
            found |= FLAGS[name]
        return found

    # What is there, and what the bot may see of it.

    def visible(self, channel: Channel) -> bool:
        """P2: return whether the bot sees a channel."""
        guild = channel.guild
        if guild is not None and not (guild.here and guild.available):
            return False
        if channel.type == PRIVATE and self.bot.id not in channel.members:
            return channel.may("VIEW_CHANNEL", "MANAGE_THREADS")
        return channel.may("VIEW_CHANNEL")

    def channel(self, value: str) -> Channel:
        """E1: return a channel that the bot may see."""
        found = self.channels.get(snowflake(value, "channel_id"))
        if found is None or found.gone:
            raise unknown("Channel")
        if not self.visible(found):
            raise refusal(50001)
        return found

    def guild(self, value: str) -> Guild:
        """E1: return a guild; one without the bot says no more than that."""
        found = self.guilds.get(snowflake(value, "guild_id"))
        if found is None:
            raise unknown("Guild")
        if not found.here:
            raise refusal(50001)
        return found

    def message(self, channel: Channel, value: str) -> Message:
        """E1: return a message that is there for everybody."""
        found = self.messages.get(snowflake(value, "message_id"))
        if found is None or found.deleted or found.channel is not channel or found.seen_by:
            raise unknown("Message")
        return found

    def require(self, channel: Channel, *names: str) -> None:
        """P1: refuse unless the bot has these permissions."""
        if not channel.may(*names):
            raise refusal(50013)

    def dm(self, user: User) -> Channel:
        """Return the direct conversation with somebody."""
        for channel in self.channels.values():
            if channel.recipient is user:
                return channel
        made = Channel(self.ids.next(), DM, recipient=user)
        self.channels[made.id] = made
        return made

    def history(self, channel: Channel) -> list[Message]:
        """Return what has been said in a channel, oldest first, deleted messages too."""
        return self._history.get(channel.id, [])

    def keep(self, message: Message) -> None:
        """Put a message into its channel; nobody is told."""
        self.messages[message.id] = message
        self._history.setdefault(message.channel.id, []).append(message)

    # Changes, and who hears of them.

    def push(
        self, event: str, data: Any, *, channel: Channel | None = None, guild: Guild | None = None
    ) -> None:
        """Send an event to every session that it is for."""
        with self.changed:
            guild = channel.guild if channel is not None else guild
            if channel is None or self.visible(channel):
                for session in self.sessions.values():
                    self._offer(session, event, data, guild)
            self.changed.notify_all()
        self.on_event()

    def _offer(self, session: Session, event: str, data: Any, guild: Guild | None) -> None:
        if not session.concerns(guild.id if guild is not None else None):
            return
        if not wanted(event, session.intents, in_guild=guild is not None):
            return
        if event in _PRIVATE_MESSAGES and guild is not None and not session.intents & 1 << 15:
            data = without_content(data, self.bot.id)
        session.push(event, data)

    def add(self, message: Message) -> Message:
        """Put a message into its channel and tell of it."""
        channel = message.channel
        message.show(self.clock.time())
        self.keep(message)
        if message.seen_by is None:
            channel.last_message = message.id
            channel.count += channel.is_thread
            channel.total += channel.is_thread
        self.tell("MESSAGE_CREATE", message, nonce=True)
        self.changed.notify_all()
        return message

    def tell(self, event: str, message: Message, *, nonce: bool = False) -> None:
        """Send a message's event; W10: one that a single person sees looks like a direct one."""
        data = self.wire(message, nonce=nonce)
        channel, guild = message.channel, message.channel.guild
        data["channel_type"] = channel.type
        if message.seen_by is not None:
            self.push(event, data)
            return
        if guild is not None:
            data["guild_id"] = str(guild.id)
            data["mentions"] = [
                user.json | {"member": guild.member(user)} for user in message.named
            ]
            if message.interaction is None:
                data["member"] = guild.member(message.author)
        self.push(event, data, channel=channel)

    def wire(self, message: Message, *, nonce: bool = False) -> Json:
        """Return a message as the bot gets it."""
        replies = message.reply_to
        original = self.messages.get(replies) if replies is not None else None
        return message_json(message, self.shelf, self.bot.id, original, nonce=nonce)

    def answered(self, message: Message, *, nonce: bool = False) -> Json:
        """W7: return a message as an answer to a call, where the application's flags decide."""
        data = self.wire(message, nonce=nonce)
        if message.channel.guild is None or "message_content" in self.privileged:
            return data
        return without_content(data, self.bot.id)

    def delete(self, message: Message) -> None:
        """Take a message away and tell of it."""
        message.deleted = True
        message.channel.count = max(0, message.channel.count - 1)
        data: Json = {"id": str(message.id), "channel_id": str(message.channel.id)}
        if message.seen_by is not None:
            self.push("MESSAGE_DELETE", data)
        else:
            if message.channel.guild is not None:
                data["guild_id"] = str(message.channel.guild.id)
            self.push("MESSAGE_DELETE", data, channel=message.channel)
        self.changed.notify_all()

    def person(self, value: str) -> User:
        """E1: return a user."""
        found = self.users.get(snowflake(value, "user_id"))
        if found is None:
            raise unknown("User")
        return found

    def guild_create(self, guild: Guild, *, members: bool) -> Json:
        """W4: return all of a guild; its members only for those who follow presences."""
        channels = [one for one in self.channels.values() if one.guild is guild and not one.gone]
        shown = guild.members.values() if members else [self.bot]
        threads = [one for one in channels if one.is_thread and not one.archived]
        return guild.json | {
            "joined_at": guild.member(self.bot)["joined_at"],
            "large": False,
            "unavailable": False,
            "member_count": len(guild.members),
            "voice_states": [],
            "members": [guild.member(user) | {"user": user.json} for user in shown],
            "channels": [one.json(self.bot.id) for one in channels if not one.is_thread],
            "threads": [one.json(self.bot.id) for one in threads if self.visible(one)],
            "presences": [],
            "stage_instances": [],
            "guild_scheduled_events": [],
            "soundboard_sounds": [],
        }
