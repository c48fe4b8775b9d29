"""Which program serves which session: kept while a conversation goes on, within a budget.

A program costs some 200 MB and half a second to start. It is kept idle for the next message of its
session, never shared, and never kept for a person's decision.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

import anyio
import attrs

from dragoman import Clock
from dragoman_claude.config import ProgramsTable
from dragoman_claude.conversation import Conversation
from dragoman_claude.home import Home
from dragoman_claude.memory import Used, used_by

_EACH: Final = 200
"""Megabytes that a program is reckoned at until it uses more: most never do."""


@attrs.define(eq=False)
class Pool:
    """The programs of a runtime that are alive."""

    table: ProgramsTable
    clock: Clock
    log: logging.Logger
    measure: Callable[[Home], Used | None] = used_by
    _idle: OrderedDict[str, tuple[Conversation, float]] = attrs.field(factory=OrderedDict)
    """By session, what is kept and since when; the longest idle first."""
    _sizes: dict[Conversation, int] = attrs.field(factory=dict)
    """Megabytes that each is reckoned at, of all that live."""
    _starting: int = 0
    _ending: dict[str, anyio.Event] = attrs.field(factory=dict)
    """By session, what is set when its program is gone: until then there is no other."""
    _line: anyio.Lock = attrs.field(factory=anyio.Lock)
    """Held by the first of those who wait for room."""
    _freed: anyio.Event = attrs.field(factory=anyio.Event)
    _starts: anyio.CapacityLimiter = attrs.field(init=False)
    _changed: anyio.Event = attrs.field(factory=anyio.Event)
    _closed: bool = False

    def __attrs_post_init__(self) -> None:
        self._starts = anyio.CapacityLimiter(self.table.starts)

    @property
    def size(self) -> int:
        """How many programs are idle."""
        return len(self._idle)

    @asynccontextmanager
    async def use(
        self,
        session_id: str,
        fits: Callable[[Conversation], bool],
        begin: Callable[[], Awaitable[Conversation]],
    ) -> AsyncIterator[Conversation]:
        """Lend a session its program: the idle one if it ``fits``, else one that ``begin`` starts.

        Waits its turn where the budget is used up. Whatever is raised in the block ends the program,
        unless that was stopped in order and is at rest.
        """
        one = await self._kept(session_id, fits) or await self._begin(begin)
        try:
            yield one
        except BaseException as error:
            if isinstance(error, anyio.get_cancelled_exc_class()) and one.client.resting:
                await self._keep(session_id, one)
            else:
                await self._end(session_id, one)
            raise
        await self._keep(session_id, one)

    async def run(self) -> None:
        """End what has been idle too long, or uses more than there is, until cancelled."""
        while True:
            self._changed = anyio.Event()
            if not self._idle:
                await self._changed.wait()
                continue
            _, since = next(iter(self._idle.values()))
            left = since + self.table.idle - self.clock.boot()
            if left > 0 and self._used <= self.table.memory:
                with self.clock.move_on_after(left):
                    await self._changed.wait()
                continue
            await self._end_longest_idle()

    async def close(self) -> None:
        """End all idle programs, at once."""
        self._closed = True
        async with anyio.create_task_group() as tasks:
            while self._idle:
                session_id, (one, _) = self._idle.popitem()
                tasks.start_soon(self._end, session_id, one)

    @property
    def _used(self) -> int:
        return sum(self._sizes.values()) + self._starting * _EACH

    async def _kept(
        self, session_id: str, fits: Callable[[Conversation], bool]
    ) -> Conversation | None:
        """Return the session's idle program if it may serve; if not, none of it is left."""
        while (ending := self._ending.get(session_id)) is not None:
            await ending.wait()
        one, _ = self._idle.pop(session_id, (None, 0.0))
        if one is None or (one.client.alive and fits(one)):
            return one
        await self._end(session_id, one)
        return None

    async def _begin(self, begin: Callable[[], Awaitable[Conversation]]) -> Conversation:
        """Start a program. Room is made for it no sooner than it may start: idle ones may be used."""
        async with self._starts:
            async with self._line:
                await self._make_room()
                self._starting += 1
            try:
                one = await begin()
                self._sizes[one] = _EACH
            finally:
                self._starting -= 1
                self._freed.set()
        return one

    async def _make_room(self) -> None:
        """Wait until one program more is within the budget; those that are idle make room.

        A single one always is: no budget is smaller.
        """
        for one in self._sizes:
            self._weigh(one)
        while self._used + _EACH > self.table.memory:
            if self._idle:
                await self._end_longest_idle()
            else:
                self._freed = anyio.Event()
                await self._freed.wait()

    def _weigh(self, one: Conversation) -> Used | None:
        used = self.measure(one.client.home)
        self._sizes[one] = max(_EACH, used.whole if used is not None else 0)
        return used

    async def _keep(self, session_id: str, one: Conversation) -> None:
        used = self._weigh(one)
        large = used is not None and used.program > self.table.largest
        worn = large or one.client.turns >= self.table.turns or not one.client.alive
        if worn or self._closed or self.table.idle == 0 or session_id in self._idle:
            await self._end(session_id, one)
            return
        self._idle[session_id] = one, self.clock.boot()
        self._changed.set()
        self._freed.set()

    async def _end_longest_idle(self) -> None:
        session_id, (one, _) = self._idle.popitem(last=False)
        await self._end(session_id, one)

    async def _end(self, session_id: str, one: Conversation) -> None:
        gone = self._ending[session_id] = anyio.Event()
        try:
            with anyio.CancelScope(shield=True):
                await one.client.close()
        finally:
            if self._ending[session_id] is gone:
                del self._ending[session_id]
            del self._sizes[one]
            gone.set()
            self._freed.set()
