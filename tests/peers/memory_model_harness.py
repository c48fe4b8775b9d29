"""The harness with which runtimes of the model in memory are judged."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import attrs

from dragoman import Component, Host, Secret
from dragoman.testing.runtime_suite import Line, Step
from peers.memory_model import KEY, Model
from peers.memory_runtime import MemoryRuntime, ModelConfig


@attrs.define(eq=False)
class MemoryModelHarness:
    """The model in memory, with a runtime to judge."""

    make: Callable[[Model, Host, ModelConfig], Any] = MemoryRuntime
    model: Model = attrs.field(factory=Model)
    backends: tuple[str, ...] = ("asyncio", "trio")
    cannot: dict[str, str] = attrs.field(factory=dict)
    secrets: tuple[str, ...] = (KEY,)

    @property
    def component(self) -> Component[ModelConfig, Any]:
        @asynccontextmanager
        async def open_memory(config: ModelConfig, host: Host) -> AsyncIterator[Any]:
            yield self.make(self.model, host, config)

        return Component("memory", ModelConfig, open_memory, self.backends)

    def config(self, *, reachable: bool = True, hasty: bool = False) -> ModelConfig:
        self.model.down = not reachable
        return ModelConfig(Secret("a test", KEY), 0.05 if hasty else 60.0)

    def script(self, said: str, *steps: Step) -> None:
        self.model.book.add(said, steps)

    async def release(self) -> None:
        self.model.release()

    async def asked(self) -> Sequence[Sequence[Line]]:
        return self.model.asked

    async def models(self) -> Sequence[str]:
        return self.model.models

    async def effects(self) -> Sequence[str]:
        return self.model.effects

    async def busy(self) -> int:
        return self.model.busy
