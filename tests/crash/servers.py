"""A line server on a free port of the loopback interface, with a thread per connection."""

from __future__ import annotations

import socketserver
import threading


class LoopbackServer(socketserver.ThreadingTCPServer):
    """Serves between `begin` and `end`. A client that was killed is no error."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True

    def __init__(self, handler: type[socketserver.StreamRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True)

    @property
    def address(self) -> str:
        """Where it listens, as ``host:port``."""
        host, port = self.server_address[:2]
        return f"{host!s}:{port}"

    def begin(self) -> None:
        """Serve from a thread of its own."""
        self._thread.start()

    def end(self) -> None:
        """Serve no more connections."""
        self.shutdown()
        self._thread.join()
        self.server_close()

    def handle_error(self, request: object, client_address: object) -> None:
        """Stay silent where a peer was killed in the middle of a line; report all else."""
        import sys

        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]  # as given
