"""The echo runtime: answers with what was said. Needs no key; for trying out and for tests."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import asynccontextmanager

import attrs

from dragoman.clock import Clock
from dragoman.components import Component
from dragoman.hookspecs import hookimpl
from dragoman.hosting import Host
from dragoman.inputs import TurnInput
from dragoman.protocols import (
    EncodedInput,
    Runtime,
    RuntimeCapabilities,
    TurnHost,
    TurnRequest,
)
from dragoman.runevents import Finished, RunEvent, TextBlock, TextDelta


@attrs.frozen
class EchoConfig:
    """The ``[runtimes.…]`` table of the echo runtime."""

    prefix: str = attrs.field(default="", metadata={"help": "put in front of every answer"})
    word_delay: float = attrs.field(
        default=0.0,
        validator=attrs.validators.ge(0),
        metadata={"help": "seconds between two words; above zero the answer streams"},
    )


@attrs.frozen
class Echo:
    """Says everything again."""

    _config: EchoConfig
    _clock: Clock
    capabilities: RuntimeCapabilities = attrs.field(
        init=False, factory=lambda: RuntimeCapabilities(stream=True, journal=True)
    )

    def encode_input(self, message: TurnInput) -> EncodedInput | None:
        """Keep nothing: an echo has no history."""
        del message
        return None

    @asynccontextmanager
    async def turn(
        self, request: TurnRequest, host: TurnHost
    ) -> AsyncGenerator[AsyncIterator[RunEvent]]:
        """Run one turn."""
        del host
        yield self._events("\n".join(message.text for message in request.inputs))

    async def _events(self, text: str) -> AsyncIterator[RunEvent]:
        answer = self._config.prefix + text
        if self._config.word_delay > 0:
            for word in answer.split(" "):
                yield TextDelta("echo", word + " ")
                await self._clock.sleep(self._config.word_delay)
        yield TextBlock("echo", answer)
        yield Finished()


@asynccontextmanager
async def open_echo(config: EchoConfig, host: Host) -> AsyncGenerator[Echo]:
    """Open the runtime."""
    yield Echo(config, host.clock)


@hookimpl
def dragoman_runtimes() -> Iterable[Component[EchoConfig, Runtime]]:
    """Register the echo runtime."""
    yield Component("echo", EchoConfig, open_echo)
