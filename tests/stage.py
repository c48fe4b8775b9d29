"""A whole gateway for one test: the real application, store and hooks; stubs at its two ends."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import attrs

from dragoman.application import Application
from dragoman.capabilities import Capabilities, Transport
from dragoman.clock import Clock, SystemClock
from dragoman.echo import EchoConfig
from dragoman.manifest.model import Access, ComponentTable, Limits, Manifest, Profile
from dragoman.plugins.catalogue import Catalogue
from dragoman.secret import Secret
from dragoman.testing import ScriptedRuntime, StubPlatform, StubPlugin, VirtualClock, settle
from dragoman.testing.platform import StubConfig

EVERYBODY = Access(channels=tuple(f"stub:{number}" for number in range(600)))

UNLIMITED = Limits(grace=0.5, person_rate=0, conversation_rate=0)
"""For people who say more in a minute than anybody can."""


def table(kind: str, id_: str, *, optional: bool = False) -> ComponentTable:
    """Return the table of a stub."""
    return ComponentTable(kind=kind, id=id_, plugin="stub", config=StubConfig(), optional=optional)


ECHO = ComponentTable(kind="runtimes", id="echo", plugin="echo", config=EchoConfig())


def can(**changes: Any) -> Capabilities:
    """Return the capabilities of a platform that edits, types and has no idempotent send."""
    return attrs.evolve(
        Capabilities(max_text=4096, transport=Transport.ACK_GATED, edit=True), **changes
    )


@attrs.define(eq=False)
class Stage:
    """A running gateway."""

    app: Application
    plugin: StubPlugin

    @property
    def platform(self) -> StubPlatform:
        return self.plugin.platform()

    @property
    def runtime(self) -> ScriptedRuntime:
        runtime = self.plugin.runtimes["scripted"]
        assert isinstance(runtime, ScriptedRuntime)
        return runtime

    async def rows(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Ask the store anything."""
        return [tuple(row) for row in await self.app.store.read._query(sql, parameters)]

    async def states(self, table_: str, column: str = "state") -> list[Any]:
        """Return a column of all rows, oldest first."""
        order = {"inbound_events": "id", "deliveries": "number", "agent_runs": "started_at"}
        return [
            row[0]
            for row in await self.rows(f"SELECT {column} FROM {table_} ORDER BY {order[table_]}")
        ]

    async def until(self, table_: str, states: Sequence[str], limit: float = 60) -> None:
        """Wait until the rows of a table have exactly these states."""
        await eventually(lambda: self.states(table_), list(states), limit)

    async def until_final(self, limit: float = 60) -> None:
        """Wait until every event, turn and delivery has reached a final state."""
        open_states = {
            "inbound_events": "('received','held','queued','adopted')",
            "agent_runs": "('running','waiting')",
            "deliveries": "('pending','sending','uncertain')",
        }

        async def unfinished() -> list[Any]:
            return [
                row
                for name, states in open_states.items()
                for row in await self.rows(
                    f"SELECT '{name}', state, count(*) FROM {name}"
                    f" WHERE state IN {states} GROUP BY state"
                )
            ]

        await eventually(unfinished, [], limit)

    async def quiet(self) -> None:
        """Let all tasks run until they wait for the clock: the store's threads included."""
        before, calm = -1, 0
        while calm < 3:
            await settle()
            for connection in self.app.store.connections:
                await connection.execute_fetchall("SELECT 1")  # behind what it has to do
            await settle()
            now = self.app.store.commits
            busy = self.app.store._writes._waiting or self.app.store._writer._lock.locked()
            calm = 0 if busy or now != before else calm + 1
            before = now


async def eventually(ask: Callable[[], Any], wanted: Any, limit: float = 60) -> None:
    """Wait until a question is answered as wanted."""
    answer: Any = None
    try:
        with anyio.fail_after(limit):
            while (answer := await ask()) != wanted:  # noqa: ASYNC110 - the store rings no bell
                await anyio.sleep(0.005)
    except TimeoutError:
        raise AssertionError(f"expected {wanted!r}, still {answer!r}") from None


@asynccontextmanager
async def gateway(
    plugin: StubPlugin | None = None,
    *,
    store: Path | str = ":memory:",
    clock: Clock | None = None,
    secrets: Sequence[str] = (),
    components: Sequence[ComponentTable] = (),
    plugins: Mapping[str, object] | None = None,
    **manifest: Any,
) -> AsyncIterator[Stage]:
    """Run a gateway with one scripted runtime and one stub platform, unless told otherwise."""
    plugin = plugin or StubPlugin()
    plugin.runtimes.setdefault("scripted", ScriptedRuntime())
    tables = [ECHO, table("runtimes", "scripted"), *components]
    if not any(one.kind == "platforms" for one in components):
        tables.append(table("platforms", "stub"))
    manifest.setdefault("profiles", {"default": Profile(runtime="scripted")})
    manifest.setdefault("access", EVERYBODY)
    if clock is None:
        manifest.setdefault("limits", Limits(grace=0.5))  # nobody waits for the five real seconds
    with tempfile.TemporaryDirectory() as folder:
        manifest.setdefault("data_dir", Path(folder))
        app = Application(
            Manifest(store=store, components=tuple(tables), **manifest),
            Catalogue(objects={"stub": plugin, **(plugins or {})}),
            clock=clock or SystemClock(),
        )
        for number, value in enumerate(secrets):
            app.redactor.learn(Secret(f"secret {number}", value))
        stage = Stage(app, plugin)
        async with anyio.create_task_group() as tasks:
            await tasks.start(lambda *, task_status: app.run(task_status=task_status))
            if isinstance(clock, VirtualClock):
                clock.quiesce = stage.quiet
            try:
                yield stage
            finally:
                app.stop()
                if isinstance(clock, VirtualClock):
                    clock.quiesce = settle
                    with anyio.CancelScope(shield=True):
                        await _let_time_pass(clock, app)


async def _let_time_pass(clock: VirtualClock, app: Application) -> None:
    """A stop waits for the clock, too: grace, flush, closing."""
    with anyio.fail_after(60):
        while app._store is not None:
            await clock.advance(1)
            await anyio.sleep(0.002)


__all__ = [
    "ECHO",
    "EVERYBODY",
    "UNLIMITED",
    "Limits",
    "Stage",
    "can",
    "eventually",
    "gateway",
    "table",
]
