"""The routes, and the server behind the socket. Imported only when the extension is opened."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import anyio
import attrs
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from dragoman import Host
from dragoman_http.metrics import Metrics, snapshot
from dragoman_http.mounted import Message, MountedApp, Receive, Send
from dragoman_http.reports import liveness, readiness

OWN: Final = ("/livez", "/readyz", "/metrics")
FRESH: Final = {"cache-control": "no-store"}
CONNECTIONS: Final = 512
"""More at once are told to come back later: no flood of requests takes the gateway's memory."""


class Server(uvicorn.Server):
    """A server that leaves the process's signals alone, and says when it listens."""

    def __init__(self, config: uvicorn.Config, listening: Callable[[], None]) -> None:
        super().__init__(config)
        self._listening = listening

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do nothing: the gateway's own handlers end everything in order."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say so."""
        await super().startup(sockets)
        self._listening()


@attrs.frozen
class Bare:
    """An application at its mount's own path, as it sees requests below it."""

    _mounted: MountedApp

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        root = scope.get("root_path", "") + self._mounted.mount.path
        await self._mounted({**scope, "root_path": root}, receive, send)


async def serve(
    app: Starlette,
    listening: socket.socket,
    started: Callable[[], None],
    closing: Callable[[], None],
) -> None:
    """Answer requests until cancelled; what is being answered then gets two seconds.

    ``started`` is called once it listens, ``closing`` when it takes no more requests.
    """
    config = uvicorn.Config(
        app,
        http="h11",
        lifespan="off",  # each mounted application has its own
        log_config=None,
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=CONNECTIONS,
        timeout_graceful_shutdown=2,
    )
    server = Server(config, started)

    async def run() -> None:
        # A server that is cancelled leaves its connections open: it is asked to end instead.
        with anyio.CancelScope(shield=True):
            await server.serve([listening])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        try:
            await anyio.sleep_forever()
        finally:
            server.should_exit = True
            closing()


def application(host: Host, metrics: Metrics, mounted: Sequence[MountedApp]) -> Starlette:
    """Return the application of a gateway: its own pages first, then the longest path."""

    async def livez(_: Request) -> Response:
        return JSONResponse(liveness(host.gateway), headers=FRESH)

    async def readyz(_: Request) -> Response:
        report = readiness(host.gateway, host.clock.boot())
        return JSONResponse(report, 200 if report["ready"] else 503, FRESH)

    async def measured(request: Request) -> Response:
        now = await snapshot(host)
        body, content_type = metrics.page(now, request.headers.get("accept", ""))
        return Response(body, headers={"content-type": content_type, **FRESH})

    pages = (livez, readyz, measured)
    routes: list[BaseRoute] = [Route(path, page) for path, page in zip(OWN, pages, strict=True)]
    for one in sorted(mounted, key=lambda one: len(one.mount.path), reverse=True):
        if one.mount.path in OWN:
            line = "%s of %s is not served: the path is the listener's own"
            host.log.warning(line, one.mount.path, one.mount.owner)
        else:
            # Alone, a mount answers its bare path with a redirection, which few who deliver follow.
            routes += [Route(one.mount.path, Bare(one)), Mount(one.mount.path, app=one)]
    return Starlette(routes=routes)
