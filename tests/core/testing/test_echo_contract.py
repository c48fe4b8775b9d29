"""The echo runtime keeps the contract of runtimes, as far as an echo has to do with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import pytest

from dragoman import Component
from dragoman.echo import EchoConfig, dragoman_runtimes
from dragoman.testing.runtime_suite import ABILITIES, Line, RuntimeSuite, Step


@attrs.define(eq=False)
class EchoHarness:
    """There is nothing behind an echo."""

    secrets: tuple[str, ...] = ()
    cannot: dict[str, str] = attrs.field(
        factory=lambda: dict.fromkeys(ABILITIES, "there is no backend behind an echo")
    )

    @property
    def component(self) -> Component[Any, Any]:
        [found] = dragoman_runtimes()
        return found

    def config(self, *, reachable: bool = True, hasty: bool = False) -> EchoConfig:
        assert reachable
        return EchoConfig(word_delay=0.001)

    def script(self, said: str, *steps: Step) -> None:
        raise NotImplementedError

    async def release(self) -> None:
        raise NotImplementedError

    async def asked(self) -> Sequence[Sequence[Line]]:
        raise NotImplementedError

    async def models(self) -> Sequence[str]:
        raise NotImplementedError

    async def effects(self) -> Sequence[str]:
        raise NotImplementedError

    async def busy(self) -> int:
        raise NotImplementedError


class TestEcho(RuntimeSuite):
    @pytest.fixture
    def harness(self) -> EchoHarness:
        return EchoHarness()
