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
    FailureKind,
    Finding,
    Host,
    ManifestError,
    NetworkPolicy,
    Records,
    RunEvent,
    Runtime,
    RuntimeCapabilities,
    RuntimeFailed,
    TurnHost,
    TurnInput,
    TurnRequest,
)
from dragoman.runtimes import Feed, told
from dragoman_openai import agents, errors, trimming
from dragoman_openai.backends import open_backend
from dragoman_openai.backends.backend import Backend
from dragoman_openai.backends.records import OutsideRecords
from dragoman_openai.calls import watch
from dragoman_openai.compaction import Compactor
from dragoman_openai.config import OpenAIConfig
from dragoman_openai.graph import Graph
from dragoman_openai.history import TAG, Item, Limits, encode
from dragoman_openai.journal import Journal, JournalledContext
from dragoman_openai.last_event import Bounding
from dragoman_openai.models import Models, load_litellm, make_models, needs_litellm
from dragoman_openai.past import OutsidePast, Past, SessionPast
from dragoman_openai.run_hooks import TurnHooks
from dragoman_openai.server_past import MARKS, ServerPast, unfit
from dragoman_openai.session import NAMESPACE, RecordsSession
from dragoman_openai.session_table import SessionTable
from dragoman_openai.trimming import Trim, Trimming
from dragoman_openai.turn import TurnRun
from dragoman_openai.warmup import warm_up
from dragoman_openai.writes import Writes

AGENT_NAMESPACE = f"{NAMESPACE}.agent"
OUTSIDE = f"{NAMESPACE}.outside"
"""Under which name a history is kept outside."""
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
    _trimming: Trimming
    _backend: Backend | None = None
    _refusals: errors.Refusals = attrs.field(factory=errors.Refusals)
    _warm: anyio.Event = attrs.field(factory=anyio.Event)

    @property
    def capabilities(self) -> RuntimeCapabilities:
        """What a session allows; where the model service keeps the past, runs neither pause nor steer."""
        ours = self._config.continuation == "session"
        return RuntimeCapabilities(
            stream=True,
            journal=True,
            models=True,
            approve=ours,
            resume=ours,
            steer=ours,
            fenced=self._config.fenced,
            history=(NAMESPACE, AGENT_NAMESPACE, MARKS) if self._config.fenced else (),
        )

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
        item: Item = {"role": "user", "content": told(message)}
        if self._backend is not None and self._backend.opaque:
            item[TAG] = message.event_id
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
        watch(host, feed, self._host.clock)
        try:
            graph = await self._agents.of(request.profile)
            if needs_litellm(self._config, request.model):
                await to_thread.run_sync(load_litellm, self._config)
            if found := unfit(graph, self._config.continuation):
                raise RuntimeFailed(FailureKind.INTERNAL, found)
        except Exception as error:  # noqa: BLE001 - the operator's function may raise anything
            feed.close(errors.classify(error))
            return
        past = self._past(request, host, writes)
        trim = Trim(
            trimming=self._trimming,
            session_id=request.session_id,
            profile=request.profile,
            clock=self._host.clock,
            log=self._host.log,
        )
        run = TurnRun(
            config=self._config,
            models=self._models,
            graph=graph,
            context=self._context(request, host, past.session),
            past=past,
            hooks=TurnHooks(host.records(AGENT_NAMESPACE), writes, trim),
            trim=trim,
            refusals=self._refusals,
            writes=writes,
            feed=feed,
            clock=self._host.clock,
            log=self._host.log,
            request=request,
            steers=self.capabilities.steer,
        )
        try:
            await run.run()
        finally:
            await past.close()

    def _past(self, request: TurnRequest, host: TurnHost, writes: Writes) -> Past:
        """Return this turn's way to its history."""
        config, log = self._config, self._host.log
        inbox: Records = host.records(NAMESPACE)
        limits = Limits(config.history_items, config.history_tokens)
        if config.continuation != "session":
            return ServerPast(
                session=RecordsSession(request.session_id, inbox, limits, writes),
                way=config.continuation,
                client=self._models.main,
                records=inbox,
                marks=host.records(MARKS),
                limits=limits,
                request=request,
                writes=writes,
                log=log,
            )
        compact = config.session.compact if config.session is not None else None
        most = limits.items * 3 // 4
        compactor = (
            Compactor(compact, self._models.main, most, log) if compact is not None else None
        )
        if self._backend is None:
            session = RecordsSession(request.session_id, inbox, limits, writes)
            return SessionPast(session, log, compactor)
        outside = OutsideRecords(
            self._backend, host, host.records(OUTSIDE), request.session_id, self._host.clock
        )
        session = RecordsSession(request.session_id, outside, limits, writes)
        return OutsidePast(
            session,
            log,
            compactor,
            outside=outside,
            inbox=inbox,
            request=request,
            writes=writes,
            window=limits.items,
        )

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


def _load(
    config: OpenAIConfig, table: str, network: NetworkPolicy
) -> tuple[agents.Agents, Trimming]:
    """Load what a table refers to; raise every problem of it at once. Runs operator code."""
    problems: list[str] = []
    made = trimmed = None
    try:
        made = agents.load(config, table, network)
    except ManifestError as error:
        problems += error.problems
    try:
        trimmed = trimming.load(config, table)
    except ManifestError as error:
        problems += error.problems
    if made is None or trimmed is None:
        raise ManifestError(problems)
    return made, trimmed


@asynccontextmanager
async def open_runtime(config: OpenAIConfig, host: Host) -> AsyncIterator[Runtime]:
    """Make the agents and the clients; connect to MCP servers only; close all at the end."""
    made, trimmed = await to_thread.run_sync(_load, config, host.name, host.network)
    if made.shared is not None and (found := unfit(made.shared, config.continuation)):
        raise ManifestError([f"{host.name}.continuation: {found}"])
    bounding = (Bounding(host.clock, host.log),)
    models = await to_thread.run_sync(make_models, config, host.network, bounding)
    table = config.session or SessionTable()
    try:
        async with (
            open_backend(table, host, models.main) as backend,
            anyio.create_task_group() as tasks,
        ):
            runtime = OpenAIRuntime(config, host, made, models, trimmed, backend)
            runtime.begin(tasks)
            yield runtime
            tasks.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True), host.clock.move_on_after(_CLOSING):
            await models.aclose()
