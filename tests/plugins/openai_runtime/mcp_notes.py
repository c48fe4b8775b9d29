"""An MCP server for the tests, written with the ``mcp`` package: over stdio, or HTTP with a port.

python mcp_notes.py [--stubborn] [--http PORT | --sse PORT]
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from starlette.requests import Request
from starlette.responses import Response

server = MCPServer("notes", log_level="ERROR")
NOTES = Path(os.environ.get("NOTES", os.devnull))


@server.tool()
def note(text: str) -> str:
    """Keep a note."""
    with NOTES.open("a") as file:
        file.write(f"{text}\n")
    return "kept"


@server.tool()
def notes() -> str:
    """Return all notes."""
    return NOTES.read_text() if NOTES.is_file() else ""


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def surroundings(context: Context) -> str:
    """Return what the server was started or called with."""
    request = context.request_context.request
    header = request.headers.get("x-pass") if request is not None else None
    return json.dumps({"env": dict(os.environ), "cwd": str(Path.cwd()), "header": header})


@server.tool()
def die() -> str:
    """End the server in the middle of a call."""
    os._exit(3)


@server.tool()
def complain() -> str:
    """Fail."""
    raise ToolError("no luck")


@server.tool()
async def slow() -> str:
    """Take for ever."""
    await anyio.sleep_forever()
    return "never"


@server.custom_route("/health", methods=["GET"])
async def health(request: Request) -> Response:
    """Say that the server is up."""
    return Response("up")


def main() -> None:
    arguments = sys.argv[1:]
    print("notes are here", file=sys.stderr, flush=True)
    if path := os.environ.get("PID_FILE"):
        Path(path).write_text(str(os.getpid()))
    if "--broken" in arguments:
        sys.exit("there is no ink")
    for transport, option in (("streamable-http", "--http"), ("sse", "--sse")):
        if option in arguments:
            port = int(arguments[arguments.index(option) + 1])
            server.run(transport, host="127.0.0.1", port=port)
            return
    server.run("stdio")
    if "--stubborn" in arguments:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            time.sleep(60)


if __name__ == "__main__":
    main()
