"""What the suite gives a runtime as its way back decides as the gateway's own does."""

from __future__ import annotations

import logging
from typing import Any

import attrs
import pytest

from dragoman import StaleLease, ToolBegins, ToolCall
from dragoman.flow.leases import Leases
from dragoman.flow.turnhost import FencedTurnHost
from dragoman.store.sqlite import open_sqlite
from dragoman.testing import VirtualClock
from dragoman.testing.runtime_turnhost import SuiteSession, SuiteTurnHost
from dragoman.testing.store_scene import Scene

pytestmark = pytest.mark.anyio
FIRST = [("1", "a", True), ("2", "a", False), ("3", '{"x": 1,  "y": 2}', True), ("4", "a", True)]
SECOND = [("7", "a", False), ("8", "a", False), ("9", '{"y": 2, "x": 1}', False), ("10", "b", True)]


async def decisions(host: Any, calls: list[tuple[str, str, bool]]) -> list[tuple[str, str]]:
    """Begin calls, end those that are to end, twice; return what was decided."""
    made = []
    for call_id, arguments, ends in calls:
        found = await host.tool_begins(ToolCall(call_id, "look", arguments, read_only=True))
        made.append((type(found).__name__, getattr(found, "result", "")))
        if ends and isinstance(found, ToolBegins):
            await host.tool_ended(found, f"result of {call_id}")
            await host.tool_ended(found, "another result")
    return made


async def remember(host: Any) -> list[list[str]]:
    records, seen = host.records("space"), []
    await records.append(["1", "2", "3"])
    seen.append(list(await records.read(2)))
    await records.new_generation(["4"])
    await records.append(["5"])
    await records.append([])
    return [*seen, list(await records.read()), list(await host.records("other").read(0))]


async def refusals(host: Any) -> list[str]:
    """Return which calls a host refuses that has lost its session."""
    begins = ToolBegins("call", "effect")
    calls = {
        "append": lambda: host.records("space").append(["6"]),
        "new_generation": lambda: host.records("space").new_generation(),
        "records": lambda: host.records("space").read(),
        "tool_begins": lambda: host.tool_begins(ToolCall("9", "look", "{}")),
        "tool_ended": lambda: host.tool_ended(begins, "result"),
        "offered": host.offered,
    }
    refused = []
    for name, call in calls.items():
        try:
            await call()
        except StaleLease:
            refused.append(name)
    return refused


async def test_both_hosts_decide_the_same():
    suite = SuiteTurnHost(SuiteSession("s"), "turn")
    async with open_sqlite(None) as store:
        scene, clock = Scene(store), VirtualClock()
        leases = Leases("me", store, clock, logging.getLogger("test"))

        def fenced(grant: Any) -> Any:
            return FencedTurnHost(store, clock, leases, grant, None, None, None, None)  # type: ignore[arg-type]

        grant = await scene.running()
        core = fenced(grant)
        first = await decisions(core, FIRST)
        assert await decisions(suite, FIRST) == first
        assert await remember(core) == await remember(suite)

        [again] = (await store.apply(scene.recover())).again
        lost = await refusals(core)
        suite.lost = True
        assert (
            await refusals(suite)
            == lost
            == ["append", "new_generation", "tool_begins", "tool_ended"]
        )
        second = await decisions(fenced(again), SECOND)
    assert await decisions(suite.after_a_crash(), SECOND) == second
    assert second == [
        ("ToolRecorded", "result of 1"),
        ("ToolBegins", ""),
        ("ToolRecorded", "result of 3"),
        ("ToolBegins", ""),
    ]


async def test_a_side_effect_without_its_entry_is_found():
    done: list[str] = []

    async def effects() -> list[str]:
        return done

    host = SuiteTurnHost(SuiteSession("s"), "turn", effects)
    call = ToolCall("1", "act", '{"what": "it"}')
    assert isinstance(await host.tool_begins(call), ToolBegins)
    done.append("it")
    assert isinstance(await host.tool_begins(attrs.evolve(call, call_id="2")), ToolBegins)
    assert host.wrong == []
    done += ["it", "it"]
    await host.tool_begins(attrs.evolve(call, call_id="3"))
    assert host.wrong == ["act had its effect before the journal said so"]
    await host.tool_ended(ToolBegins("no", "such"), "result")
    assert len(host.wrong) == 2
