"""A runtime that knows what its records say, and tells all of it with each answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import attrs

from dragoman import (
    EncodedInput,
    Finished,
    Host,
    RunEvent,
    RuntimeCapabilities,
    TextBlock,
    TurnHost,
    TurnInput,
    TurnRequest,
)

NAMESPACE: Final = "diary"


@attrs.frozen
class DiaryConfig:
    """The ``[runtimes.…]`` table."""


@attrs.frozen
class Diary:
    """The runtime. It changes nothing outside, so a turn may be run again."""

    capabilities: RuntimeCapabilities = attrs.field(
        init=False,
        factory=lambda: RuntimeCapabilities(stream=True, journal=True, history=(NAMESPACE,)),
    )

    def encode_input(self, message: TurnInput) -> EncodedInput:
        """Keep what was said."""
        return EncodedInput(NAMESPACE, message.text)

    @asynccontextmanager
    async def turn(
        self, request: TurnRequest, host: TurnHost
    ) -> AsyncIterator[AsyncIterator[RunEvent]]:
        """Answer with the number of the event and all that is known."""
        yield self._events(request, host)

    async def _events(self, request: TurnRequest, host: TurnHost) -> AsyncIterator[RunEvent]:
        known = await host.records(NAMESPACE).read()
        await host.records(NAMESPACE).append(["."])
        yield TextBlock("1", f"{request.inputs[0].event_id}: {' '.join(known)}")
        yield Finished()


@asynccontextmanager
async def open_diary(config: DiaryConfig, host: Host) -> AsyncIterator[Diary]:
    """Make the runtime."""
    del config, host
    yield Diary()
