"""Which program serves which session: kept while a conversation goes on, within a budget.

A program costs some 200 MB and half a second to start. It is kept idle for the next message of its
session, never shared, and never kept for a person's decision.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio
import attrs

from dragoman import Clock
from dragoman_claude.config import ProgramsTable
from dragoman_claude.conversation import Conversation

_EACH: Final = 200
"""Megabytes that a program is reckoned at."""
_MEGABYTE: Final = 1 << 20


def memory_of(pid: int | None) -> int | None:
    """Return the megabytes that a process alone uses; ``None`` where the system does not say."""
    try:
        told = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    except OSError:
        return None
    own = [line.split()[1] for line in told.splitlines() if line.startswith("Private_")]
    return sum(map(int, own)) // 1024


@attrs.define(eq=False)
class Pool:
    """The programs of a runtime that are alive."""

    table: ProgramsTable
    clock: Clock
    log: logging.Logger
    measure: Callable[[int | None], int | None] = memory_of
    _idle: OrderedDict[str, tuple[Conversation, float]] = attrs.field(factory=OrderedDict)
    """By session, what is kept and since when; the longest idle first."""
    _places: anyio.Semaphore = attrs.field(init=False)
    _starts: anyio.CapacityLimiter = attrs.field(init=False)
    _changed: anyio.Event = attrs.field(factory=anyio.Event)
    _closed: bool = False

    def __attrs_post_init__(self) -> None:
        places = max(1, self.table.memory // _EACH)
        self._places = anyio.Semaphore(places, max_value=places)
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
        kept = self._idle.pop(session_id, None)
        one = kept[0] if kept is not None else None
        if one is not None and not (one.client.alive and fits(one)):
            await self._end(one)
            one = None
        if one is None:
            await self._take_place()
            try:
                async with self._starts:
                    one = await begin()
            except BaseException:
                self._places.release()
                raise
        try:
            yield one
        except BaseException as error:
            if isinstance(error, anyio.get_cancelled_exc_class()) and one.client.resting:
                await self._keep(session_id, one)
            else:
                await self._end(one)
            raise
        await self._keep(session_id, one)

    async def run(self) -> None:
        """End what has been idle too long, until cancelled."""
        while True:
            self._changed = anyio.Event()
            if not self._idle:
                await self._changed.wait()
                continue
            one, since = next(iter(self._idle.values()))
            left = since + self.table.idle - self.clock.boot()
            if left > 0:
                with self.clock.move_on_after(left):
                    await self._changed.wait()
                continue
            self._idle.popitem(last=False)
            await self._end(one)

    async def close(self) -> None:
        """End all idle programs, at once."""
        self._closed = True
        ending = [one for one, _ in self._idle.values()]
        self._idle.clear()
        async with anyio.create_task_group() as tasks:
            for one in ending:
                tasks.start_soon(self._end, one)

    async def _take_place(self) -> None:
        """Take a place in the budget, from the longest idle program where none is free."""
        try:
            self._places.acquire_nowait()
        except anyio.WouldBlock:
            if self._idle:
                _, (one, _) = self._idle.popitem(last=False)
                await self._end(one)
            await self._places.acquire()

    async def _keep(self, session_id: str, one: Conversation) -> None:
        worn = one.client.turns >= self.table.turns or self._is_large(one)
        waiting = self._places.statistics().tasks_waiting > 0
        if self._closed or worn or waiting or not one.client.alive or self.table.idle == 0:
            await self._end(one)
            return
        self._idle[session_id] = one, self.clock.boot()
        self._changed.set()

    def _is_large(self, one: Conversation) -> bool:
        used = self.measure(one.client.home.pid)
        return used is not None and used > self.table.largest

    async def _end(self, one: Conversation) -> None:
        try:
            with anyio.CancelScope(shield=True):
                await one.client.close()
        finally:
            self._places.release()
