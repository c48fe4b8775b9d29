"""The runtime: programs of the SDK for the application's life, one turn at a time in each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo

import anyio
import attrs
from anyio import to_thread
from pydantic import TypeAdapter

from dragoman import (
    EncodedInput,
    FailureKind,
    Finding,
    Host,
    ManifestError,
    RunEvent,
    Runtime,
    RuntimeCapabilities,
    RuntimeFailed,
    TurnHost,
    TurnInput,
    TurnRequest,
)
from dragoman.runtimes import Feed, ReferenceProblem, TurnContext, resolve, told
from dragoman_claude import history, own_hooks, sandbox, tools, versions
from dragoman_claude.config import ClaudeConfig
from dragoman_claude.gate import Rules
from dragoman_claude.home import Homes, bundled_program
from dragoman_claude.options import Recipe
from dragoman_claude.pool import Pool
from dragoman_claude.starting import Workshop
from dragoman_claude.turn import TurnRun

_NO_PROGRAM: Final = (
    "the SDK's package for this machine has no program in it; it has one for Linux (x86-64, arm64), "
    "macOS and Windows"
)
_STUCK: Final = (1.0, 2.0, 0.0)
"""Seconds after each try to end what is left: a process that waits for a disk ends later."""
_LEFT: Final = (
    "processes of an earlier gateway cannot be ended, and could still write in sessions: {}; "
    "end them, as another user or by a restart of the machine, and start again"
)
_CLOSING: Final = 8.0
"""Seconds that all programs get to end."""


@attrs.define(eq=False)
class ClaudeRuntime:
    """A `dragoman.Runtime` over the Claude Agent SDK."""

    _config: ClaudeConfig
    _host: Host
    _shop: Workshop

    @property
    def capabilities(self) -> RuntimeCapabilities:
        """What the SDK allows. What people say meanwhile cannot be steered in: see the docs."""
        return RuntimeCapabilities(
            stream=True,
            resume=True,
            approve=True,
            journal=True,
            models=True,
            fenced=self._config.transcripts == "store",
            history=(history.NAMESPACE,),
        )

    async def probe(self) -> Sequence[Finding]:
        """Say which release of the SDK runs, without asking the model service anything."""
        return (versions.finding(),)

    def encode_input(self, message: TurnInput) -> EncodedInput:
        """Return the message as an item beside the transcript, which has it once it is read."""
        return EncodedInput(history.NAMESPACE, history.said(message.event_id, told(message)))

    @asynccontextmanager
    async def turn(
        self, request: TurnRequest, host: TurnHost
    ) -> AsyncIterator[AsyncIterator[RunEvent]]:
        """Run one turn; leaving early stops it and returns when nothing of it works any more."""
        feed = Feed()
        run = TurnRun(
            shop=self._shop,
            request=request,
            host=host,
            context=self._context(request, host),
            feed=feed,
        )
        failure: Exception | None = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run.run)
            try:
                yield feed
            except Exception as error:  # noqa: BLE001 - raised again below, outside the group
                failure = error
            tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure

    def _context(self, request: TurnRequest, host: TurnHost) -> TurnContext:
        zone = self._config.time_zone
        return TurnContext(
            turn_id=request.turn_id,
            session_id=request.session_id,
            conversation_id=request.conversation_id,
            profile=request.profile,
            address=request.address,
            person=request.inputs[-1].sender,
            platform=request.address.platform,
            time_zone=zone,
            now=self._host.clock.now().astimezone(ZoneInfo(zone)),
            inputs=request.inputs,
            memory=host.memory,
            attach=host.attach,
            fetch=host.fetch,
            read=host.read,
            suggest=host.suggest,
        )


def _schema(config: ClaudeConfig, table: str, problems: list[str]) -> Mapping[str, Any] | None:
    if config.output is None:
        return None
    try:
        return TypeAdapter(resolve(config.output)).json_schema()
    except Exception as error:  # noqa: BLE001 - the operator's own class
        problems.append(f"{table}.output: {config.output} has no JSON schema: {error}")
        return None


def _hooks(config: ClaudeConfig, table: str, problems: list[str]) -> own_hooks.Hooks:
    if config.hooks is None:
        return {}
    try:
        return own_hooks.load(config.hooks)
    except ReferenceProblem as error:
        problems.append(f"{table}.hooks: {error}")
        return {}


def _load(config: ClaudeConfig, table: str) -> tuple[Recipe, tuple[tools.Function, ...]]:
    """Load what a table refers to; raise every problem of it at once. Runs operator code."""
    problems: list[str] = []
    made: tuple[tools.Function, ...] = ()
    try:
        made = tools.load(config.functions, config.read_only_tools, table)
    except ManifestError as error:
        problems += error.problems
    if config.sandbox and (why := sandbox.why_no_sandbox()):
        problems.append(f"{table}.sandbox: {why}")
    if old := versions.refusal():
        problems.append(f"{table}: {old}")
    text = config.instructions or ""
    if config.instructions_file is not None:
        try:
            text = config.instructions_file.read_text(encoding="utf-8")
        except (OSError, UnicodeError) as error:
            problems.append(f"{table}.instructions_file: cannot be read: {error}")
    recipe = Recipe(
        config=config,
        instructions=text,
        schema=_schema(config, table, problems),
        hooks=_hooks(config, table, problems),
    )
    if problems:
        raise ManifestError(problems)
    return recipe, made


def _program(table: str) -> Path:
    found = bundled_program()
    if found is None:
        raise ManifestError([f"{table}: {_NO_PROGRAM}"])
    return found


def _of_the_gateway(own: Path) -> Path:
    """Return the gateway's whole data directory, where ``own`` is ``components/NAME``."""
    return own.parents[1] if own.parent.name == "components" else own


async def _sweep(homes: Homes, host: Host) -> None:
    """End what an earlier gateway left. It would write in sessions: none is resumed beside it."""
    for wait in _STUCK:
        swept = await homes.sweep()
        if swept.ended:
            host.log.warning("%d processes of an earlier gateway were ended", len(swept.ended))
        if not swept.stuck:
            return
        await host.clock.sleep(wait)
    left = ", ".join(map(str, swept.stuck))
    raise RuntimeFailed(FailureKind.INTERNAL, _LEFT.format(left))


@asynccontextmanager
async def open_runtime(config: ClaudeConfig, host: Host) -> AsyncIterator[Runtime]:
    """Read what the table names and end what an earlier gateway left; all programs end at the end."""
    recipe, made = await to_thread.run_sync(_load, config, host.name)
    recipe = attrs.evolve(recipe, hidden=(_of_the_gateway(host.data_dir),))
    homes = Homes(host.data_dir, _program(host.name))
    await _sweep(homes, host)
    pool = Pool(config.programs, host.clock, host.log)
    async with anyio.create_task_group() as tasks:
        shop = Workshop(
            recipe=recipe,
            rules=Rules.of(config, [one.name for one in made if one.read_only]),
            functions={one.name: one for one in made},
            homes=homes,
            pool=pool,
            tasks=tasks,
            clock=host.clock,
            log=host.log,
        )
        tasks.start_soon(pool.run)
        try:
            yield ClaudeRuntime(config, host, shop)
        finally:
            with anyio.CancelScope(shield=True), host.clock.move_on_after(_CLOSING):
                await pool.close()
        tasks.cancel_scope.cancel()
