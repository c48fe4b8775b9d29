"""The stream of a turn's run events: never waits for its reader, and stays small."""

from __future__ import annotations

from collections import deque

import anyio
import attrs

from dragoman.runevents import RunEnd, RunEvent, TextDelta


@attrs.define(eq=False)
class Feed:
    """Run events from one writer to one reader.

    Deltas of one block that nobody has read yet become one event, so that what waits is never
    larger than the answer. Iterating ends behind the end event.
    """

    _events: deque[RunEvent] = attrs.field(factory=deque)
    _block: str = ""
    _parts: list[str] = attrs.field(factory=list)
    _wake: anyio.Event = attrs.field(factory=anyio.Event)
    _closed: bool = False
    _idle: anyio.Event = attrs.field(factory=anyio.Event)
    """Set while the reader has dealt with all that is there, and wants more."""

    def put(self, event: RunEvent) -> None:
        """Add an event; behind the end it is too late for one."""
        if self._closed:
            return
        if isinstance(event, TextDelta):
            if event.block != self._block:
                self._flush()
            self._block = event.block
            self._parts.append(event.text)
        else:
            self._flush()
            self._events.append(event)
        if self._idle.is_set():
            self._idle = anyio.Event()
        self._wake.set()

    async def taken(self) -> None:
        """Wait until the reader has dealt with every event so far."""
        await self._idle.wait()

    def close(self, end: RunEnd) -> None:
        """Add the end event; nothing may follow it."""
        self.put(end)
        self._closed = True

    def __aiter__(self) -> Feed:
        return self

    async def __anext__(self) -> RunEvent:
        while True:
            self._flush()
            if self._events:
                return self._events.popleft()
            if self._closed:
                raise StopAsyncIteration
            self._wake = anyio.Event()
            self._idle.set()
            await self._wake.wait()

    def _flush(self) -> None:
        if self._parts:
            self._events.append(TextDelta(self._block, "".join(self._parts)))
            self._parts.clear()
