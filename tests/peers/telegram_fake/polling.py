"""getUpdates: waiting for updates, and two consumers of one bot. Lives in the server's loop."""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final

import attrs

from peers.telegram_fake.errors import (
    OTHER_POLL,
    WEBHOOK_IS_SET,
    WEBHOOK_WAS_SET,
    BotError,
    Json,
    refusal,
)
from peers.telegram_fake.world import World

MAX_WAIT: Final = 50
_GATHER: Final = 0.001
"""Seconds between the first update and the answer, so that those that follow come along."""


@attrs.define(eq=False)
class Waiting:
    """A poll without updates so far."""

    woken: asyncio.Event = attrs.field(factory=asyncio.Event)
    conflict: str = ""


@attrs.define(eq=False)
class Poller:
    """Answers polls; of two that wait, the newer one stays."""

    _world: World
    _conflict_pause: float = 3.0
    _repeat_wait: float = 3.0
    _waiting: Waiting | None = None
    _offset: int | None = None
    _began: float = 0.0
    _next_conflict: float = 0.0

    async def poll(self, params: Json) -> list[Json]:
        """R1 to R6: one getUpdates."""
        if self._world.hook is not None:
            raise await self._conflict(WEBHOOK_IS_SET)
        offset = _int32(params.get("offset", 0))
        limit = min(max(params.get("limit", 100), 1), 100)
        timeout = min(max(params.get("timeout", 0), 0), MAX_WAIT)
        limit, timeout = self._same_offset(offset, limit, timeout)
        with self._world.changed:
            self._world.updates.allow(params.get("allowed_updates"))
            batch = self._take(offset, limit)
        if batch or not timeout:
            return batch
        waiting = self._replace()
        try:
            await asyncio.wait_for(waiting.woken.wait(), timeout)
            if not waiting.conflict:
                await asyncio.sleep(_GATHER)
        except TimeoutError:
            pass  # nothing came: the answer is an empty one
        finally:
            if self._waiting is waiting:
                self._waiting = None
        if waiting.conflict:
            raise await self._conflict(waiting.conflict)
        return self._take(offset, limit)

    def wake(self) -> None:
        """Let the poll that waits look again."""
        if self._waiting is not None:
            self._waiting.woken.set()

    def end_for_webhook(self) -> None:
        """R6: setting a webhook ends the poll that waits."""
        self._end(WEBHOOK_WAS_SET)

    def _take(self, offset: int, limit: int) -> list[Json]:
        with self._world.changed:
            batch = self._world.updates.take(offset, limit)
            self._world.changed.notify_all()
            return batch

    def _replace(self) -> Waiting:
        """R6: a poll that begins to wait ends the older one."""
        self._end(OTHER_POLL)
        self._waiting = Waiting()
        return self._waiting

    def _end(self, reason: str) -> None:
        if self._waiting is not None:
            self._waiting.conflict = reason
            self._waiting.woken.set()
            self._waiting = None

    async def _conflict(self, reason: str) -> BotError:
        """R6: a conflict soon after another one is told late."""
        now = time.monotonic()
        if now < self._next_conflict:
            await asyncio.sleep(self._conflict_pause)
        else:
            self._next_conflict = now + self._conflict_pause
        return refusal(409, reason)

    def _same_offset(self, offset: int, limit: int, timeout: float) -> tuple[int, float]:
        """R5a: a client that asks for the same again is slowed down."""
        now, repeated = time.monotonic(), offset == self._offset
        if repeated and now < self._began + 3.0:
            timeout = max(timeout, self._repeat_wait)
        if repeated and now < self._began + 0.5:
            limit = 1
        self._offset, self._began = offset, now
        return limit, timeout


def _int32(value: Any) -> int:
    """R1: the offset wraps around at 32 bits."""
    return (int(value) + (1 << 31)) % (1 << 32) - (1 << 31)
