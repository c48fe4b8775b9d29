"""One open transaction, as the statements see it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import aiosqlite
import attrs

from dragoman.errors import StaleLease, StoreError
from dragoman.store.codec import bound, dump_rows
from dragoman.store.operations import TurnLease

Row: TypeAlias = Sequence[Any]

Answer: TypeAlias = Any
"""An operation's result, or the `dragoman.StoreError` that refuses this operation alone."""


@attrs.frozen
class Transaction:
    """Runs one set-based statement per call: each is one trip to the database's thread."""

    _db: aiosqlite.Connection

    async def rows(self, sql: str, *parameters: Any) -> list[Row]:
        """Run a statement and return all its rows."""
        return list(await self._db.execute_fetchall(sql, bound(sql, parameters)))

    async def set(self, sql: str, rows: Iterable[Sequence[Any]]) -> list[Row]:
        """Run a statement over ``rows``, given to it as one JSON array named by ``?``.

        Statements read column ``n`` of a row as ``value ->> n`` from ``json_each(?)``.
        """
        return await self.rows(sql, dump_rows(rows))

    async def stale(
        self, leases: Iterable[TurnLease], *, using_up: bool = False
    ) -> dict[TurnLease, StoreError]:
        """Return the refusals of those leases that do not hold their session any more.

        ``using_up`` says that the others do what cannot be repeated: what a pause had saved of
        their turns leads nowhere from then on, and is dropped.
        """
        wanted = list(leases)
        rows = await self.set(
            """
            SELECT runs.id, runs.fence, runs.saved IS NOT NULL
            FROM json_each(?) AS j JOIN agent_runs AS runs
            ON runs.id = value ->> 0 AND runs.fence = value ->> 1 AND runs.state = 'running'
            """,
            [(lease.turn_id, lease.fence) for lease in wanted],
        )
        held = {(row[0], row[1]) for row in rows}
        used = {(row[0],) for row in rows if row[2]} if using_up else ()
        if used:
            await self.set(
                """
                UPDATE agent_runs SET saved = NULL
                WHERE id IN (SELECT value ->> 0 FROM json_each(?))
                """,
                used,
            )
        return {
            lease: StaleLease(lease.turn_id, lease.fence)
            for lease in wanted
            if (lease.turn_id, lease.fence) not in held
        }
