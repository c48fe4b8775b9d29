"""A runtime that does what a test says."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

import attrs

from dragoman.inputs import TurnInput
from dragoman.protocols import EncodedInput, RuntimeCapabilities, TurnHost, TurnRequest
from dragoman.runevents import Finished, RunEvent, TextBlock

Script: TypeAlias = Callable[[TurnRequest, TurnHost], AsyncIterator[RunEvent]]
"""An async generator function: it yields the events of one turn."""


async def say_again(request: TurnRequest, host: TurnHost) -> AsyncIterator[RunEvent]:
    """Answer with what was said."""
    del host
    yield TextBlock("1", "\n".join(message.text for message in request.inputs))
    yield Finished()


@attrs.define(eq=False)
class ScriptedRuntime:
    """Runs ``script`` for each turn, and keeps what it was asked and how many ran at once.

    ``namespace`` is where inputs are recorded, as their text; empty records none.
    """

    script: Script = say_again
    namespace: str = ""
    capabilities: RuntimeCapabilities = attrs.field(
        factory=lambda: RuntimeCapabilities(stream=True)
    )
    requests: list[TurnRequest] = attrs.field(factory=list)
    running: int = 0
    most_at_once: int = 0

    def encode_input(self, message: TurnInput) -> EncodedInput | None:
        """Record the text, where a namespace is given."""
        return EncodedInput(self.namespace, message.text) if self.namespace else None

    @asynccontextmanager
    async def turn(
        self, request: TurnRequest, host: TurnHost
    ) -> AsyncGenerator[AsyncIterator[RunEvent]]:
        """Run the script."""
        self.requests.append(request)
        self.running += 1
        self.most_at_once = max(self.most_at_once, self.running)
        try:
            yield self.script(request, host)
        finally:
            self.running -= 1
