"""A model server whose journal keeps each request's body as it came.

The server is the PyPI package ``llmock``. What it answers is scripted as a queue of behaviours, in
the order of the requests; see its documentation.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from peers.process import PEERS, PeerProcess, request

PROGRAM = PEERS / "bin" / "llmock"


class LlMock:
    """The server, for the length of a ``with`` block."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="llmock-")
        self._process = PeerProcess("llmock", Path(self._folder.name) / "log")

    @property
    def base_url(self) -> str:
        """What an OpenAI client takes as its base URL."""
        return f"{self._process.root}/v1"

    def script(self, *behaviours: dict[str, Any]) -> None:
        """Queue what the next requests meet."""
        request(f"{self._process.root}/_llmock/scenario", {"behaviors": list(behaviours)})

    def bodies(self) -> list[Any]:
        """Return the body of every model call so far, oldest first."""
        found = request(f"{self._process.root}/_llmock/requests")["requests"]
        return [each["body"] for each in found if each["method"] == "POST"]

    def reset(self) -> None:
        """Forget requests and behaviours."""
        request(f"{self._process.root}/_llmock/reset", method="POST")

    def __enter__(self) -> Self:
        if not PROGRAM.is_file():
            msg = f"{PROGRAM} is missing: run `make peers`"
            raise RuntimeError(msg)
        self._process.start(self._command, "/_llmock/scenario")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            print(f"--- llmock ---\n{self._process.log()}")
        self._process.stop()
        self._folder.cleanup()

    def _command(self, port: int) -> list[str]:
        where = ["--host", "127.0.0.1", "--port", str(port)]
        return [str(PROGRAM), "serve", *where, "--log-level", "error", "--tool-mode", "off"]
