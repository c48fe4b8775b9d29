"""A deployment at work: opens the pieces, runs them under one task group, closes them in order."""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Callable
from typing import Final

import anyio
import attrs
from anyio.abc import TaskGroup, TaskStatus

from dragoman.assembly import Assembly, Opener, open_store, unserved
from dragoman.clock import Clock, SystemClock
from dragoman.flow.fetched import largest_of
from dragoman.flow.intake import Intake
from dragoman.flow.leases import Leases
from dragoman.flow.recovery import Recovery, Starts, refuse_steering
from dragoman.flow.supervise import Supervisor
from dragoman.health import Health
from dragoman.hookspecs import PlatformStatus
from dragoman.logs import bound, logger
from dragoman.manifest.model import Manifest
from dragoman.plugins.catalogue import Catalogue
from dragoman.plugins.hooktable import HookTable
from dragoman.protocols import Platform
from dragoman.secret import Redactor
from dragoman.store.protocol import Store
from dragoman.wiring import Services, Wiring

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
        wiring = Wiring(
            manifest=self.manifest,
            catalogue=self.catalogue,
            redactor=self.redactor,
            clock=self.clock,
            store=store,
            assembly=assembly,
            hooks=hooks,
            leases=leases,
            log=log,
        )
        async with wiring.running() as services:
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

    def _connect(
        self,
        tasks: TaskGroup,
        *,
        services: Services,
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
                self.store,
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
        health.command_names = services.door.command_names
        for name in assembly.platforms:
            tasks.start_soon(connect, name)

    async def _wind_down(self, services: Services, hooks: HookTable, log: logging.Logger) -> None:
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
