"""When the REST API may be called again, as its answers say: nothing here is guessed.

Calls of one bucket go one after the other, so that each knows what the one before was told.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final, Literal, TypeAlias

import anyio
import attrs

from dragoman import Clock, RateLimited

SHORT: Final = 1.0
"""Seconds that a call waits by itself where the wait is known beforehand; longer ones are core's."""
INVALID: Final = 5_000
"""Refused calls in ten minutes at which calls pause; at 10,000 Discord shuts the address out."""
WINDOW: Final = 600.0
PAUSE: Final = 60.0
KEPT: Final = 1024
"""How many buckets are remembered, beyond those in use."""

Scope: TypeAlias = Literal["instance", "channel", "method"]


@attrs.define(eq=False)
class _Bucket:
    lock: anyio.Lock = attrs.field(factory=anyio.Lock)
    users: int = 0
    left: int = 1
    opens: float = 0.0
    scope: Scope = "method"


@attrs.define(eq=False)
class Buckets:
    """The limits of one bot. ``route`` is a call's method and template, ``major`` its channel."""

    _clock: Clock
    _names: dict[str, str] = attrs.field(factory=dict)
    """The bucket of each route, once an answer has named it: several routes may share one."""
    _buckets: dict[tuple[str, str], _Bucket] = attrs.field(factory=dict, repr=False)
    """By name or route, and by channel or an interaction's token: that one is a secret."""
    _opens: float = 0.0
    _invalid: deque[float] = attrs.field(factory=deque)

    @asynccontextmanager
    async def turn(self, route: str, major: str, *, free: bool = False) -> AsyncIterator[None]:
        """Wait for a turn, if that is short, else raise `dragoman.RateLimited`.

        ``free`` calls (answers to interactions) do not count against the bot's own limit.
        """
        bucket = self._bucket(route, major)
        bucket.users += 1
        try:
            async with bucket.lock:
                await self._wait(bucket, free=free)
                yield
        finally:
            bucket.users -= 1

    def learn(self, route: str, major: str, headers: Mapping[str, str]) -> None:
        """Take note of what an answer says of its bucket."""
        name = headers.get("x-ratelimit-bucket", "")
        if name and self._names.get(route) != name:
            bucket = self._bucket(route, major)
            self._names[route] = name
            self._buckets.setdefault((name, major), bucket)
        left = headers.get("x-ratelimit-remaining", "")
        after = _seconds(headers.get("x-ratelimit-reset-after", ""))
        if left.isdecimal() and after is not None:
            bucket = self._bucket(route, major)
            bucket.left, bucket.opens = int(left), self._clock.boot() + after
            bucket.scope = "method"

    def refused(self, route: str, major: str, limit: RateLimited) -> None:
        """Take note of a 429 and its wait."""
        until = self._clock.boot() + limit.retry_after
        if limit.scope == "instance":
            self._opens = max(self._opens, until)
            return
        bucket = self._bucket(route, major)
        bucket.left, bucket.opens, bucket.scope = 0, until, limit.scope

    def invalid(self) -> None:
        """Count a call that Discord holds against the address: 401, 403, and most 429."""
        self._invalid.append(self._clock.boot())

    async def _wait(self, bucket: _Bucket, *, free: bool) -> None:
        now = self._clock.boot()
        while self._invalid and self._invalid[0] <= now - WINDOW:
            self._invalid.popleft()
        if len(self._invalid) >= INVALID:
            raise RateLimited(PAUSE, "instance")
        whole = 0.0 if free else self._opens - now
        own = bucket.opens - now if bucket.left <= 0 else 0.0
        wait, scope = max((whole, "instance"), (own, bucket.scope))
        if wait > SHORT:
            raise RateLimited(wait, "instance" if scope == "instance" else bucket.scope)
        if wait > 0:
            await self._clock.sleep(wait)
        if own > 0:
            bucket.left = 1

    def _bucket(self, route: str, major: str) -> _Bucket:
        key = (self._names.get(route, route), major)
        bucket = self._buckets.pop(key, None) or _Bucket()
        self._buckets[key] = bucket  # the one used last is the last
        if len(self._buckets) > KEPT:
            self._forget()
        return bucket

    def _forget(self) -> None:
        now = self._clock.boot()
        for key, bucket in list(self._buckets.items())[:-1]:
            if not bucket.users and bucket.opens <= now:
                del self._buckets[key]
                return


def _seconds(text: str) -> float | None:
    try:
        return max(0.0, float(text))
    except ValueError:
        return None
