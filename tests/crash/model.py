"""The model server between the gateway and the test's model: it reports each call.

It also compacts, as the service does and the test's model does not: what comes of it holds all that
people have said, so that it can be seen later that nothing of it is gone.
"""

from __future__ import annotations

import http.client
import http.server
import json
import threading
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self

from crash.conductor import Conductor

METHOD: Final = "model"
COMPACT: Final = "compact"
HOP_BY_HOP: Final = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length"})


def told(items: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what people have said by what a model is sent, compacted items opened."""
    said: list[str] = []
    for item in items:
        if item.get("type") == "compaction":
            said += json.loads(item["encrypted_content"])
        elif item.get("role") == "user":
            content = item["content"]
            parts = [{"text": content}] if isinstance(content, str) else content
            said.append("".join(part.get("text", "") for part in parts))
    return said


class _Relay(http.server.BaseHTTPRequestHandler):
    """Passes one request on, and streams what comes back."""

    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        """Relay a request: its length is known, its answer ends with the connection."""
        conductor = self.server.conductor
        body = self.rfile.read(int(self.headers["content-length"]))
        self.close_connection = True
        if self.path.endswith("/compact"):
            self._compact(json.loads(body))
            return
        number = conductor.call(METHOD)
        if not conductor.at_call(METHOD, number, "arrived"):
            return
        asked = json.loads(body)
        self.server.asked.append(asked)
        rest = [one for one in asked["input"] if one.get("type") != "compaction"]
        body = json.dumps({**asked, "input": rest}).encode()
        upstream = http.client.HTTPConnection(self.server.model, timeout=30)
        try:
            headers = {
                key: value
                for key, value in self.headers.items()
                if key.lower() not in {"host", "accept-encoding", *HOP_BY_HOP}
            }
            upstream.request("POST", self.path, body, headers)
            answer = upstream.getresponse()
            if conductor.at_call(METHOD, number, "applied"):
                self._stream(answer)
                conductor.at_call(METHOD, number, "answered")
        finally:
            upstream.close()

    def _compact(self, asked: dict[str, Any]) -> None:
        conductor = self.server.conductor
        number = conductor.call(COMPACT)
        if not conductor.at_call(COMPACT, number, "arrived"):
            return
        item = {
            "id": f"cmp_{number}",
            "type": "compaction",
            "encrypted_content": json.dumps(told(asked["input"])),
        }
        answer = {
            "id": f"resp_{number}",
            "object": "response.compaction",
            "created_at": 0,
            "output": [item],
            "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2},
        }
        if conductor.at_call(COMPACT, number, "applied"):
            whole = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(whole)))
            self.end_headers()
            self.wfile.write(whole)
            self.wfile.flush()
            conductor.at_call(COMPACT, number, "answered")

    def _stream(self, answer: http.client.HTTPResponse) -> None:
        self.send_response(answer.status)
        for key, value in answer.getheaders():
            if key.lower() not in HOP_BY_HOP:
                self.send_header(key, value)
        self.send_header("connection", "close")
        self.end_headers()
        while part := answer.read1():
            self.wfile.write(part)
            self.wfile.flush()

    def log_message(self, *about: object) -> None:
        """Print nothing."""


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, conductor: Conductor, model: str) -> None:
        super().__init__(("127.0.0.1", 0), _Relay)
        self.conductor = conductor
        self.model = model
        self.asked: list[dict[str, Any]] = []

    def handle_error(self, request: object, client_address: object) -> None:
        """Stay silent: the client was killed."""


class ModelRelay:
    """The relay in front of the model at ``host:port``, for the length of a ``with`` block."""

    def __init__(self, conductor: Conductor, model: str) -> None:
        self._server = _Server(conductor, model)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    @property
    def url(self) -> str:
        """What the runtime's table names as its base URL."""
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    @property
    def asked(self) -> Sequence[dict[str, Any]]:
        """The bodies of all model calls so far."""
        return self._server.asked

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
