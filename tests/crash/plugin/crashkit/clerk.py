"""A runtime that does all that a chat can see: it tells at length, offers answers, copies files."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio
import attrs

from dragoman import (
    Finished,
    Host,
    RunEvent,
    RuntimeCapabilities,
    TextBlock,
    TextDelta,
    TurnHost,
    TurnInput,
    TurnRequest,
)

OFFERED: Final = ("Go on", "Enough")
OFFER: Final = "offer"
"""The word that asks for answers to choose from."""


@attrs.frozen
class ClerkConfig:
    """The ``[runtimes.…]`` table.

    ``words`` follow on what is answered, ``word_delay`` seconds apart. As long as the file ``hold``
    is there, every answer stops in its middle.
    """

    words: str = ""
    word_delay: float = 0.0
    hold: Path | None = None


@attrs.frozen
class Clerk:
    """The runtime. It changes nothing outside, so a turn may be run again."""

    _config: ClerkConfig
    _host: Host
    capabilities: RuntimeCapabilities = attrs.field(
        init=False, factory=lambda: RuntimeCapabilities(stream=True, journal=True)
    )

    def encode_input(self, message: TurnInput) -> None:
        """Keep no history."""
        del message

    @asynccontextmanager
    async def turn(
        self, request: TurnRequest, host: TurnHost
    ) -> AsyncIterator[AsyncIterator[RunEvent]]:
        """Answer the messages: a file with its copy, a word with that word."""
        yield self._events(request.inputs, host)

    async def _events(
        self, inputs: tuple[TurnInput, ...], host: TurnHost
    ) -> AsyncIterator[RunEvent]:
        heard = [await self._heard(one, host) for one in inputs]
        words = [*" ".join(heard).split(), *self._config.words.split()]
        for number, word in enumerate(words):
            if number == len(words) // 2:
                await self._held()
            yield TextDelta("1", f"{word} ")
            await self._host.clock.sleep(self._config.word_delay)
        yield TextBlock("1", " ".join(words))
        yield Finished()

    async def _heard(self, message: TurnInput, host: TurnHost) -> str:
        for reference, _ in message.files:
            file = await host.fetch(reference)
            content = await anyio.Path(file.path).read_bytes()
            await host.attach(f"copy-of-{file.name}", content)
            return f"copied {len(content)} bytes"
        if message.text == OFFER:
            await host.suggest(OFFERED)
        return f"heard {message.text}"

    async def _held(self) -> None:
        hold = self._config.hold
        while hold is not None and await anyio.Path(hold).exists():
            await self._host.clock.sleep(0.05)


@asynccontextmanager
async def open_clerk(config: ClerkConfig, host: Host) -> AsyncIterator[Clerk]:
    """Make the runtime."""
    yield Clerk(config, host)
