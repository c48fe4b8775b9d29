"""Run events for sinks: buffered per sink, written in batches, never waited for by a turn."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from typing import Final

import anyio
import attrs
from anyio.abc import TaskGroup

from dragoman.causes import describe
from dragoman.protocols import Sink, TurnInfo
from dragoman.runevents import RunEvent

BUFFERED: Final = 10_000
"""Events that a sink may lag behind; further ones are dropped, counted and logged."""

TURNS: Final = 1000
"""Turns that may be open at one sink; one that never ends them is given no more."""


@attrs.define(eq=False)
class SinkFeed:
    """One turn's events on their way to one sink."""

    _name: str
    _log: logging.Logger
    _buffer: list[RunEvent] = attrs.field(factory=list)
    _bell: anyio.Event = attrs.field(factory=anyio.Event)
    _closed: bool = False
    _failed: bool = False
    _dropped: int = 0

    def put(self, event: RunEvent) -> None:
        """Hand an event over; never waits."""
        if self._failed:
            return
        if len(self._buffer) >= BUFFERED:
            self._dropped += 1
            return
        self._buffer.append(event)
        self._bell.set()

    def close(self) -> None:
        """Say that the turn has ended."""
        self._closed = True
        self._bell.set()

    async def run(self, sink: Sink, turn: TurnInfo) -> None:
        """Write what comes until the turn has ended; a sink that fails loses this turn only."""
        try:
            async with sink.turn(turn) as target:
                while self._buffer or not self._closed:
                    if not self._buffer:
                        await self._bell.wait()
                        self._bell = anyio.Event()
                        continue
                    batch, self._buffer = self._buffer, []
                    await target.write(batch)
        except Exception as error:  # noqa: BLE001 - a sink never stops a turn
            self._log.error(
                "sink %s failed in turn %s: %s", self._name, turn.turn_id, describe(error)
            )
            self._failed = True
            self._buffer.clear()
        if self._dropped:
            self._log.error(
                "sink %s lost %d events of turn %s", self._name, self._dropped, turn.turn_id
            )


@attrs.define(eq=False)
class SinkFan:
    """All sinks of a deployment. Its tasks run in the group it is given."""

    _sinks: Mapping[str, Sink]
    _tasks: TaskGroup
    _log: logging.Logger
    _open: Counter[str] = attrs.field(factory=Counter)
    _ended: anyio.Event = attrs.field(factory=anyio.Event)

    def open(self, turn: TurnInfo) -> list[SinkFeed]:
        """Begin a turn at every sink that keeps up."""
        feeds = []
        for name, sink in self._sinks.items():
            if self._open[name] >= TURNS:
                self._log.error("sink %s hangs: it gets nothing of turn %s", name, turn.turn_id)
                continue
            feed = SinkFeed(name, self._log)
            self._open[name] += 1
            self._tasks.start_soon(self._run, name, feed, sink, turn)
            feeds.append(feed)
        return feeds

    async def flush(self) -> None:
        """Return when every sink has taken the turns that have ended."""
        while self._open.total():
            await self._ended.wait()

    async def _run(self, name: str, feed: SinkFeed, sink: Sink, turn: TurnInfo) -> None:
        try:
            await feed.run(sink, turn)
        finally:
            self._open[name] -= 1
            self._ended.set()
            self._ended = anyio.Event()
