"""Opens the components that a manifest names, each within its time, and closes them in reverse."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

import anyio
import attrs

from dragoman.clock import Clock
from dragoman.components import Component
from dragoman.errors import DragomanError, PluginError
from dragoman.host import ComponentHost
from dragoman.logs import logger
from dragoman.manifest.model import ComponentTable, Manifest
from dragoman.plugins.catalogue import Catalogue
from dragoman.protocols import MemoryStore, NetworkPolicy, Platform, Runtime, Sink
from dragoman.secret import Redactor
from dragoman.store.sqlite import SqliteStore

OPEN_SECONDS: Final = 5.0
"""How long a component may take to open; it touches no network."""

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
            if table.id in getattr(self, table.kind)
        ]


@attrs.frozen
class Opener:
    """What opening a component needs."""

    manifest: Manifest
    catalogue: Catalogue
    store: SqliteStore
    clock: Clock
    redactor: Redactor
    log: logging.Logger

    @asynccontextmanager
    async def open_all(self) -> AsyncIterator[Assembly]:
        """Open every component; an optional one that fails is left out and logged."""
        assembly = Assembly()
        async with AsyncExitStack() as stack:
            for kind in ORDER:
                for table in self.manifest.components:
                    if table.kind != kind:
                        continue
                    try:
                        opened = await self._enter(stack, table)
                    except PluginError as error:
                        if not table.optional:
                            raise
                        self.log.warning("%s is left out: %s", table.name, error)
                    else:
                        getattr(assembly, kind)[table.id] = opened
            yield assembly

    async def _enter(self, stack: AsyncExitStack, table: ComponentTable) -> object:
        """Open one component and its task group, which ends before the component closes."""
        host = self._host(table)
        component = self._component(table)
        opened: object = None
        try:
            with anyio.move_on_after(OPEN_SECONDS) as scope:
                opened = await stack.enter_async_context(component.open(table.config, host))
        except DragomanError as error:
            raise self._failed(table, str(error)) from error
        except Exception as error:
            raise self._failed(table, f"{type(error).__name__}: {error}") from error
        if scope.cancelled_caught:
            raise self._failed(table, f"open took longer than {OPEN_SECONDS:g} s")
        await stack.enter_async_context(_tasks_of(host))
        return opened

    def _component(self, table: ComponentTable) -> Component[Any, Any]:
        component = self.catalogue.resolve(table.kind, table.plugin)
        if "asyncio" not in component.backends:
            raise self._failed(
                table, f"runs on {', '.join(component.backends)}, the gateway on asyncio"
            )
        return component

    def _host(self, table: ComponentTable) -> ComponentHost:
        network = self.manifest.network
        return ComponentHost(
            name=table.name,
            id=table.id,
            clock=self.clock,
            log=logger(table.name, self.redactor),
            network=NetworkPolicy(
                proxy=network.proxy,
                ca_file=network.ca_file,
                connect_timeout=network.connect_timeout,
            ),
            store=self.store,
            root=self.manifest.data_dir,
        )

    def _failed(self, table: ComponentTable, reason: str) -> PluginError:
        return PluginError(
            table.plugin,
            self.catalogue.distribution_of(table.plugin),
            self.redactor(f"{table.name} cannot be opened: {reason}"),
        )


@asynccontextmanager
async def _tasks_of(host: ComponentHost) -> AsyncIterator[None]:
    async with anyio.create_task_group() as tasks:
        host.attach(tasks)
        try:
            yield
        finally:
            host.attach(None)
            tasks.cancel_scope.cancel()
