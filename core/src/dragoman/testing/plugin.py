"""A plugin object that offers whatever objects a test gives it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeVar

import attrs

from dragoman.components import Component
from dragoman.hookspecs import hookimpl
from dragoman.hosting import Host
from dragoman.protocols import MemoryStore, Platform, Runtime, Sink
from dragoman.testing.platform import StubConfig, StubPlatform

ObjectT = TypeVar("ObjectT")


@attrs.define(eq=False)
class StubPlugin:
    """Registers one component of each kind: it opens the object that the table's id names.

    Give it to ``Catalogue(objects={"stub": StubPlugin()})``. Platforms that are not given are made
    when they are first asked for. ``hosts`` holds the host of each open component by its name.
    """

    platforms: dict[str, StubPlatform] = attrs.field(factory=dict)
    runtimes: dict[str, Runtime] = attrs.field(factory=dict)
    memories: dict[str, MemoryStore] = attrs.field(factory=dict)
    sinks: dict[str, Sink] = attrs.field(factory=dict)
    extensions: dict[str, object] = attrs.field(factory=dict)
    hosts: dict[str, Host] = attrs.field(factory=dict)

    def platform(self, id_: str = "stub") -> StubPlatform:
        """Return the platform of a table, made when first asked for."""
        return self.platforms.setdefault(id_, StubPlatform(id=id_))

    @hookimpl
    def dragoman_platforms(self) -> Iterable[Component[Any, Platform]]:
        """Register the platforms."""
        yield Component("stub", StubConfig, self._opener(self.platform))

    @hookimpl
    def dragoman_runtimes(self) -> Iterable[Component[Any, Runtime]]:
        """Register the runtimes."""
        yield Component("stub", StubConfig, self._opener(self.runtimes.__getitem__))

    @hookimpl
    def dragoman_memories(self) -> Iterable[Component[Any, MemoryStore]]:
        """Register the memory stores."""
        yield Component("stub", StubConfig, self._opener(self.memories.__getitem__))

    @hookimpl
    def dragoman_sinks(self) -> Iterable[Component[Any, Sink]]:
        """Register the sinks."""
        yield Component("stub", StubConfig, self._opener(self.sinks.__getitem__))

    @hookimpl
    def dragoman_extensions(self) -> Iterable[Component[Any, object]]:
        """Register the extensions."""
        yield Component("stub", StubConfig, self._opener(self.extensions.__getitem__))

    def _opener(
        self, find: Callable[[str], ObjectT]
    ) -> Callable[[StubConfig, Host], AbstractAsyncContextManager[ObjectT]]:
        @asynccontextmanager
        async def open_stub(config: StubConfig, host: Host) -> AsyncIterator[ObjectT]:
            del config
            self.hosts[host.name] = host
            try:
                yield find(host.id)
            finally:
                del self.hosts[host.name]

        return open_stub
