"""A deployment at work: opens the pieces, runs them under one task group, closes them in order."""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final

import anyio
import attrs
from anyio.abc import TaskGroup, TaskStatus

from dragoman.assembly import Assembly, Opener, open_store, unserved
from dragoman.bell import answer
from dragoman.clock import Clock, SystemClock
from dragoman.flow.admission import Admission
from dragoman.flow.cards import Cards
from dragoman.flow.changes import Changes
from dragoman.flow.choices import Choices
from dragoman.flow.choosing import Choosing
from dragoman.flow.commands import Commands
from dragoman.flow.control import Control
from dragoman.flow.decisions import Decisions
from dragoman.flow.door import Door
from dragoman.flow.fetched import Fetched, largest_of
from dragoman.flow.intake import Intake
from dragoman.flow.leases import Leases
from dragoman.flow.pairing import Pairing
from dragoman.flow.pastsessions import PastSessions
from dragoman.flow.people import People
from dragoman.flow.presses import Presses
from dragoman.flow.recovery import Recovery, Starts, refuse_steering
from dragoman.flow.registry import Run
from dragoman.flow.routing import Router
from dragoman.flow.sinks import SinkFan
from dragoman.flow.supervise import Supervisor
from dragoman.flow.throttle import Throttle
from dragoman.flow.turn import TurnRunner
from dragoman.flow.turns import Turns
from dragoman.health import Health
from dragoman.hookspecs import PlatformStatus
from dragoman.logs import bound, logger
from dragoman.manifest.model import Manifest
from dragoman.outbox.attempt import Exit
from dragoman.outbox.cosmetics import Cosmetics
from dragoman.outbox.files import Files
from dragoman.outbox.limits import Limits
from dragoman.outbox.moves import Moves
from dragoman.outbox.outbox import Outbox
from dragoman.plugins.catalogue import Catalogue
from dragoman.plugins.hooktable import HookTable
from dragoman.protocols import Platform, Runtime
from dragoman.secret import Redactor
from dragoman.store.protocol import Store

FLUSH_SECONDS: Final = 5.0
"""How long a stop waits for replies that are being sent."""


