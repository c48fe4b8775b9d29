"""Who is known by account: what pairing let each do, and which accounts are one person's.

It is small, and asked for every message, so it is kept in memory; another process that changes it
rings.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from dragoman.keys import ConversationKey, ScopeRule, conversation_key
from dragoman.messages import Inbound, Sender
from dragoman.roles import Role
from dragoman.store.operations import Identity
from dragoman.store.protocol import Store


def identity_of(kind: str, sender: Sender) -> str:
    """Return how the manifest writes a person of a platform of this kind."""
    return joined(kind, sender.workspace, sender.id)


def joined(*parts: str) -> str:
    """Return how the manifest writes what has these parts; those that are empty are left out."""
    return ":".join(part for part in parts if part)


@attrs.define(eq=False)
class People:
    """The accounts that are known, named as in the manifest, ``kind:id``."""

    _store: Store
    _kinds: Mapping[str, str]
    """The kind of each platform instance."""
    _known: Mapping[str, Identity] = attrs.field(factory=dict, init=False)

    async def load(self) -> None:
        """Take over what the store has by now."""
        known = await self._store.read.identities()
        self._known = {one.identity: one for one in known}

    def role(self, identity: str) -> Role | None:
        """Return what pairing gave an account, or ``None``."""
        known = self._known.get(identity)
        return known.role if known else None

    def identity(self, event: Inbound) -> str:
        """Return the account that an event is of; nobody's where the manifest has its platform no more."""
        return identity_of(self._kinds.get(event.address.platform, "?"), event.sender)

    def person(self, event: Inbound) -> str:
        """Return whose account that is: linked ones are one person's, all others their own."""
        identity = self.identity(event)
        known = self._known.get(identity)
        return known.person if known else identity

    def conversation(self, event: Inbound, scopes: ScopeRule) -> ConversationKey:
        """Return the key of the conversation that an event is part of."""
        person = self.person(event) if event.sender.id else ""
        return conversation_key(event.address, event.sender, scopes, person)
