"""The runtime: one client for the application's life, one run per turn."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import attrs
from anyio import to_thread
from openai import AsyncOpenAI

from dragoman import (
    EncodedInput,
    FailureKind,
    Host,
    ManifestError,
    Records,
    RunEvent,
    Runtime,
    RuntimeCapabilities,
    RuntimeFailed,
    TurnHost,
    TurnInput,
    TurnRequest,
)
from dragoman_openai import agents, errors
from dragoman_openai.backends import open_backend
from dragoman_openai.backends.backend import Backend
from dragoman_openai.backends.records import OutsideRecords
from dragoman_openai.client import make_client
from dragoman_openai.compaction import Compactor
from dragoman_openai.config import OpenAIConfig
from dragoman_openai.feed import Feed
from dragoman_openai.history import TAG, Item, Limits, encode, well_formed
from dragoman_openai.journal import Journal, JournalledContext
from dragoman_openai.past import OutsidePast, Past, SessionPast
from dragoman_openai.server_past import MARKS, NO_GUARDRAILS, ServerPast
from dragoman_openai.session import NAMESPACE, RecordsSession
from dragoman_openai.session_table import SessionTable
from dragoman_openai.turn import TurnHooks, TurnRun
from dragoman_openai.warmup import warm_up
from dragoman_openai.writes import Writes

AGENT_NAMESPACE = f"{NAMESPACE}.agent"
OUTSIDE = f"{NAMESPACE}.outside"
"""Under which name a history is kept outside."""
LATE = "[This came too late to be part of the previous message, to which it belongs.]"
"""Told to the model before the text of such a message."""
_CLOSING = 5.0
"""Seconds that the client's connections get to close."""


@attrs.define(eq=False)
class OpenAIRuntime:
    """A `dragoman.Runtime` over the OpenAI Agents SDK."""

    _config: OpenAIConfig
    _host: Host
    _agents: agents.Agents
    _client: AsyncOpenAI
    _backend: Backend | None = None
    _warm: anyio.Event = attrs.field(factory=anyio.Event)

    @property
    def capabilities(self) -> RuntimeCapabilities:
        """Answers stream, tools are journalled; runs neither pause for a decision nor resume."""
        return RuntimeCapabilities(stream=True, journal=True, fenced=self._config.fenced)

    async def warm_up(self) -> None:
        """Let the SDK build in a worker thread what it needs; turns wait for the end of it."""
        try:
            await to_thread.run_sync(warm_up, self._config.api)
        except Exception as error:  # noqa: BLE001 - it only saves time: turns work without it
            self._host.log.warning("the first turn is slower (%s)", type(error).__name__)
        finally:
            self._warm.set()

    def encode_input(self, message: TurnInput) -> EncodedInput:
        """Return the message as the item of a person in the history."""
        text = f"{LATE}\n{message.words}" if message.late else message.words
        item: Item = {"role": "user", "content": well_formed(text)}
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
        try:
            graph = await self._agents.of(request.profile)
            if graph.guarded and self._config.continuation != "session":
                raise RuntimeFailed(FailureKind.INTERNAL, NO_GUARDRAILS)
        except Exception as error:  # noqa: BLE001 - the operator's function may raise anything
            feed.close(errors.classify(error))
            return
        past = self._past(request, host, writes)
        run = TurnRun(
            config=self._config,
            client=self._client,
            graph=graph,
            context=_context(request, host, past.session),
            past=past,
            hooks=TurnHooks(host.records(AGENT_NAMESPACE), writes),
            writes=writes,
            feed=feed,
            clock=self._host.clock,
            log=self._host.log,
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
                client=self._client,
                records=inbox,
                marks=host.records(MARKS),
                limits=limits,
                request=request,
                writes=writes,
                log=log,
            )
        compact = config.session.compact if config.session is not None else None
        most = limits.items * 3 // 4
        compactor = Compactor(compact, self._client, most, log) if compact is not None else None
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


def _context(request: TurnRequest, host: TurnHost, session: RecordsSession) -> JournalledContext:
    return JournalledContext(
        journal=Journal(host),
        session=session,
        turn_id=request.turn_id,
        session_id=request.session_id,
        conversation_id=request.conversation_id,
        profile=request.profile,
        address=request.address,
        inputs=request.inputs,
        memory=host.memory,
        attach=host.attach,
        fetch=host.fetch,
        read=host.read,
        suggest=host.suggest,
    )


@asynccontextmanager
async def open_runtime(config: OpenAIConfig, host: Host) -> AsyncIterator[Runtime]:
    """Make the agents and the client, without touching the network; close the client at the end."""
    made = await to_thread.run_sync(agents.load, config, host.name)
    if made.guarded and config.continuation != "session":
        raise ManifestError([f"{host.name}.continuation: {NO_GUARDRAILS}"])
    client = await to_thread.run_sync(make_client, config, host.network)
    table = config.session or SessionTable()
    try:
        async with (
            open_backend(table, host, client) as backend,
            anyio.create_task_group() as tasks,
        ):
            runtime = OpenAIRuntime(config, host, made, client, backend)
            tasks.start_soon(runtime.warm_up)
            yield runtime
            tasks.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True), host.clock.move_on_after(_CLOSING):
            await client.close()
