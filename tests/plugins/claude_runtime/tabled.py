"""A Claude runtime by any table, and what its model server was asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from dragoman import Secret
from dragoman_claude import ClaudeConfig
from peers.claude_server import ClaudeServer
from plugins.claude_runtime import contract_tools
from plugins.claude_runtime.harness import KEY, ClaudeHarness

ONE_TRY: dict[str, Any] = {"CLAUDE_CODE_MAX_RETRIES": "0"}


@attrs.define(eq=False)
class Tabled(ClaudeHarness):
    """An agent as ``table`` says; it gives instructions, and a key, where that does not."""

    table: Mapping[str, Any] = attrs.field(factory=dict)

    def config(self, **_: bool) -> ClaudeConfig:
        table = {"api_key": Secret("a test", KEY), "base_url": self.server.base_url, **self.table}
        if not {"instructions", "instructions_file", "preset"} & table.keys():
            table["instructions"] = "Help."
        table["environment"] = {**ONE_TRY, **table.get("environment", {})}
        return ClaudeConfig(**table)

    @property
    def asked_last(self) -> dict[str, Any]:
        """The newest request as the model server got it."""
        return self.page.bodies[-1]

    @property
    def results(self) -> list[str]:
        """What tools have returned, as the newest request tells it, in the order of the calls."""
        found = {}
        for message in self.asked_last["messages"]:
            for block in message["content"]:
                if isinstance(block, dict) and block["type"] == "tool_result":
                    found[block["tool_use_id"]] = text_of(block.get("content", ""))
        return [text for _, text in sorted(found.items())]


def tabled(server: ClaudeServer, **table: Any) -> Tabled:
    """Return one with a page of its own."""
    page = server.begin()
    contract_tools.PAGES.append(page)
    return Tabled(server, page, table=table)


def tool_names(body: Mapping[str, Any]) -> list[str]:
    """Return the names of the tools that a request offers."""
    return sorted(tool["name"] for tool in body.get("tools", ()))


def system_text(body: Mapping[str, Any]) -> str:
    """Return the system prompt of a request."""
    found = body.get("system", "")
    return found if isinstance(found, str) else "\n".join(block["text"] for block in found)


def text_of(content: Any) -> str:
    """Return the text of what a tool returned."""
    if isinstance(content, str):
        return content
    return "".join(block.get("text", "") for block in content)
