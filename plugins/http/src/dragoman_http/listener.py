"""The extension: a socket from its opening on, and a server behind it while the gateway runs."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

import anyio
import attrs
from anyio.abc import TaskStatus

from dragoman import DragomanError, Host, Observation, hookimpl
from dragoman_http.config import HttpConfig
from dragoman_http.mounted import MountedApp

if TYPE_CHECKING:
    from dragoman_http.metrics import Metrics


@attrs.define(eq=False)
class Listener:
    """Serves health, metrics and mounted applications on ``url``, once the gateway has started."""

    _host: Host
    _socket: socket.socket
    _metrics: Metrics

    @property
    def url(self) -> str:
        """The address of the listener, without a path."""
        name, port = self._socket.getsockname()[:2]
        return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"

    @hookimpl
    def dragoman_observe(self, observation: Observation) -> None:
        """Count what happens."""
        self._metrics.observe(observation)

    @hookimpl
    async def dragoman_started(self) -> None:
        """Begin to serve: everybody has mounted what they offer."""
        await self._host.task_group.start(self._serve)
        self._host.log.info("listening on %s", self.url)

    async def _serve(self, *, task_status: TaskStatus[None]) -> None:
        from dragoman_http.server import application, serve

        mounted = [
            MountedApp(mount, self._host.clock, self._host.log)
            for mount in self._host.gateway.mounts
        ]

        def closing() -> None:
            for one in mounted:
                one.close()

        app = application(self._host, self._metrics, mounted)
        async with anyio.create_task_group() as tasks:
            for one in mounted:
                tasks.start_soon(one.live)
            try:
                await serve(app, self._socket, task_status.started, closing)
            finally:
                # Only now: requests that were being answered needed them.
                for one in mounted:
                    one.end()


@asynccontextmanager
async def open_http(config: HttpConfig, host: Host) -> AsyncIterator[Listener]:
    """Take the port; serving begins when everything is open."""
    host.serve_mounts()
    metrics = await anyio.to_thread.run_sync(_load, host)
    with _bound(config) as listening:
        listener = Listener(host, listening, metrics)
        if not config.local:
            line = "%s is reachable from other machines: whoever reaches it may read what is served"
            host.log.warning(line, listener.url)
        yield listener


def _load(host: Host) -> Metrics:
    import dragoman_http.server  # noqa: F401 - the server's SDK takes its time to import
    from dragoman_http.metrics import Metrics

    return Metrics(host.clock)


@contextmanager
def _bound(config: HttpConfig) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in config.bind else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listening:
        # A port whose last owner has just ended is free.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((config.bind, config.port))
        except OSError as error:
            msg = (
                f"cannot listen on {config.bind} port {config.port}: {error.strerror}; "
                "set another bind or port, or end the process that listens there"
            )
            raise DragomanError(msg) from error
        listening.setblocking(False)
        yield listening
