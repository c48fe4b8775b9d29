"""An MCP server that is a child process: it ends with the gateway, however the gateway ends.

It is given an environment of its own, and a session, so that a terminal's signals do not reach it.
Closing its stdin is what tells it to go; the MCP package kills it and its group after two seconds.
Of a gateway that is killed a good server sees the same end of stdin; on Linux the kernel kills the
program itself, whatever it does (`parent_death`).
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

from agents.mcp import MCPServerStdio
from mcp.client.stdio import StdioServerParameters, stdio_client

from dragoman_openai import parent_death

_KEPT: Final = 2000
"""Bytes of what a server said last that are kept."""


class ChildServer(MCPServerStdio):
    """An `MCPServerStdio` whose process never outlives this one; what it says last is kept."""

    def __init__(self, params: Any, **more: Any) -> None:
        super().__init__(params, **more)
        self._said = _Tail()

    @property
    def last_words(self) -> str:
        """What the process said last: only before it serves it surely tells of nobody's words."""
        return self._said.words

    def create_streams(self) -> Any:
        """Return the streams of a new process, as a context."""
        self._said = _Tail()
        return _process(self.params, self._said)


class _Tail(asyncio.Protocol):
    """Keeps the end of what a process says on stderr."""

    def __init__(self) -> None:
        self._kept = b""

    @property
    def words(self) -> str:
        """The last line."""
        lines = self._kept.decode(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")[:200]

    def data_received(self, data: bytes) -> None:
        """Take what was said."""
        self._kept = (self._kept + data)[-_KEPT:]


@asynccontextmanager
async def _process(params: StdioServerParameters, said: _Tail) -> AsyncIterator[Any]:
    reading, writing = os.pipe()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: said, os.fdopen(reading, "rb", 0)
    )
    try:
        async with AsyncExitStack() as stack:
            with os.fdopen(writing, "w") as stderr:
                streams = await stack.enter_async_context(stdio_client(_bound(params), stderr))
            yield streams
    finally:
        transport.close()


def _bound(params: StdioServerParameters) -> StdioServerParameters:
    """Return the same process, bound to the life of this one where the system can do that."""
    if sys.platform != "linux":
        return params
    before = ["-I", "-S", str(Path(parent_death.__file__)), str(os.getpid()), params.command]
    return params.model_copy(update={"command": sys.executable, "args": [*before, *params.args]})
