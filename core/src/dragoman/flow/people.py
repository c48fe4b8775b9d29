"""Who is known by account: what pairing let each do, and which accounts are one person's.

It is small, and asked for every message, so it is kept in memory; another process that changes it
rings.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from dragoman.roles import Role
from dragoman.store.operations import Identity
from dragoman.store.protocol import Store


@attrs.define(eq=False)
class People:
    """The accounts that are known, named as in the manifest, ``kind:id``."""

    _store: Store
    _known: Mapping[str, Identity] = attrs.field(factory=dict, init=False)

    async def load(self) -> None:
        """Take over what the store has by now."""
        known = await self._store.read.identities()
        self._known = {one.identity: one for one in known}

    def role(self, identity: str) -> Role | None:
        """Return what pairing gave an account, or ``None``."""
        known = self._known.get(identity)
        return known.role if known else None

    def person(self, identity: str) -> str:
        """Return whose an account is: linked ones are one person's, all others their own."""
        known = self._known.get(identity)
        return known.person if known else identity
