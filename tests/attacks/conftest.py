"""Attacks: each from the outside, over the wire of a platform, against a whole gateway."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final

import attrs
import pytest

from dragoman import (
    ApprovalRequested,
    Component,
    Finished,
    Paused,
    RuntimeCapabilities,
    TextBlock,
    hookimpl,
)
from dragoman.manifest.model import Access
from dragoman.testing import ScriptedRuntime, StubPlugin
from dragoman.testing.platform import StubConfig
from peers.wires import WIRES, Wire
from stage import Stage, eventually, gateway

CAN: Final = RuntimeCapabilities(approve=True, resume=True, journal=True)


@attrs.define(eq=False)
class Target:
    """A gateway under attack, and what its agent was given and did."""

    wire: Any
    stage: Stage
    log: pytest.LogCaptureFixture
    ran: list[str]
    """The channels in which the tool ran."""

    @property
    def given(self) -> list[str]:
        """What the agent was told, message by message."""
        return [one.words for asked in self.stage.runtime.requests for one in asked.inputs]

    async def events(self, kind: str = "message") -> list[tuple[int, str, str]]:
        """Return id, state and reason of all events of a kind, oldest first."""
        return [
            (number, state, reason)
            for number, state, reason in await self.stage.rows(
                "SELECT id, state, reason FROM inbound_events"
                " WHERE event ->> '$.kind' = ? ORDER BY id",
                kind,
            )
        ]

    async def until_ended(self, count: int, kind: str = "message") -> list[tuple[int, str, str]]:
        """Wait until so many events of a kind have ended; return them."""

        async def ended() -> int:
            open_ = {"received", "held", "queued", "adopted"}
            return sum(state not in open_ for _, state, _ in await self.events(kind))

        await eventually(ended, count)
        return await self.events(kind)

    def lines_about(self, event: int) -> list[str]:
        """Return what the log says of an event."""
        return [
            record.getMessage()
            for record in self.log.records
            if (record.name.startswith("dragoman") and getattr(record, "event", "") == str(event))
            or f"event {event}:" in record.getMessage()
        ]

    async def card(self, room: str) -> Any:
        """Let Ada ask for a refund; return the card that comes."""
        self.wire.say(room, "refund")

        async def there() -> int:
            return sum(bool(one.buttons) for one in self.wire.shown(room))

        await eventually(there, 1)
        [card] = [one for one in self.wire.shown(room) if one.buttons]
        return card


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=WIRES)
def wire(request: pytest.FixtureRequest) -> Iterator[Wire]:
    made = WIRES[request.param]()
    with made.fake:
        yield made


Attack = Callable[..., AbstractAsyncContextManager[Target]]


@pytest.fixture
def target(wire: Wire, caplog: pytest.LogCaptureFixture) -> Attack:
    """Opens a gateway on the wire: ``target(answer=…, access=…, **manifest)``."""
    caplog.set_level("INFO", logger="dragoman")

    @asynccontextmanager
    async def opened(
        answer: str = "hello", access: Access | None = None, **manifest: Any
    ) -> AsyncIterator[Target]:
        ran: list[str] = []
        plugin = OnPlatform(wire.open, runtimes={"scripted": scripted(answer, ran)})
        access = access or Access(users=tuple(map(listed, wire.users)))
        async with gateway(plugin, access=access, **manifest) as stage:
            await wire.fake.reached(wire.connected)
            yield Target(wire, stage, caplog, ran)

    return opened


def listed(user: str) -> str:
    """Return how the list of a gateway names a person whose platform is a stub's."""
    return f"stub:{user.partition(':')[2]}"


def scripted(answer: str, ran: list[str]) -> ScriptedRuntime:
    """Return an agent that asks before a refund, and answers everything else alike."""

    async def script(request: Any, host: Any) -> Any:
        del host
        if "refund" not in request.inputs[0].text:
            yield TextBlock("1", answer)
        elif request.saved is None:
            yield ApprovalRequested("call_1", "refund", "{}")
            yield Paused("a state")
            return
        else:
            if request.decisions[0].verdict.value == "approved":
                ran.append(request.address.channel)
            yield TextBlock("1", f"refund {request.decisions[0].verdict.value}")
        yield Finished()

    return ScriptedRuntime(script, capabilities=CAN)


class OnPlatform(StubPlugin):
    """A plugin whose one platform is a real one."""

    def __init__(self, opens: Callable[[Any], Any], **more: Any) -> None:
        super().__init__(**more)
        self.opens = opens

    @hookimpl
    def dragoman_platforms(self) -> Any:
        @asynccontextmanager
        async def opened(config: Any, host: Any) -> AsyncIterator[Any]:
            del config
            async with self.opens(host) as platform:
                yield platform

        yield Component("stub", StubConfig, opened)


@pytest.fixture
def on_platform() -> type[OnPlatform]:
    return OnPlatform
