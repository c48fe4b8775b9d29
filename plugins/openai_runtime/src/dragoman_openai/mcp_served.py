"""MCP servers for the life of a runtime: one task owns each, and brings it back when it is gone.

Agents are given a stand-in (`ServedMcp`) for each server. The task connects it, looks after the
connection, and cleans up; nobody else does: what opens a connection has to close it in the same
task. Nothing waits for a server but a turn whose agent has it, and that only for the first attempt.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Collection
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, Final

import anyio
import attrs
from agents import AgentBase, RunContextWrapper, UserError
from agents.mcp import MCPServer
from anyio.abc import TaskGroup
from mcp.types import CallToolResult, Tool

from dragoman import Clock, Finding

PROBE: Final = 60.0
"""Seconds after which a server is asked again what tools it has; so one that is gone is noticed."""
_FIRST_WAIT: Final = 1.0
_LONGEST_WAIT: Final = 60.0
_CLOSING: Final = 10.0
"""Seconds that a connection gets to close; a child process is killed well before."""


FAILED: Final[ContextVar[list[str] | None]] = ContextVar("FAILED", default=None)
"""Where a call notes that the server itself called its result an error."""


class NotReachedError(UserError):
    """Raised where a call was not begun, because the server is gone."""


class ServedMcp(MCPServer):
    """A server as agents have it. Its tools stay known while it is gone, and refuse to run."""

    def __init__(
        self,
        server: MCPServer,
        *,
        read_only: Collection[str] = (),
        named: Collection[str] = (),
        timeout: float = 10.0,
    ) -> None:
        super().__init__(
            use_structured_content=server.use_structured_content,
            tool_meta_resolver=server.tool_meta_resolver,
            custom_data_extractor=server.custom_data_extractor,
            tool_input_guardrails=server.tool_input_guardrails,
            tool_output_guardrails=server.tool_output_guardrails,
        )
        self._needs_approval_policy = server._needs_approval_policy  # noqa: SLF001 - not public
        self._failure_error_function = server._failure_error_function  # noqa: SLF001 - as above
        self.read_only = frozenset(read_only)
        self._named = frozenset(named)
        self._server = server
        self._timeout = timeout
        self._known: list[Tool] | None = None
        self._decided = anyio.Event()
        self._wake = anyio.Event()
        self._up = False
        self._reason = ""

    @property
    def name(self) -> str:
        """The server's name."""
        return self._server.name

    @property
    def trouble(self) -> str | None:
        """Why its tools cannot be used now, or ``None``."""
        return None if self._up else f"the MCP server {self.name!r} cannot be reached at the moment"

    @property
    def note(self) -> str | None:
        """What a model is told of a server whose tools it cannot even be shown."""
        if self._up or self._known is not None:
            return None
        return (
            f"[Your tools of {self.name!r} are missing: {self.trouble}. Say so if you need them.]"
        )

    @property
    def finding(self) -> Finding:
        """How it is, for an operator."""
        if self._up:
            return Finding("ok", f"MCP server {self.name} answers")
        text = f"MCP server {self.name}: {self._reason}"
        return Finding("problem", text, "start it, or correct its table; agents miss its tools")

    async def decided(self) -> None:
        """Wait until the first attempt to connect has come to something."""
        await self._decided.wait()

    async def connect(self) -> None:
        """Do nothing: its task connects."""

    async def cleanup(self) -> None:
        """Do nothing: its task cleans up."""

    async def list_tools(
        self,
        run_context: RunContextWrapper[Any] | None = None,
        agent: AgentBase[Any] | None = None,
    ) -> list[Tool]:
        """Return the server's tools, those that were last known while it is gone."""
        await self.decided()
        if self._up:
            try:
                self._known = await self._server.list_tools(run_context, agent)
            except Exception:  # noqa: BLE001 - whatever it is, the task finds out and logs it
                self._wake.set()
        return self._known or []

    async def call_tool(
        self, tool_name: str, arguments: dict[str, Any] | None, meta: dict[str, Any] | None = None
    ) -> CallToolResult:
        """Call a tool once, never again by itself: nobody knows what a lost call has done."""
        if self.trouble is not None:
            raise NotReachedError(self.trouble)
        try:
            result = await self._server.call_tool(tool_name, arguments, meta)
        except Exception:
            self._wake.set()
            raise
        failed = FAILED.get()
        if failed is not None and result.is_error:
            failed.append(tool_name)
        return result

    async def list_prompts(self) -> Any:
        """Return the server's prompts."""
        return await self._server.list_prompts()

    async def get_prompt(self, name: str, arguments: dict[str, Any] | None = None) -> Any:
        """Return one of the server's prompts."""
        return await self._server.get_prompt(name, arguments)

    async def own(self, clock: Clock, log: logging.Logger) -> None:
        """Connect, and connect again with growing pauses, until cancelled."""
        await clock.sleep(0)  # who opens only to look closes at once: then nothing is started
        wait, told = _FIRST_WAIT, ""
        while True:
            begun = clock.boot()
            reason = await self._live(clock, log)
            if clock.boot() - begun > _LONGEST_WAIT:
                wait, told = _FIRST_WAIT, ""
            level = logging.DEBUG if reason == told else logging.WARNING
            log.log(level, "MCP server %s: %s; next attempt in %g s", self.name, reason, wait)
            told = reason
            await clock.sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT)

    async def _live(self, clock: Clock, log: logging.Logger) -> str:
        """Live through one connection, and return why it ended."""
        try:
            with clock.move_on_after(self._timeout) as scope:
                await self._server.connect()  # type: ignore[no-untyped-call]
                await self._probe(log)
            while not scope.cancelled_caught:
                await self._look_after(clock)
                await self._probe(log)
            self._reason = f"not connected within {self._timeout:g} s"
        except asyncio.CancelledError:
            if _is_cancelled():
                raise
            self._reason = "the connection was cancelled from inside"
        except Exception as error:  # noqa: BLE001 - a server may fail in any way
            words = "" if self._up else getattr(self._server, "last_words", "")
            self._reason = _reason(error, words)
        finally:
            self._up = False
            self._decided.set()
            with (
                anyio.CancelScope(shield=True),
                clock.move_on_after(_CLOSING),
                suppress(Exception),  # it is gone one way or another
            ):
                await self._server.cleanup()  # type: ignore[no-untyped-call]
        return self._reason

    async def _look_after(self, clock: Clock) -> None:
        """Wait until it is time to ask the server again, or until a call has failed."""
        with clock.move_on_after(PROBE):
            await self._wake.wait()
        self._wake = anyio.Event()

    async def _probe(self, log: logging.Logger) -> None:
        """Ask the server for its tools."""
        session = getattr(self._server, "session", None)
        if session is not None:  # there is none in servers of the operator's own kind
            found = await session.list_tools()
            self._server.invalidate_tools_cache()  # type: ignore[attr-defined]
            missing = sorted(self._named - {tool.name for tool in found.tools})
            if missing and not self._up and found.next_cursor is None:
                log.warning("MCP server %s has no tool %s", self.name, ", ".join(missing))
        if not self._up:
            log.info("MCP server %s: connected", self.name)
        self._up = True
        self._decided.set()


