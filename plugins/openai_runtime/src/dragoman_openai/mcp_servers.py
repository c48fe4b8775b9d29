"""Making MCP servers from their tables. Nothing is started here."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx2
from agents.mcp import MCPServer, MCPServerSse, MCPServerStreamableHttp, create_static_tool_filter
from mcp.client.stdio import get_default_environment

from dragoman import NetworkPolicy, Secret
from dragoman.runtimes import McpTable, ReferenceProblem, Values
from dragoman_openai.mcp_child import ChildServer
from dragoman_openai.mcp_served import ServedMcp


def make(name: str, table: McpTable, network: NetworkPolicy) -> ServedMcp:
    """Return a server by its table; raise `ReferenceProblem` where it could never start."""
    server = _of_command(name, table) if table.command else _of_url(name, table, network)
    approved = table.approval if isinstance(table.approval, tuple) else ()
    return ServedMcp(
        server,
        read_only=table.read_only,
        named={*table.read_only, *table.allow, *table.deny, *approved},
        timeout=table.connect_timeout,
    )


def _of_command(name: str, table: McpTable) -> MCPServer:
    assert table.command is not None
    env = _revealed(table.env)
    folder = table.cwd
    if folder is not None and not folder.is_dir():
        msg = "cwd is no folder; make it, or remove cwd"
        raise ReferenceProblem(msg)
    path = {**get_default_environment(), **env}.get("PATH")
    command = shutil.which(table.command, path=path)
    if command is None and "/" in table.command:
        command = shutil.which(str((folder or Path()) / table.command))
    if command is None:
        msg = "command names no program that is on the PATH; install it, or write its whole path"
        raise ReferenceProblem(msg)
    return ChildServer(
        {"command": command, "args": list(table.args), "env": env, **_in(folder)},
        **_common(name, table),
    )


def _in(folder: Path | None) -> Any:
    return {} if folder is None else {"cwd": folder}


def _of_url(name: str, table: McpTable, network: NetworkPolicy) -> MCPServer:
    assert table.url is not None
    params: Any = {
        "url": table.url,
        "headers": _revealed(table.headers),
        "timeout": table.connect_timeout,
        "sse_read_timeout": table.call_timeout,
        "httpx_client_factory": _Clients(network),
    }
    if table.transport == "sse":
        return MCPServerSse(params, **_common(name, table))
    server = MCPServerStreamableHttp(params, **_common(name, table))
    # Otherwise a slow call of one conversation would hold up those of all others.
    server._serialize_session_requests = False  # noqa: SLF001 - the SDK has no public way to it
    return server


class _Clients:
    """Makes the HTTP clients of a server, by the network's policy."""

    def __init__(self, network: NetworkPolicy) -> None:
        self._network = network
        self._context = httpx2.create_ssl_context()
        if network.ca_file is not None:
            self._context.load_verify_locations(network.ca_file)

    def __call__(
        self,
        headers: dict[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
    ) -> httpx2.AsyncClient:
        """Return a client; it follows no redirect, which could carry the headers elsewhere."""
        return httpx2.AsyncClient(
            headers=headers,
            timeout=timeout or httpx2.Timeout(self._network.connect_timeout),
            auth=auth,
            verify=self._context,
            proxy=self._network.proxy,
        )


def _common(name: str, table: McpTable) -> dict[str, Any]:
    approval: Any = table.approval
    if isinstance(approval, tuple):
        approval = {"always": {"tool_names": list(approval)}}
    return {
        "name": name,
        "cache_tools_list": True,
        "client_session_timeout_seconds": table.call_timeout,
        "tool_filter": create_static_tool_filter(
            list(table.allow) or None, list(table.deny) or None
        ),
        "require_approval": approval,
        "max_list_pages": 50,
    }


def _revealed(values: Values) -> dict[str, str]:
    return {
        name: each.reveal() if isinstance(each, Secret) else each for name, each in values.items()
    }


def make_all(
    table: str, tables: Mapping[str, McpTable], network: NetworkPolicy, found: list[str]
) -> dict[str, ServedMcp | None]:
    """Return the servers by name; problems are added to ``found``, each with its place."""
    made: dict[str, ServedMcp | None] = dict.fromkeys(tables)
    for name, each in tables.items():
        try:
            made[name] = make(name, each, network)
        except ReferenceProblem as problem:
            found.append(f"{table}.mcp.{name}: {problem}")
    return made
