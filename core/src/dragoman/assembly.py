"""Opens the components that a manifest names, each within its time, and closes them in reverse."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import anyio
import attrs
from anyio.abc import TaskGroup

from dragoman.causes import find
from dragoman.clock import Clock
from dragoman.components import Component
from dragoman.errors import DragomanError, PluginError
from dragoman.health import Health
from dragoman.host import ComponentHost
from dragoman.hosting import NetworkPolicy
from dragoman.lifetime import Lifetime
from dragoman.logs import logger
from dragoman.manifest.model import ComponentTable, Manifest
from dragoman.plugins.catalogue import Catalogue
from dragoman.protocols import MemoryStore, Platform, Runtime, Sink
from dragoman.secret import Redactor
from dragoman.store.protocol import Store
from dragoman.store.sqlite import open_sqlite

OPEN_SECONDS: Final = 30.0
"""How long a component may take to open. It should need five seconds at most; but it imports vendor
code, and a machine that is busy starting everything else may be six times as slow."""

ORDER: Final = ("memories", "sinks", "runtimes", "extensions", "platforms")


@attrs.frozen
class Assembly:
    """Everything that is open, by the id of its table, and in manifest order for hooks."""

    platforms: dict[str, Platform] = attrs.field(factory=dict)
    runtimes: dict[str, Runtime] = attrs.field(factory=dict)
    memories: dict[str, MemoryStore] = attrs.field(factory=dict)
    sinks: dict[str, Sink] = attrs.field(factory=dict)
    extensions: dict[str, object] = attrs.field(factory=dict)

    def in_order(self, manifest: Manifest) -> list[tuple[str, object]]:
        """Return what is open as (name, object), in the order of the manifest."""
        return [
            (table.name, getattr(self, table.kind)[table.id])
            for table in manifest.components
            if table.kind in ORDER and table.id in getattr(self, table.kind)
        ]


@attrs.frozen
class Opener:
    """What opening a component needs."""

    manifest: Manifest
    catalogue: Catalogue
    store: Store
    clock: Clock
    redactor: Redactor
    log: logging.Logger
    health: Health = attrs.Factory(lambda self: Health(self.clock), takes_self=True)
    """Where components say how they do; by default nobody listens, as nothing is running."""

    @asynccontextmanager
    async def open_all(self) -> AsyncIterator[Assembly]:
        """Open every component; an optional one that fails is left out and logged."""
        assembly = Assembly()
        async with AsyncExitStack() as stack:
            tasks = await stack.enter_async_context(anyio.create_task_group())
            for kind in ORDER:
                for table in self.manifest.components:
                    if table.kind != kind:
                        continue
                    try:
                        opened = await self._open(stack, tasks, table)
                    except PluginError as error:
                        self.health.forget(table.name)
                        if not table.optional:
                            raise
                        self.log.warning("%s is left out: %s", table.name, error)
                    else:
                        getattr(assembly, kind)[table.id] = opened
            yield assembly

    async def _open(self, stack: AsyncExitStack, tasks: TaskGroup, table: ComponentTable) -> object:
        """Open one component in time; it is closed when the stack unwinds."""
        host = self._host(table)
        component = self._component(table)
        try:
            life = Lifetime(host, component.open(table.config, host))
        except Exception as error:
            raise self._failed(table, f"{type(error).__name__}: {error}") from error
        stack.push_async_callback(life.close)
        if not await life.open(tasks, OPEN_SECONDS):
            raise self._failed(table, f"open took longer than {OPEN_SECONDS:g} s")
        if life.failure is not None:
            cause = find(life.failure, DragomanError)
            reason = str(cause) if cause else f"{type(life.failure).__name__}: {life.failure}"
            raise self._failed(table, reason) from life.failure
        return life.product

    def _component(self, table: ComponentTable) -> Component[Any, Any]:
        component = self.catalogue.resolve(table.kind, table.plugin)
        if "asyncio" not in component.backends:
            raise self._failed(
                table, f"runs on {', '.join(component.backends)}, the gateway on asyncio"
            )
        return component

    def _host(self, table: ComponentTable) -> ComponentHost:
        return host_of(
            table,
            manifest=self.manifest,
            clock=self.clock,
            redactor=self.redactor,
            store=self.store,
            health=self.health,
        )

    def _failed(self, table: ComponentTable, reason: str) -> PluginError:
        return PluginError(
            table.plugin,
            self.catalogue.distribution_of(table.plugin),
            self.redactor(f"{table.name} cannot be opened: {reason}"),
        )


def unserved(health: Health, catalogue: Catalogue) -> PluginError | None:
    """Return what is wrong where components offer something over HTTP and nobody listens."""
    if health.served or not health.mounts:
        return None
    mount = health.mounts[0]
    return PluginError(
        mount.owner,
        catalogue.distribution_of("http"),
        f"it offers {mount.path} over HTTP, and nothing in the manifest listens",
        "add [extensions.http] (pip install dragoman-http)",
    )


def host_of(
    table: ComponentTable,
    *,
    manifest: Manifest,
    clock: Clock,
    redactor: Redactor,
    store: Store | None,
    health: Health,
) -> ComponentHost:
    """Return the host of one component; that of the store itself has no store."""
    network = manifest.network
    return ComponentHost(
        name=table.name,
        id=table.id,
        clock=clock,
        log=logger(table.name, redactor),
        network=NetworkPolicy(
            proxy=network.proxy,
            ca_file=network.ca_file,
            connect_timeout=network.connect_timeout,
        ),
        health=health,
        store=store,
        root=manifest.data_dir,
    )


@asynccontextmanager
async def open_store(
    manifest: Manifest, catalogue: Catalogue, clock: Clock, redactor: Redactor
) -> AsyncIterator[Store]:
    """Open the store that the manifest names, or SQLite's in its default place."""
    table = next((table for table in manifest.components if table.kind == "stores"), None)
    if table is not None:
        component = catalogue.resolve(table.kind, table.plugin)
        # The store is what health asks: its own component has nobody to tell.
        host = host_of(
            table,
            manifest=manifest,
            clock=clock,
            redactor=redactor,
            store=None,
            health=Health(clock),
        )
        async with component.open(table.config, host) as store:
            yield store
        return
    in_memory = manifest.store == ":memory:"
    path = Path(manifest.store or manifest.data_dir / "dragoman.db")
    async with open_sqlite(None if in_memory else path) as store:
        yield store
