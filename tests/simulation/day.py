"""Twenty-four hours of a gateway: the real application, store and adapter; time and network are ours."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from typing import Any, Final, Protocol

import anyio
import attrs
import httpx2
import pytest
from anyio.abc import TaskGroup

from dragoman.flow.supervise import CAP
from dragoman.manifest.model import Access, ComponentTable, Profile
from dragoman.testing import VirtualClock, settle
from simulation.network import connected_to
from stage import Stage, gateway

HOURS: Final = 24
ECHO: Final = {"default": Profile(runtime="echo")}
LONGEST: Final = 2 * CAP
"""Seconds until the gateway has to be back when the weather has cleared."""


class Service(Protocol):
    """A platform in memory."""

    clock: VirtualClock
    tasks: TaskGroup | None

    def say(self, text: str) -> None: ...

    def answers(self) -> list[str]: ...

    def weather(self) -> Iterator[str]: ...

    def calm(self) -> float: ...

    def half_open(self) -> bool: ...

    async def handle(self, request: httpx2.Request) -> httpx2.Response: ...


@attrs.define
class Report:
    """What a day came to."""

    faults: int = 0
    said: int = 0
    slowest: float = 0.0
    slowest_after: str = ""


async def live_through(
    service: Service, plugin: Any, config: Any, users: tuple[str, ...], patch: pytest.MonkeyPatch
) -> Report:
    """Run a gateway for a day; after every fault a person has to be answered in time."""
    patch.setattr(httpx2, "AsyncClient", connected_to(service.handle))
    clock, report = service.clock, Report()
    random.seed(7)  # jitter: a day that passes once passes again
    name = plugin.__name__.removeprefix("dragoman_")
    table = ComponentTable(kind="platforms", id=name, plugin=name, config=config)
    before = asyncio.all_tasks()
    async with anyio.create_task_group() as tasks:
        service.tasks = tasks
        async with gateway(
            clock=clock,
            components=[table],
            plugins={name: plugin},
            access=Access(users=users),
            profiles=ECHO,
        ) as stage:
            weather = service.weather()
            while clock.boot() < HOURS * 3600:
                await clock.advance(600)
                what = next(weather)
                report.faults += 1
                await clock.advance(service.calm())
                assert not service.half_open(), "the adapter trusts a connection that is dead"
                await answered(service, stage, report, what)
        await settle()
        own = type(service).__name__
        left = [one for one in asyncio.all_tasks() - before if own not in one.get_name()]
        assert left == [], f"left behind: {left}"
        tasks.cancel_scope.cancel()
    return report


async def answered(service: Service, stage: Stage, report: Report, what: str) -> None:
    """Say something, and wait until it is answered once."""
    report.said += 1
    text = f"number {report.said}"
    service.say(text)
    took = 0.0
    while text not in service.answers():
        assert took <= LONGEST, f"not answered {took:g} s after {what}: {service.answers()[-3:]}"
        await service.clock.advance(1)
        await stage.quiet()
        took += 1
    if took > report.slowest:
        report.slowest, report.slowest_after = took, what
    said = [f"number {number}" for number in range(1, report.said + 1)]
    assert service.answers() == said, "lost, doubled, or out of order"
