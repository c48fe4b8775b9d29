"""Connections to the Bot API that several calls share.

A pool can be full of connections that lead nowhere: then no call gets through, and none ever
will. Such a pool is retired for a new one; what is still under way in it comes to its end there.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import anyio
import attrs

if TYPE_CHECKING:
    import httpx2

FULL: Final = 8
"""Calls in a row that got no connection in time, after which a pool is retired."""


@attrs.define(eq=False)
class _Generation:
    client: httpx2.AsyncClient
    users: int = 0
    turned_away: int = 0


@attrs.define(eq=False)
class Pool:
    """A pool that is renewed when it lets nobody in; made by `open_pool`."""

    _make: Callable[[], httpx2.AsyncClient]
    _current: _Generation
    _retired: list[_Generation] = attrs.field(factory=list)

    async def post(self, url: str, **request: Any) -> httpx2.Response:
        """Send one request and read its answer; raises what the client raises."""
        async with self._lend() as client:
            return await client.post(url, **request)

    @asynccontextmanager
    async def get(self, url: str, **request: Any) -> AsyncIterator[httpx2.Response]:
        """Send one request and open its answer, which is read inside; raises what the client does."""
        async with self._lend() as client, client.stream("GET", url, **request) as response:
            yield response

    @asynccontextmanager
    async def _lend(self) -> AsyncIterator[httpx2.AsyncClient]:
        import httpx2

        mine = self._current
        mine.users += 1
        try:
            yield mine.client
        except httpx2.PoolTimeout:
            mine.turned_away += 1
            if mine.turned_away >= FULL and mine is self._current:
                self._retired.append(mine)
                self._current = _Generation(self._make())
            raise
        else:
            mine.turned_away = 0
        finally:
            mine.users -= 1
            if not mine.users and mine in self._retired:
                self._retired.remove(mine)
                await _close(mine)

    async def close(self) -> None:
        """Close every connection; no call may be under way any more."""
        for generation in (self._current, *self._retired):
            await _close(generation)


@asynccontextmanager
async def open_pool(make: Callable[[], httpx2.AsyncClient]) -> AsyncIterator[Pool]:
    """Open a pool of the clients that ``make`` makes; leaving closes its connections."""
    pool = Pool(make, _Generation(make()))
    try:
        yield pool
    finally:
        await pool.close()


async def _close(generation: _Generation) -> None:
    with anyio.CancelScope(shield=True):  # closing sockets takes no time, and leaves none open
        await generation.client.aclose()
