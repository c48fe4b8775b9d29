"""Who is known by account: what pairing let each do, and which accounts are one person's.

It is small, and asked for every message, so it is kept in memory; another process that changes it
rings.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from dragoman.roles import Role
from dragoman.store.protocol import Store


@attrs.define(eq=False)
class People:
    """The accounts that are known, named as in the manifest, ``kind:id``."""

    _store: Store
    _roles: Mapping[str, Role] = attrs.field(factory=dict, init=False)

    async def load(self) -> None:
        """Take over what the store has by now."""
        known = await self._store.read.identities()
        self._roles = {one.identity: one.role for one in known if one.role}

    def role(self, identity: str) -> Role | None:
        """Return what pairing gave an account, or ``None``."""
        return self._roles.get(identity)
