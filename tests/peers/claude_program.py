"""The bundled program of the Claude Agent SDK, run through that SDK in directories of its own."""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs

QUIET = {
    "ANTHROPIC_API_KEY": "sk-ant-dummy",
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_MAX_RETRIES": "0",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_TELEMETRY": "1",
}
"""It speaks to its model only, and asks once."""
INHERITED = ("ANTHROPIC", "CLAUDE")
"""How the names begin of what it would take from the environment of the tests."""


@attrs.define(eq=False)
class ClaudeProgram:
    """Programs below ``folder``, whose model is at ``base_url``."""

    folder: Path
    base_url: str
    environment: dict[str, str] = attrs.field(factory=dict)

    def options(self, **changes: Any) -> Any:
        """Return options without any tool, setting or memory, unless ``changes`` says so."""
        from claude_agent_sdk import ClaudeAgentOptions

        places = {"HOME": "home", "CLAUDE_CONFIG_DIR": "config", "CLAUDE_CODE_TMPDIR": "temp"}
        paths = {name: self.folder / place for name, place in places.items()}
        for path in (*paths.values(), self.folder / "work"):
            path.mkdir(parents=True, exist_ok=True)
        base: dict[str, Any] = {
            "cwd": str(self.folder / "work"),
            "model": "claude-sonnet-5",
            "env": {
                **dict.fromkeys((one for one in os.environ if one.startswith(INHERITED)), ""),
                **QUIET,
                **{name: str(path) for name, path in paths.items()},
                "ANTHROPIC_BASE_URL": self.base_url,
                **self.environment,
            },
            "include_partial_messages": True,
            "setting_sources": [],
            "strict_mcp_config": True,
            "tools": [],
            "verbatim_prompts": True,
        }
        return ClaudeAgentOptions(**{**base, **changes})

    @asynccontextmanager
    async def connected(self, **changes: Any) -> AsyncIterator[Any]:
        """Run a program; yields its client."""
        from claude_agent_sdk import ClaudeSDKClient

        client = ClaudeSDKClient(self.options(**changes))
        await client.connect()
        try:
            yield client
        finally:
            await client.disconnect()


async def say(client: Any, *texts: str) -> list[Any]:
    """Say something, and return all messages up to the result."""
    await tell(client, *texts)
    return await heard(client)


async def tell(client: Any, *texts: str, identity: str | None = None) -> None:
    """Say something, in one message, which has an uuid of its own unless one is given."""
    content = [{"type": "text", "text": text} for text in texts]

    async def prompts() -> AsyncIterator[dict[str, Any]]:
        yield {
            "type": "user",
            "message": {"role": "user", "content": content},
            "parent_tool_use_id": None,
            "uuid": identity or str(uuid.uuid4()),
        }

    await client.query(prompts())


async def heard(client: Any) -> list[Any]:
    """Return all messages up to the next result."""
    return [message async for message in client.receive_response()]


def deltas(messages: list[Any]) -> str:
    """Return the text that was streamed."""
    events = (one.event for one in messages if type(one).__name__ == "StreamEvent")
    found = (event["delta"] for event in events if event["type"] == "content_block_delta")
    return "".join(delta.get("text", "") for delta in found)


def texts(messages: list[Any]) -> list[str]:
    """Return the whole texts of an answer."""
    said = (one for one in messages if type(one).__name__ == "AssistantMessage")
    return [block.text for one in said for block in one.content if hasattr(block, "text")]
