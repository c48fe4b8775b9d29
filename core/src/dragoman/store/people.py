"""Queries about accounts of people: what each may, and whose it is."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from dragoman.roles import Role
from dragoman.store.operations import Identity
from dragoman.store.shelved import Shelved


@attrs.frozen
class People(Shelved):
    """A part of `dragoman.store.reads.Reads`."""

    async def identities(self) -> Sequence[Identity]:
        """Return all accounts that are known, by their names."""
        sql = "SELECT identity, person, role, label FROM identities ORDER BY identity"
        rows = await self._query(sql, ())
        return [Identity(row[0], row[1], Role(row[2]) if row[2] else None, row[3]) for row in rows]