@attrs.define(eq=False)
class Application:
    """One gateway process over one manifest.

    ``catalogue`` finds the plugins; ``redactor`` knows the secrets that the manifest revealed.
    """

    manifest: Manifest
    catalogue: Catalogue
    redactor: Redactor = attrs.field(factory=Redactor)
    clock: Clock = attrs.field(factory=SystemClock)
    lag: Callable[[], float] = attrs.field(default=lambda: 0.0)
    """Tells the longest time that the event loop was held lately, seconds."""
    _stop: anyio.Event = attrs.field(init=False, factory=anyio.Event)
    _store: Store | None = attrs.field(init=False, default=None)
    _opened: anyio.Event = attrs.field(init=False, factory=anyio.Event)
    _platforms: dict[str, Platform] = attrs.field(init=False, factory=dict)

    @property
    def store(self) -> Store:
        """The open store, while the application runs."""
        if self._store is None:
            msg = "the application is not running"
            raise RuntimeError(msg)
        return self._store

    async def platform(self, id_: str) -> Platform:
        """Return an open platform, as soon as it is open."""
        await self._opened.wait()
        return self._platforms[id_]

    def stop(self) -> None:
        """Ask for an orderly end: no more intake, running turns get their grace, then close."""
        self._stop.set()

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Run until `stop`. ``task_status`` is told when everything is open and recovered."""
        log = logger("gateway", self.redactor)
        async with open_store(self.manifest, self.catalogue, self.clock, self.redactor) as store:
            self._store = store
            health = Health(self.clock, self.manifest.kinds, store, self.lag)
            opener = Opener(
                self.manifest, self.catalogue, store, self.clock, self.redactor, log, health
            )
            try:
                async with opener.open_all() as assembly:
                    self._platforms = assembly.platforms
                    self._opened.set()
                    if problem := unserved(health, self.catalogue):
                        raise problem
                    await self._serve(store, assembly, health, log, task_status)
            finally:
                self._store = None

    async def _serve(
        self,
        store: Store,
        assembly: Assembly,
        health: Health,
        log: logging.Logger,
        task_status: TaskStatus[None],
    ) -> None:
        hooks = HookTable.compile(
            assembly.in_order(self.manifest),
            timeout=self.manifest.limits.hook_timeout,
            clock=self.clock,
            log=log,
            admit_by=frozenset(self.manifest.access.admit_by),
        )
        refuse_steering(self.manifest, assembly.runtimes)
        owner = f"{os.getpid()}-{secrets.token_hex(8)}"
        leases = Leases(owner, store, self.clock, log)
        starts = Starts(store, self.clock, self.manifest.limits.restarts)
        recovery = Recovery(self.manifest, assembly, store, self.clock, log)
        again = await recovery.settle(leases, resume=await starts.begin(log))
        async with self._services(
            store=store, assembly=assembly, hooks=hooks, leases=leases, log=log
        ) as services:
            services.turns.resume(again)
            await hooks.started()
            async with anyio.create_task_group() as connections:
                self._connect(
                    connections,
                    services=services,
                    assembly=assembly,
                    hooks=hooks,
                    health=health,
                    log=log,
                )
                health.phase = "running"
                task_status.started()
                await self._stop.wait()
                health.phase = "stopping"
                connections.cancel_scope.cancel()
            await self._wind_down(services, hooks, log)
        await starts.end()

    @asynccontextmanager
    async def _services(
        self,
        *,
        store: Store,
        assembly: Assembly,
        hooks: HookTable,
        leases: Leases,
        log: logging.Logger,
    ) -> AsyncIterator[_Services]:
        """Run what outlives the connections: outbox, sinks, turns and leases."""
        moves = Moves(store, log)
        await moves.load()
        router = Router.of(self.manifest, moves.names)
        choosing = Choosing(store, log, router, Choices(store, moves.names))
        await choosing.load()
        async with anyio.create_task_group() as tasks:
            outbox = await self._outbox(store, assembly, tasks, moves, log)
            sinks = SinkFan(assembly.sinks, tasks, log)
            runner = TurnRunner(
                store=store,
                clock=self.clock,
                log=log,
                outbox=outbox,
                hooks=hooks,
                sinks=sinks,
                runtimes=assembly.runtimes,
                memories=assembly.memories,
                profiles=self.manifest.profiles,
                limits=self.manifest.limits,
                leases=leases,
                fetched=await self._fetched(store, outbox, hooks),
                redact=self.redactor,
                model=choosing.model,
            )
            async with anyio.create_task_group() as running:
                cards = Cards(store, self.clock, log, outbox)
                turns = Turns(
                    cards=cards,
                    leases=leases,
                    store=store,
                    clock=self.clock,
                    log=log,
                    tasks=running,
                    platforms=frozenset(assembly.platforms),
                    moves=moves,
                    slots=self.manifest.limits.concurrent_turns,
                    collect=self._collecting(),
                    work=runner.run,
                )
                people = People(store, self.manifest.kinds)
                await people.load()
                decisions = self._decisions(
                    store=store, turns=turns, cards=cards, outbox=outbox, people=people, log=log
                )
                door = self._door(
                    people=people,
                    turns=turns,
                    decisions=decisions,
                    choosing=choosing,
                    outbox=outbox,
                    store=store,
                    router=router,
                    hooks=hooks,
                    runtimes=assembly.runtimes,
                    log=log,
                )
                await door.load()
                await outbox.resume()
                await door.expire_waiting()
                tasks.start_soon(turns.run)
                tasks.start_soon(turns.renew)
                tasks.start_soon(decisions.run)
                tasks.start_soon(cards.run)
                tasks.start_soon(self._listen, people, outbox, turns, log)
                yield _Services(store, outbox, sinks, turns, running, router, door)
            tasks.cancel_scope.cancel()

    async def _outbox(
        self,
        store: Store,
        assembly: Assembly,
        tasks: TaskGroup,
        moves: Moves,
        log: logging.Logger,
    ) -> Outbox:
        files = Files(self.manifest.data_dir / "outgoing", self.manifest.limits.file_size)
        await files.sweep(await store.read.files())
        cosmetics = Cosmetics(self.clock, log, tasks)
        exits = self._exits(assembly)
        return Outbox(store, self.clock, log, exits, tasks, files, cosmetics, moves)

    async def _fetched(self, store: Store, outbox: Outbox, hooks: HookTable) -> Fetched:
        folder, largest = self.manifest.data_dir / "incoming", self.manifest.limits.file_size
        fetched = Fetched(folder, largest, store, outbox, hooks, self.clock)
        await fetched.sweep()
        return fetched

    async def _listen(
        self, people: People, outbox: Outbox, turns: Turns, log: logging.Logger
    ) -> None:
        """Look at what other processes wrote whenever they ring."""

        async def look() -> None:
            await people.load()
            await outbox.resume()
            turns.look()

        if self.manifest.store != ":memory:":  # nobody else could write to that one
            await answer(self.manifest.data_dir, look, clock=self.clock, log=log)

    def _exits(self, assembly: Assembly) -> dict[str, Exit]:
        uncertain = self.manifest.delivery.uncertain
        return {
            name: Exit(platform, Limits(self.clock, platform.capabilities), self.clock, uncertain)
            for name, platform in assembly.platforms.items()
        }

    def _collecting(self) -> tuple[str, ...]:
        """Return the profiles that give all that waits to one turn."""
        busy = {name: profile.busy for name, profile in self.manifest.profiles.items()}
        return tuple(name for name, mode in busy.items() if mode in {"collect", "interrupt"})

    def _decisions(
        self,
        *,
        store: Store,
        turns: Turns,
        cards: Cards,
        outbox: Outbox,
        people: People,
        log: logging.Logger,
    ) -> Decisions:
        return Decisions(
            store=store,
            clock=self.clock,
            log=log,
            turns=turns,
            cards=cards,
            outbox=outbox,
            profiles=self.manifest.profiles,
            people=people,
        )

    def _door(
        self,
        *,
        people: People,
        turns: Turns,
        decisions: Decisions,
        choosing: Choosing,
        outbox: Outbox,
        store: Store,
        router: Router,
        hooks: HookTable,
        runtimes: Mapping[str, Runtime],
        log: logging.Logger,
    ) -> Door:
        kinds = self.manifest.kinds
        on, freshness = self.manifest.access.pairing, self.manifest.limits.freshness
        pairing = Pairing(store, self.clock, people, outbox, on, freshness)
        admission = Admission(people, self.manifest.access, kinds, hooks, outbox.moves.names)
        own = Control(store, self.clock, turns, kinds).runs | decisions.runs
        own |= pairing.runs | choosing.runs(admission) | PastSessions(store, self.clock).runs
        return Door(
            store=store,
            clock=self.clock,
            log=log,
            people=people,
            admission=admission,
            router=router,
            hooks=hooks,
            commands=self._commands(own, store, log),
            kinds=kinds,
            runtimes=runtimes,
            limits=self.manifest.limits,
            turns=turns,
            outbox=outbox,
            presses=Presses(store, outbox),
            decisions=decisions,
            pairing=pairing,
            choosing=choosing,
            moves=outbox.moves,
            throttle=Throttle(self.clock, log, kinds, self.manifest.access, self.manifest.limits),
            changes=Changes(store, log, outbox, turns, outbox.moves),
        )

    def _commands(self, own: Mapping[str, Run], store: Store, log: logging.Logger) -> Commands:
        plugins = [table.plugin.partition(":")[0] for table in self.manifest.components]
        return Commands.of(
            self.catalogue.chat_commands(plugins),
            own,
            store=store,
            clock=self.clock,
            log=log,
            timeout=self.manifest.limits.hook_timeout,
        )

    def _connect(
        self,
        tasks: TaskGroup,
        *,
        services: _Services,
        assembly: Assembly,
        hooks: HookTable,
        health: Health,
        log: logging.Logger,
    ) -> None:
        """Run each platform and its intake; none of them waits for another."""

        async def connect(name: str) -> None:
            own_log = bound(log, platform=name)
            can = assembly.platforms[name].capabilities
            intake = Intake(
                name,
                services.store,
                self.clock,
                own_log,
                services.router.lane_of,
                services.door.decide,
                services.door.is_command,
                lambda: health.worked_at(name) is not None,
                largest_of(can.fetch, self.manifest.limits.file_size),
            )
            supervisor = Supervisor(
                name=name,
                platform=assembly.platforms[name],
                deliver=health.watching(intake.deliver),
                clock=self.clock,
                log=own_log,
                observe=observe,
                worked_at=lambda: health.worked_at(name),
            )
            async with anyio.create_task_group() as own:
                own.start_soon(intake.run)
                await supervisor.run()

        def observe(status: PlatformStatus) -> None:
            # Adapters quote what they connected to, and observers may show it to anyone.
            clean = attrs.evolve(status, reason=self.redactor(status.reason))
            health.status(clean)
            hooks.observe(clean)
            if clean.status == "running":
                services.outbox.connected(clean.platform)

        health.back = services.outbox.connected
        health.commands = services.door.chat_commands
        for name in assembly.platforms:
            tasks.start_soon(connect, name)

    async def _wind_down(self, services: _Services, hooks: HookTable, log: logging.Logger) -> None:
        """Let running turns finish within their grace, cut the rest, and send what is owed."""
        services.turns.close()
        with self.clock.move_on_after(self.manifest.limits.grace) as scope:
            await services.turns.idle()
        with anyio.CancelScope(shield=True):  # the group of the turns that are cut is around this
            if scope.cancelled_caught:
                log.warning("running turns are cut after %g s", self.manifest.limits.grace)
                services.running.cancel_scope.cancel()
                await services.turns.idle()
            with self.clock.move_on_after(FLUSH_SECONDS):
                await services.outbox.flush()
                await services.sinks.flush()
            await hooks.stopping()


@attrs.frozen
class _Services:
    """What the connections work with."""

    store: Store
    outbox: Outbox
    sinks: SinkFan
    turns: Turns
    running: TaskGroup
    router: Router
    door: Door
