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

    PERSON = "person"
    """One person, over all accounts that are linked; in direct messages only."""


def _not_person(_: object, field: attrs.Attribute[Scope], value: Scope) -> None:
    if value is Scope.PERSON:
        msg = f"'{field.name}' must not be person: what is said to one alone stays out of groups"
        raise ValueError(msg)


@attrs.frozen
class ScopeRule:
    """Which scope holds in direct messages and which in groups."""

    dm: Scope = attrs.field(
        default=Scope.THREAD,
        metadata={"help": "what shares a session in direct messages"},
    )
    group: Scope = attrs.field(
        default=Scope.THREAD,
        validator=_not_person,
        metadata={"help": "what shares a session in groups and channels: all but person"},
    )


@attrs.frozen
class ConversationKey:
    """Where people talk, as far as an agent session is concerned.

    ``platform`` is the instance id of the manifest, not the kind: one person's direct chat with
    two bots has the same channel id on both. What a person shares over all places has ``user``
    alone.
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


def conversation_key(
    address: Address, sender: Sender, scopes: ScopeRule, person: str
) -> ConversationKey:
    """Return the key of the conversation that this sender's message at this address is part of.

    ``person`` is whose account the sender is; empty where nobody is known to have sent it.
    """
    scope = scopes.dm if address.place is Place.DM else scopes.group
    if scope is Scope.PERSON and person:
        return ConversationKey("", "", "", "", person)
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
