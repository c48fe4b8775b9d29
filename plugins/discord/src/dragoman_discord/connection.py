"""One connection to the gateway: three tasks that read, beat and take, and end together."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Final

import anyio
import anyio.lowlevel
import attrs
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from dragoman import Clock
from dragoman_discord.fields import as_map
from dragoman_discord.gateway import Action, Dispatch, Gateway, Leave, Send
from dragoman_discord.rest import parse
from dragoman_discord.socket import Socket

WAITING: Final = 1000
"""Events that were read and are not taken yet; beyond that the server waits."""


@attrs.define(eq=False)
class Connection:
    """Runs the protocol over a socket.

    ``take`` returns when an event is durable, ``stored`` is called after that; ``alive`` is called
    for each frame and each event.
    """

    _gateway: Gateway
    _socket: Socket
    _clock: Clock
    _take: Callable[[Dispatch], Awaitable[None]]
    _stored: Callable[[], None]
    _alive: Callable[[], None]
    _begun: anyio.Event = attrs.field(factory=anyio.Event)
    _left: Leave | None = None
    _scope: anyio.CancelScope = attrs.field(factory=anyio.CancelScope)

    async def run(self) -> Leave:
        """Be connected; return why and how to leave. Raises what ended it otherwise."""
        sender, receiver = anyio.create_memory_object_stream[Dispatch](WAITING)
        with self._scope:
            async with sender, receiver, anyio.create_task_group() as tasks:
                tasks.start_soon(self._read, sender)
                tasks.start_soon(self._beat)
                tasks.start_soon(self._handle, receiver)
        assert self._left is not None
        return self._left

    async def _read(self, events: MemoryObjectSendStream[Dispatch]) -> None:
        while True:
            frame = as_map(await parse(await self._socket.receive()))
            self._alive()
            for action in self._gateway.receive(frame, self._clock.boot()):
                if isinstance(action, Dispatch):
                    await events.send(action)
                else:
                    await self._do(action)
            if self._gateway.beat_at is not None:
                self._begun.set()

    async def _beat(self) -> None:
        await self._begun.wait()
        while True:
            due = self._gateway.beat_at or 0.0
            await self._clock.sleep(due - self._clock.boot())
            for action in self._gateway.tick(self._clock.boot()):
                await self._do(action)

    async def _handle(self, events: MemoryObjectReceiveStream[Dispatch]) -> None:
        async for event in events:
            await self._take(event)
            self._gateway.stored(event.seq)
            self._stored()
            self._alive()

    async def _do(self, action: Action) -> None:
        if isinstance(action, Send):
            await self._socket.send(json.dumps(action.frame))
        elif isinstance(action, Leave):
            self._left = action
            self._scope.cancel()
            await anyio.lowlevel.checkpoint()
