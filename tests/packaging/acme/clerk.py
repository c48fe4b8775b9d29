"""A third party's runtime: counts letters in its records and keeps them in the memory."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import attrs

from dragoman import (
    Component,
    EncodedInput,
    Finished,
    Host,
    RunEvent,
    Runtime,
    RuntimeCapabilities,
    TextBlock,
    TurnHost,
    TurnInput,
    TurnRequest,
    hookimpl,
)


@attrs.frozen
class ClerkConfig:
    greeting: str = "Dear neighbour"


@attrs.define(eq=False)
class Clerk:
    config: ClerkConfig
    capabilities: RuntimeCapabilities = RuntimeCapabilities()

    def encode_input(self, message: TurnInput) -> EncodedInput | None:
        return EncodedInput("letters", message.text)

    @asynccontextmanager
    async def turn(
        self, request: TurnRequest, host: TurnHost
    ) -> AsyncIterator[AsyncIterator[RunEvent]]:
        yield self.events(request, host)

    async def events(self, request: TurnRequest, host: TurnHost) -> AsyncIterator[RunEvent]:
        letters = await host.records("letters").read()
        assert host.memory
        found = [note.text for note in await host.memory.search(letters[-1])]
        await host.memory.add(letters[-1])
        yield TextBlock("answer", f"{self.config.greeting}: letter {len(letters)}, found {found}")
        yield Finished()


@asynccontextmanager
async def open_clerk(config: ClerkConfig, host: Host) -> AsyncIterator[Runtime]:
    yield Clerk(config)


@hookimpl
def dragoman_runtimes() -> Iterable[Component[Any, Runtime]]:
    yield Component("clerk", ClerkConfig, open_clerk)
