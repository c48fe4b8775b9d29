"""The runtime: one client for the application's life, one run per turn."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from zoneinfo import ZoneInfo

import anyio
import attrs
from anyio import to_thread
from anyio.abc import TaskGroup

from dragoman import (
    EncodedInput,
    Finding,
    Host,
    RunEvent,
    Runtime,
    RuntimeCapabilities,
    TurnHost,
    TurnInput,
    TurnRequest,
)
from dragoman_openai import agents, errors
from dragoman_openai.config import OpenAIConfig
from dragoman_openai.feed import Feed
from dragoman_openai.graph import Graph
from dragoman_openai.history import Limits, encode, well_formed
from dragoman_openai.journal import Journal, JournalledContext
from dragoman_openai.models import Models, make_models
from dragoman_openai.session import NAMESPACE, RecordsSession
from dragoman_openai.turn import TurnHooks, TurnRun
from dragoman_openai.warmup import warm_up
from dragoman_openai.writes import Writes

AGENT_NAMESPACE = f"{NAMESPACE}.agent"
LATE = "[This came too late to be part of the previous message, to which it belongs.]"
"""Told to the model before the text of such a message."""
_THREADED = (
    "tools that are plain functions run to their end when a turn is stopped, and have no time "
    "limit; make them async where that matters"
)
_CLOSING = 5.0
"""Seconds that the client's connections get to close."""


@attrs.define(eq=False)
class OpenAIRuntime:
    """A `dragoman.Runtime` over the OpenAI Agents SDK."""

    _config: OpenAIConfig
    _host: Host
    _agents: agents.Agents
    _models: Models
    _warm: anyio.Event = attrs.field(factory=anyio.Event)

    @property
    def capabilities(self) -> RuntimeCapabilities:
        """Answers stream, tools are journalled; runs neither pause for a decision nor resume."""
        return RuntimeCapabilities(stream=True, journal=True)

    async def warm_up(self) -> None:
        """Let the SDK build in a worker thread what it needs; turns wait for the end of it."""
        try:
            await to_thread.run_sync(warm_up, self._config.api)
        except Exception as error:  # noqa: BLE001 - it only saves time: turns work without it
            self._host.log.warning("the first turn is slower (%s)", type(error).__name__)
        finally:
            self._warm.set()

    async def probe(self) -> Sequence[Finding]:
        """Say which MCP servers answer, and which tools no stop can end."""
        shared = self._agents.shared
        threaded = [] if shared is None else sorted(shared.threaded)
        found = [Finding("warning", f"{_THREADED}: {', '.join(threaded)}")] if threaded else []
        return [*found, *await self._agents.servers.findings()]

    def encode_input(self, message: TurnInput) -> EncodedInput:
        """Return the message as the item of a person in the history."""
        text = f"{LATE}\n{message.words}" if message.late else message.words
        item = {"role": "user", "content": well_formed(text)}
        return EncodedInput(NAMESPACE, encode(item))

    @asynccontextmanager
    async def turn(
        self, request: TurnRequest, host: TurnHost
    ) -> AsyncIterator[AsyncIterator[RunEvent]]:
        """Run one turn; leaving early cancels it and returns when it is down."""
        feed = Feed()
        failure: Exception | None = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._run, request, host, feed, Writes(tasks, self._host.clock))
            try:
                yield feed
            except Exception as error:  # noqa: BLE001 - raised again below, outside the group
                failure = error
            tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure

    async def _run(self, request: TurnRequest, host: TurnHost, feed: Feed, writes: Writes) -> None:
        """Make the run's parts and run it. Failing to make them is the end of the turn, too."""
        await self._warm.wait()
        try:
            graph = await self._agents.of(request.profile)
        except Exception as error:  # noqa: BLE001 - the operator's function may raise anything
            feed.close(errors.classify(error))
            return
        session = RecordsSession(
            request.session_id,
            host.records(NAMESPACE),
            Limits(self._config.history_items, self._config.history_tokens),
            writes,
        )
        run = TurnRun(
            config=self._config,
            models=self._models,
            graph=graph,
            context=self._context(request, host, session),
            session=session,
            hooks=TurnHooks(host.records(AGENT_NAMESPACE), writes),
            writes=writes,
            feed=feed,
            clock=self._host.clock,
            log=self._host.log,
        )
        await run.run()

    def _context(
        self, request: TurnRequest, host: TurnHost, session: RecordsSession
    ) -> JournalledContext:
        return JournalledContext(
            journal=Journal(host),
            session=session,
            turn_id=request.turn_id,
            session_id=request.session_id,
            conversation_id=request.conversation_id,
            profile=request.profile,
            address=request.address,
            person=request.inputs[-1].sender,
            platform=request.address.platform,
            time_zone=self._config.time_zone,
            now=self._host.clock.now().astimezone(ZoneInfo(self._config.time_zone)),
            inputs=request.inputs,
            memory=host.memory,
            attach=host.attach,
            fetch=host.fetch,
            read=host.read,
            suggest=host.suggest,
        )

    def begin(self, tasks: TaskGroup) -> None:
        """Start what lives as long as the runtime; agents that are made later bring theirs."""

        def ready(made: Graph) -> None:
            self._agents.servers.begin(tasks, self._host.clock, self._host.log)
            if made.threaded:
                self._host.log.warning("%s: %s", _THREADED, ", ".join(sorted(made.threaded)))

        self._agents.ready = ready
        if self._agents.shared is not None:
            ready(self._agents.shared)
        tasks.start_soon(self.warm_up)


@asynccontextmanager
async def open_runtime(config: OpenAIConfig, host: Host) -> AsyncIterator[Runtime]:
    """Make the agents and the clients; connect to MCP servers only; close all at the end."""
    made = await to_thread.run_sync(agents.load, config, host.name, host.network)
    models = await to_thread.run_sync(make_models, config, host.network)
    runtime = OpenAIRuntime(config, host, made, models)
    try:
        async with anyio.create_task_group() as tasks:
            runtime.begin(tasks)
            yield runtime
            tasks.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True), host.clock.move_on_after(_CLOSING):
            await models.aclose()
