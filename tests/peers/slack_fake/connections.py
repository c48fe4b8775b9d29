"""The way to the app: its connections or its URL, and what may happen on it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import anyio.to_thread
import attrs

from peers.slack_fake.delivery import Forgery
from peers.slack_fake.interactions import Interactions
from peers.slack_fake.journal import Attempt, Delivery
from peers.slack_fake.server import Server
from peers.slack_fake.sockets import Ack, Reason, Socket


@attrs.define(eq=False, slots=False, repr=False)
class Connections(Interactions):
    """What a test does to deliveries. Callable from any thread but the server's own."""

    _server: Server

    @property
    def sockets(self) -> list[int]:
        """The numbers of the connections that are open, oldest first."""
        with self._world.changed:
            return [one.number for one in self._server.sockets.open]

    @property
    def acks(self) -> list[Ack]:
        """Every acknowledgement that came over a socket."""
        with self._world.changed:
            return list(self._server.sockets.acks)

    def route(self, choose: Callable[[Sequence[int]], int] | None) -> None:
        """R29: let ``choose`` say which of the open connections gets each payload."""
        self._server.deliverer.choose = choose

    def disconnect(self, reason: Reason, *numbers: int) -> None:
        """R30: ask connections to go, all of them if none is named."""
        for socket in self._chosen(numbers):
            self._server.begin(partial(self._server.sockets.disconnect, socket, reason))

    def disable_link(self) -> None:
        """R30: switch Socket Mode off: open connections are told, new ones are refused."""
        self._server.sockets.disabled = True
        self.disconnect("link_disabled")

    def enable_link(self) -> None:
        self._server.sockets.disabled = False

    def drop(self, *numbers: int) -> None:
        """Cut connections without a word, all of them if none is named."""
        for socket in self._chosen(numbers):
            self._server.loop.call_soon_threadsafe(socket.abort)

    def silence(self, *numbers: int) -> None:
        """Leave connections half open: they stay, but nothing comes any more, not even pings."""
        for socket in self._chosen(numbers):
            socket.silent = True

    def stop_pings(self, *numbers: int) -> None:
        """Send no pings and answer none any more, while payloads still come."""
        for socket in self._chosen(numbers):
            socket.pongs = False

    def deliver_to(self, url: str, *, forgery: Forgery = "") -> None:
        """R31: send everything to a URL from now on, rightly or wrongly signed; "" is sockets."""
        self._server.deliverer.url, self._server.deliverer.forgery = url, forgery

    async def verify_url(self, url: str, *, forgery: Forgery = "") -> bool:
        """R31: return whether an app listens at a URL and gives the challenge back."""
        self._server.deliverer.forgery = forgery
        asked = self._server.deliverer.verify_url(url)
        return await anyio.to_thread.run_sync(self._server.call, lambda: asked)

    def hold_events(self, *types: str) -> Callable[[], None]:
        """Hold back all events of some types; return what lets them go, in their order."""
        gate = asyncio.Event()
        gates = self._server.deliverer.gates
        gates.update(dict.fromkeys(types, gate))

        def release() -> None:
            for one in types:
                gates.pop(one, None)
            self._server.loop.call_soon_threadsafe(gate.set)

        return release

    def redeliver(self, delivery: Delivery) -> None:
        """R21: send a payload once more, whether or not it was acknowledged."""
        reason = "timeout" if not self._server.deliverer.url else "http_timeout"
        attempt = Attempt(len(delivery.attempts), reason)

        async def again() -> None:
            await self._server.deliverer.attempt(delivery, attempt)

        self._server.begin(again)

    def _chosen(self, numbers: Iterable[int]) -> list[Socket]:
        wanted = set(numbers)
        with self._world.changed:
            found = list(self._server.sockets.open)
        return [one for one in found if not wanted or one.number in wanted]
