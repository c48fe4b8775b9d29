"""A stand-in for Dapr's sidecar: its question for health, and one state store in memory.

It speaks the interface's own protocol definitions, and proves nothing about Dapr.
"""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

from aiohttp import web

from peers.loopback import Loopback


class Health(Loopback):
    """Answers every request with 204."""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Say that all is well."""
        return web.Response(status=204)


class DaprSidecar:
    """The stand-in for the length of a ``with`` block; ``state`` is what the store holds."""

    def __init__(self) -> None:
        self.health = Health()
        self.port = 0
        self.state: dict[str, tuple[bytes, str]] = {}
        self.options: list[Any] = []
        self._etags = itertools.count(1)

    @property
    def environment(self) -> dict[str, str]:
        """Where its library asks for health."""
        return {"DAPR_HTTP_PORT": str(self.health.port), "DAPR_RUNTIME_HOST": "127.0.0.1"}

    def __enter__(self) -> Self:
        import grpc
        from dapr.proto import api_service_v1, api_v1
        from google.protobuf.empty_pb2 import Empty

        peer = self

        class Servicer(api_service_v1.DaprServicer):
            def GetState(self, request: Any, context: Any) -> Any:
                data, etag = peer.state.get(request.key, (b"", ""))
                return api_v1.GetStateResponse(data=data, etag=etag)

            def SaveState(self, request: Any, context: Any) -> Any:
                for item in request.states:
                    known = peer.state.get(item.key, (b"", ""))[1]
                    if item.etag.value not in ("", known):
                        context.abort(grpc.StatusCode.ABORTED, "etag mismatch")
                    peer.state[item.key] = (item.value, str(next(peer._etags)))
                    peer.options.append(item.options)
                return Empty()

            def DeleteState(self, request: Any, context: Any) -> Any:
                peer.state.pop(request.key, None)
                return Empty()

        self.health.start()
        self._server = grpc.server(ThreadPoolExecutor(2))
        api_service_v1.add_DaprServicer_to_server(Servicer(), self._server)
        self.port = self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop(None).wait()
        self.health.stop()
