"""One connection of Socket Mode: what is read from it, taken, and acknowledged."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, TypeAlias

import anyio
import attrs
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from dragoman import Clock, NotSent
from dragoman_slack.frames import Envelope, Frame, parse

if TYPE_CHECKING:
    from httpx2.websockets import AsyncWebSocketSession

Take: TypeAlias = Callable[[Envelope], Awaitable[None]]
"""Returns when what an envelope tells is durable."""
Notice: TypeAlias = Callable[[Frame], None]
"""Told of the frames that concern the connection itself; may raise to end it."""

WAITING: Final = 64
"""Envelopes that wait to be taken; beyond that the connection is not read."""
LAST: Final = 2.0
"""Seconds that what was read last may take after the connection has ended."""


class Lost(NotSent):
    """A connection came to its end."""


@attrs.define(eq=False)
class Conversation:
    """Reads a connection. Envelopes are taken in order, while the next ones are being read."""

    _session: AsyncWebSocketSession
    _clock: Clock
    _alive: Callable[[], None]
    _ping_interval: float
    _heard: int = 0

    async def run(self, take: Take, notice: Notice) -> None:
        """Go on until the connection ends; raises `Lost`, or what ``take`` and ``notice`` raise."""
        send, receive = anyio.create_memory_object_stream[Envelope](WAITING)
        async with send, receive, anyio.create_task_group() as tasks:
            tasks.start_soon(self._work, receive, take, tasks.cancel_scope)
            tasks.start_soon(self._ping, tasks.cancel_scope)
            await self._read(send, notice)
            # What was read is still taken; if it cannot be acknowledged any more, it comes again.
            tasks.cancel_scope.deadline = anyio.current_time() + LAST
            send.close()
            await anyio.sleep_forever()

    async def _read(self, send: MemoryObjectSendStream[Envelope], notice: Notice) -> None:
        from httpx2.websockets import HTTPXWSException

        while True:
            try:
                text = await self._session.receive_text()
            except (HTTPXWSException, anyio.ClosedResourceError, anyio.EndOfStream):
                return
            self._heard += 1
            self._alive()
            frame = parse(text)
            if isinstance(frame, Envelope):
                await send.send(frame)
            elif frame is not None:
                notice(frame)

    async def _work(
        self, receive: MemoryObjectReceiveStream[Envelope], take: Take, scope: anyio.CancelScope
    ) -> None:
        async for envelope in receive:
            await take(envelope)
            self._alive()
            async with self._sending():
                await self._session.send_text(envelope.ack)
        scope.cancel()

    async def _ping(self, scope: anyio.CancelScope) -> None:
        """Ask for a sign of life again and again, and end a connection that gives none."""
        while True:
            heard, answered = self._heard, False
            with self._clock.move_on_after(self._ping_interval):
                async with self._sending():
                    pong = await self._session.ping()
                    await pong.wait()
                answered = True
            if answered:
                self._alive()
            elif self._heard == heard:
                scope.cancel()
                return
            await self._clock.sleep(self._ping_interval)

    @asynccontextmanager
    async def _sending(self) -> AsyncIterator[None]:
        """Leave it to the reader to find out that the connection has ended."""
        try:
            yield
        except Exception:  # noqa: BLE001 - each client names a closed connection in its own way
            return
