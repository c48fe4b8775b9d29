"""An agent of an operator, with MCP servers of its own."""

import os
import sys
from pathlib import Path

from agents import Agent
from agents.mcp import MCPServerStdio

SERVER = str(Path(__file__).parent / "mcp_notes.py")


def make():
    folder = os.environ["MCP_FOLDER"]

    def server():
        env = {"NOTES": f"{folder}/notes"}
        return MCPServerStdio(
            {"command": sys.executable, "args": [SERVER], "env": env},
            name="notes",
            client_session_timeout_seconds=30,
        )

    names = {"include_server_in_tool_names": True}
    writer = Agent(name="writer", mcp_servers=[server()], mcp_config=names)
    ask = writer.as_tool("ask_writer", "Ask the writer.")
    return Agent(name="first", mcp_servers=[server()], mcp_config=names, tools=[ask])
