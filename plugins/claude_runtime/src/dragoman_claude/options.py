"""The options of one program: the runtime's table, and what belongs to one conversation."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import attrs
from claude_agent_sdk import AgentDefinition, ClaudeAgentOptions, HookMatcher

from dragoman import Secret
from dragoman.runtimes import McpTable
from dragoman_claude.config import OWN, ClaudeConfig, SelfWaking
from dragoman_claude.home import Home
from dragoman_claude.own_hooks import Hooks, together
from dragoman_claude.sandbox import sandbox_settings

_LINE: Final = 32 << 20
"""Bytes that one message of the program may have."""
_OUTPUT: Final = "64000"
"""Tokens that a tool's result may have before the program puts it into a file."""
_TO_CONNECT: Final = ("MCP_TIMEOUT", "MCP_CONNECT_TIMEOUT_MS")
_ELSEWHERE: Final = 'cd "$0" && exec "$@"'
"""The program starts MCP servers in the conversation's folder only."""
_SETTINGS: Final = {"cleanupPeriodDays": 3650, "includeGitInstructions": False}
"""Transcripts are kept for so many days: dragoman deletes them itself. What git says of the folder
is not told: it may speak of the files of all others."""
_APART: Final = {"crossSessionInbound": "refuse"}
"""Programs of one user can send each other messages, each of which begins a turn."""


@attrs.frozen(kw_only=True)
class Recipe:
    """What all programs of a runtime have in common, read and checked once."""

    config: ClaudeConfig
    instructions: str
    schema: Mapping[str, Any] | None = None
    """The JSON schema of answers, where they have one."""
    hooks: Hooks = attrs.field(factory=dict)
    """The operator's own."""
    hidden: tuple[Path, ...] = ()
    """What commands in a sandbox cannot read."""

    def options(
        self,
        *,
        home: Home,
        session_id: str,
        model: str,
        resumed: bool,
        behind: str | None,
        mirror: Any,
        server: Any,
        hooks: Mapping[str, list[HookMatcher]],
        stderr: Callable[[str], None],
        allowance: float | None,
    ) -> ClaudeAgentOptions:
        """Return the options of a program; ``session_id`` is a UUID in lower case.

        ``model`` is what people chose, empty for the table's own.

        ``behind`` is the line of the transcript after which it goes on, if that is not the last.
        ``server`` serves the tools of this process, ``allowance`` is in US dollars and counts what
        the session has cost before.
        """
        config = self.config
        return ClaudeAgentOptions(
            resume=session_id if resumed else None,
            session_id=None if resumed else session_id,
            resume_session_at=behind,
            cwd=str(home.workspace),
            cli_path=str(home.cli),
            env=home.environment(self._environment()),
            system_prompt={"type": "preset", "preset": "claude_code", "snapshot": False},
            extra_args=self._files(home),
            model=model or config.model,
            fallback_model=None if model == config.fallback_model else config.fallback_model,
            effort=config.effort,
            thinking=_thinking(config.thinking),
            tools=list(config.tools),
            disallowed_tools=[*SelfWaking, *config.deny, *_denied(config.mcp)],
            mcp_servers={OWN: {"type": "sdk", "name": OWN, "instance": server}},
            strict_mcp_config=True,
            agents=self._agents() or None,
            setting_sources=list(config.setting_sources),
            settings=str(home.keep("settings.json", json.dumps(self._settings(home)))),
            permission_mode=config.permission_mode,
            add_dirs=list(config.add_dirs),
            hooks=together(hooks, self.hooks),  # type: ignore[arg-type]  # by any event
            max_turns=config.max_turns,
            max_budget_usd=allowance,
            output_format=None
            if self.schema is None
            else {"type": "json_schema", "schema": dict(self.schema)},
            include_partial_messages=True,
            verbatim_prompts=True,
            max_buffer_size=_LINE,
            session_store=mirror,
            session_store_flush="eager",
            stderr=stderr,
            client_app="",
        )

    def _agents(self) -> dict[str, AgentDefinition]:
        return {
            name: AgentDefinition(
                description=table.description,
                prompt=table.instructions,
                tools=None if table.tools is None else list(table.tools),
                model=table.model,
            )
            for name, table in self.config.agents.items()
        }

    def _environment(self) -> dict[str, str]:
        config = self.config
        wanted = {"ENABLE_TOOL_SEARCH": "false", "MAX_MCP_OUTPUT_TOKENS": _OUTPUT}
        wanted["TZ"] = config.time_zone
        if config.mcp:
            longest = max(table.connect_timeout for table in config.mcp.values())
            wanted |= dict.fromkeys(_TO_CONNECT, str(_ms(longest)))
        if config.base_url is not None:
            wanted["ANTHROPIC_BASE_URL"] = config.base_url
        wanted["ANTHROPIC_API_KEY"] = config.api_key.reveal() if config.api_key else "none"
        return wanted | {name: _plain(value) for name, value in config.environment.items()}

    def _files(self, home: Home) -> dict[str, str | None]:
        """Write what may be long or secret into files of the home; return the options that say so.

        Arguments have a limit, and everybody on the machine sees them. A whole prompt replaces the
        preset's. It counts as it is now, also in resumed sessions.
        """
        kind = "append-system-prompt" if self.config.preset else "system-prompt"
        files = {f"{kind}-file": home.keep("instructions", self.instructions)}
        if self.config.mcp:
            servers = {name: _served(table) for name, table in self.config.mcp.items()}
            files["mcp-config"] = home.keep("mcp.json", json.dumps({"mcpServers": servers}))
        return {option: str(path) for option, path in files.items()}

    def _settings(self, home: Home) -> dict[str, Any]:
        made = {**_SETTINGS, **self.config.settings, **_APART}
        if self.config.sandbox:
            made["sandbox"] = sandbox_settings(home, self.hidden)
        return made


def _thinking(wanted: str | None) -> Any:
    kinds = {None: None, "adaptive": {"type": "adaptive"}, "off": {"type": "disabled"}}
    return kinds[wanted]


def _plain(value: str | Secret) -> str:
    return value.reveal() if isinstance(value, Secret) else value


def _denied(servers: Mapping[str, McpTable]) -> list[str]:
    """Return the names of tools that are not even offered."""
    return [f"mcp__{name}__{tool}" for name, table in servers.items() for tool in table.deny]


def _served(table: McpTable) -> Any:
    """Return an MCP server as the program takes it."""
    more: dict[str, Any] = {"timeout": _ms(table.call_timeout)}
    if table.url is not None:
        headers = {name: _plain(value) for name, value in table.headers.items()}
        return {"type": table.transport, "url": table.url, "headers": headers, **more}
    command = [str(table.command), *table.args]
    if table.cwd is not None:
        command = ["/bin/sh", "-c", _ELSEWHERE, str(table.cwd), *command]
    more["env"] = {name: _plain(value) for name, value in table.env.items()}
    return {"type": "stdio", "command": command[0], "args": command[1:], **more}


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