@attrs.define(eq=False)
class McpServers:
    """All servers of a runtime. Agents may be made in worker threads; tasks begin on the loop."""

    _served: dict[int, ServedMcp] = attrs.field(factory=dict)
    _new: list[ServedMcp] = attrs.field(factory=list)

    def of(self, server: MCPServer) -> ServedMcp:
        """Return the stand-in for a server, always the same one."""
        served = server if isinstance(server, ServedMcp) else self._served.get(id(server))
        if served is None:
            served = ServedMcp(server)
        if id(server) not in self._served:
            self._served[id(server)] = served
            self._new.append(served)
        return served

    async def findings(self) -> list[Finding]:
        """Return how all of them are, once each has been tried."""
        served = list(dict.fromkeys(self._served.values()))
        for each in served:
            await each.decided()
        return [each.finding for each in served]

    def begin(self, tasks: TaskGroup, clock: Clock, log: logging.Logger) -> None:
        """Start the tasks of servers that have none yet."""
        while self._new:
            tasks.start_soon(self._new.pop(0).own, clock, log)


def asks(server: MCPServer) -> bool:
    """Whether a person has to be asked before some tool of the server runs."""
    rule = server._needs_approval_policy  # noqa: SLF001 - the SDK has no public way to it
    return any(rule.values()) if isinstance(rule, dict) else rule is not False


def _is_cancelled() -> bool:
    """Whether somebody ends this task, rather than a server something of its own."""
    task = asyncio.current_task()
    return anyio.current_effective_deadline() == -math.inf or bool(task and task.cancelling())


def _reason(error: BaseException, words: str) -> str:
    """Return why a connection failed, in few words and without addresses or texts of others."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    if isinstance(error, UserError):  # the SDK's own words, without credentials
        words = str(error)
    return f"{type(error).__name__}: {words}" if words else type(error).__name__
