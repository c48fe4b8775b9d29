"""A runtime that makes files: its answer is what it was told to make, and a file of that name."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import attrs

from dragoman import (
    Finished,
    Host,
    RunEvent,
    RuntimeCapabilities,
    TextBlock,
    TurnHost,
    TurnInput,
    TurnRequest,
)


@attrs.frozen
class MakerConfig:
    """The ``[runtimes.…]`` table."""


class Maker:
    """The runtime. Making a file changes nothing outside, so a turn may be run again."""

    capabilities = RuntimeCapabilities(stream=True, journal=True)

    def encode_input(self, message: TurnInput) -> None:
        """Keep no history."""
        del message

    @asynccontextmanager
    async def turn(
        self, request: TurnRequest, host: TurnHost
    ) -> AsyncIterator[AsyncIterator[RunEvent]]:
        """Attach a file, and say so."""
        yield _events(request.inputs[0].text, host)


async def _events(name: str, host: TurnHost) -> AsyncIterator[RunEvent]:
    await host.attach(f"{name}.txt", f"content of {name}".encode(), caption="as asked")
    yield TextBlock("1", name)
    yield Finished()


@asynccontextmanager
async def open_maker(config: MakerConfig, host: Host) -> AsyncIterator[Maker]:
    """Make the runtime."""
    del config, host
    yield Maker()
