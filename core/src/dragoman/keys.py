"""Conversation keys: the only place where one is made.

A key says which conversation an event belongs to. It is typed and injective: two different places
never share a key, and one place under one scope always has the same key. Empty strings stand for
"none", so that a database's uniqueness holds where there is no thread.
"""

from __future__ import annotations

import enum
import secrets

import attrs

from dragoman.messages import Address, Place, Sender


class Scope(enum.Enum):
    """What shares one session inside a chat."""

    CHANNEL = "channel"
    """Everybody in the channel, all threads together."""

    THREAD = "thread"
    """Everybody in one thread; outside threads, the channel."""

    USER = "user"
    """One person in one thread."""


@attrs.frozen
class ScopeRule:
    """Which scope holds in direct messages and which in groups."""

    dm: Scope = attrs.field(
        default=Scope.THREAD,
        metadata={"help": "what shares a session in direct messages"},
    )
    group: Scope = attrs.field(
        default=Scope.THREAD,
        metadata={"help": "what shares a session in groups and channels"},
    )


@attrs.frozen
class ConversationKey:
    """Where people talk, as far as an agent session is concerned.

    ``platform`` is the instance id of the manifest, not the kind: one person's direct chat with
    two bots has the same channel id on both.
    """

    platform: str
    workspace: str
    channel: str
    thread: str
    user: str

    def __str__(self) -> str:
        """For logs and people; never parsed."""
        parts = (self.platform, self.workspace, self.channel, self.thread, self.user)
        return ":".join(part or "-" for part in parts)


def conversation_key(address: Address, sender: Sender, scopes: ScopeRule) -> ConversationKey:
    """Return the key of the conversation that this sender's message at this address is part of."""
    scope = scopes.dm if address.place is Place.DM else scopes.group
    return ConversationKey(
        platform=address.platform,
        workspace=address.workspace,
        channel=address.channel,
        thread="" if scope is Scope.CHANNEL else address.thread,
        user=sender.id if scope is Scope.USER else "",
    )


def new_id(prefix: str) -> str:
    """Return a new opaque id: ``prefix``, an underscore and 96 random bits in hexadecimal."""
    return f"{prefix}_{secrets.token_hex(12)}"
