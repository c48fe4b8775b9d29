"""The flow of one deployment, put together: each piece is made once, and given what it needs."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import attrs
from anyio.abc import TaskGroup

from dragoman.assembly import Assembly
from dragoman.bell import answer
from dragoman.clock import Clock
from dragoman.flow.admission import Admission
from dragoman.flow.budgets import Budgets
from dragoman.flow.cards import Cards
from dragoman.flow.changes import Changes
from dragoman.flow.choices import Choices
from dragoman.flow.choosing import Choosing
from dragoman.flow.commands import Commands
from dragoman.flow.control import Control
from dragoman.flow.decisions import Decisions
from dragoman.flow.door import Door
from dragoman.flow.fetched import Fetched
from dragoman.flow.leases import Leases
from dragoman.flow.pairing import Pairing
from dragoman.flow.pastsessions import PastSessions
from dragoman.flow.people import People
from dragoman.flow.presses import Presses
from dragoman.flow.registry import Run
from dragoman.flow.routing import Router
from dragoman.flow.sinks import SinkFan
from dragoman.flow.throttle import Throttle
from dragoman.flow.turn import TurnRunner
from dragoman.flow.turns import Turns
from dragoman.manifest.model import Manifest
from dragoman.outbox.attempt import Exit
from dragoman.outbox.cosmetics import Cosmetics
from dragoman.outbox.files import Files
from dragoman.outbox.limits import Limits
from dragoman.outbox.moves import Moves
from dragoman.outbox.outbox import Outbox
from dragoman.plugins.catalogue import Catalogue
from dragoman.plugins.hooktable import HookTable
from dragoman.secret import Redactor
from dragoman.store.protocol import Store


@attrs.frozen
class Services:
    """What outlives the connections, and what they work with."""

    outbox: Outbox
    sinks: SinkFan
    turns: Turns
    running: TaskGroup
    """The group of the turns."""
    router: Router
    door: Door


@attrs.frozen(kw_only=True)
class Wiring:
    """The pieces that a deployment begins with."""

    manifest: Manifest
    catalogue: Catalogue
    redactor: Redactor
    clock: Clock
    store: Store
    assembly: Assembly
    hooks: HookTable
    leases: Leases
    log: logging.Logger

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Services]:
        """Run what outlives the connections: outbox, sinks, turns and leases."""
        moves = Moves(self.store, self.log)
        await moves.load()
        people = People(self.store, self.manifest.kinds)
        await people.load()
        router = Router.of(self.manifest, moves.names)
        choosing = Choosing(self.store, self.log, router, Choices(self.store, moves.names))
        await choosing.load()
        budgets = Budgets(self.store, self.clock, self.manifest.profiles)
        await budgets.load()
        async with anyio.create_task_group() as tasks:
            outbox = await self._outbox(tasks, moves)
            sinks = SinkFan(self.assembly.sinks, tasks, self.log)
            runner = await self._runner(
                outbox, sinks, choosing=choosing, people=people, budgets=budgets
            )
            async with anyio.create_task_group() as running:
                cards = Cards(self.store, self.clock, self.log, outbox)
                turns = self._turns(running, runner, cards, moves)
                decisions = self._decisions(turns, cards, outbox, people)
                door = self._door(
                    outbox,
                    turns,
                    router=router,
                    people=people,
                    decisions=decisions,
                    choosing=choosing,
                    budgets=budgets,
                )
                await door.load()
                await outbox.resume()
                await door.expire_waiting()
                for work in (turns.run, turns.renew, decisions.run, cards.run):
                    tasks.start_soon(work)
                tasks.start_soon(self._listen, people, outbox, turns)
                yield Services(outbox, sinks, turns, running, router, door)
            tasks.cancel_scope.cancel()

    async def _outbox(self, tasks: TaskGroup, moves: Moves) -> Outbox:
        files = Files(self.manifest.data_dir / "outgoing", self.manifest.limits.file_size)
        await files.sweep(await self.store.read.files())
        cosmetics, uncertain = (
            Cosmetics(self.clock, self.log, tasks),
            self.manifest.delivery.uncertain,
        )
        exits = {
            name: Exit(platform, Limits(self.clock, platform.capabilities), self.clock, uncertain)
            for name, platform in self.assembly.platforms.items()
        }
        return Outbox(self.store, self.clock, self.log, exits, tasks, files, cosmetics, moves)

    async def _runner(
        self,
        outbox: Outbox,
        sinks: SinkFan,
        *,
        choosing: Choosing,
        people: People,
        budgets: Budgets,
    ) -> TurnRunner:
        folder, largest = self.manifest.data_dir / "incoming", self.manifest.limits.file_size
        fetched = Fetched(folder, largest, self.store, outbox, self.hooks, self.clock)
        await fetched.sweep()
        return TurnRunner(
            store=self.store,
            clock=self.clock,
            log=self.log,
            outbox=outbox,
            hooks=self.hooks,
            sinks=sinks,
            runtimes=self.assembly.runtimes,
            memories=self.assembly.memories,
            profiles=self.manifest.profiles,
            limits=self.manifest.limits,
            leases=self.leases,
            fetched=fetched,
            redact=self.redactor,
            people=people,
            budgets=budgets,
            model=choosing.model,
        )

    def _turns(self, tasks: TaskGroup, runner: TurnRunner, cards: Cards, moves: Moves) -> Turns:
        gathers = {"collect", "interrupt"}
        profiles = self.manifest.profiles.items()
        return Turns(
            cards=cards,
            leases=self.leases,
            store=self.store,
            clock=self.clock,
            log=self.log,
            tasks=tasks,
            platforms=frozenset(self.assembly.platforms),
            moves=moves,
            slots=self.manifest.limits.concurrent_turns,
            collect=tuple(name for name, profile in profiles if profile.busy in gathers),
            work=runner.run,
        )

    async def _listen(self, people: People, outbox: Outbox, turns: Turns) -> None:
        """Look at what other processes wrote whenever they ring."""

        async def look() -> None:
            await people.load()
            await outbox.resume()
            turns.look()

        if self.manifest.store != ":memory:":  # nobody else could write to that one
            await answer(self.manifest.data_dir, look, clock=self.clock, log=self.log)

    def _decisions(self, turns: Turns, cards: Cards, outbox: Outbox, people: People) -> Decisions:
        return Decisions(
            store=self.store,
            clock=self.clock,
            log=self.log,
            turns=turns,
            cards=cards,
            outbox=outbox,
            profiles=self.manifest.profiles,
            people=people,
        )

    def _door(
        self,
        outbox: Outbox,
        turns: Turns,
        *,
        router: Router,
        people: People,
        decisions: Decisions,
        choosing: Choosing,
        budgets: Budgets,
    ) -> Door:
        kinds, access, limits = self.manifest.kinds, self.manifest.access, self.manifest.limits
        pairing = Pairing(self.store, self.clock, people, outbox, access.pairing, limits.freshness)
        admission = Admission(people, access, kinds, self.hooks, outbox.moves.names)
        own = Control(self.store, self.clock, turns, people).runs | decisions.runs | pairing.runs
        own |= (
            choosing.runs(admission)
            | PastSessions(self.store, self.clock, self.assembly.runtimes).runs
        )
        return Door(
            store=self.store,
            clock=self.clock,
            log=self.log,
            people=people,
            admission=admission,
            router=router,
            hooks=self.hooks,
            commands=self._commands(own),
            kinds=kinds,
            runtimes=self.assembly.runtimes,
            limits=limits,
            turns=turns,
            outbox=outbox,
            presses=Presses(self.store, outbox),
            decisions=decisions,
            pairing=pairing,
            choosing=choosing,
            moves=outbox.moves,
            budgets=budgets,
            throttle=Throttle(self.clock, self.log, people, access, limits),
            changes=Changes(self.store, self.log, outbox, turns, outbox.moves),
        )

    def _commands(self, own: dict[str, Run]) -> Commands:
        plugins = [table.plugin.partition(":")[0] for table in self.manifest.components]
        return Commands.of(
            self.catalogue.chat_commands(plugins),
            own,
            store=self.store,
            clock=self.clock,
            log=self.log,
            timeout=self.manifest.limits.hook_timeout,
        )
