"""What a profile may use in a day: where a turn ends, and what is refused behind it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import pytest

from dragoman import Finished, TextBlock, ToolStarted, Usage
from dragoman.flow.budgets import SPENT_NOTICE
from dragoman.manifest.model import Access, Budget, Profile, Route
from dragoman.testing import ScriptedRuntime, StubPlugin, VirtualClock
from stage import gateway

pytestmark = pytest.mark.anyio

STOPPED = "*(this has cost as much as it may, and was stopped)*"


async def answers(request: Any, host: Any) -> Any:
    """Say something, and use a hundred tokens for it."""
    yield TextBlock("1", "done")
    yield tokens(100)
    yield Finished()


async def steps(request: Any, host: Any) -> Any:
    """Use sixty tokens and thirty cents for each of three steps."""
    yield TextBlock("1", "begun")
    for number in (1, 2, 3):
        yield tokens(60 * number, 0.3 * number)
        yield ToolStarted(f"call_{number}", "look")
    yield Finished()


def tokens(number: int, cost: float | None = None) -> Usage:
    """Return that many tokens of one request."""
    return Usage(requests=1, input_tokens=number - 1, output_tokens=1, cost=cost)


def profile(**budget: Any) -> dict[str, Profile]:
    """Return one profile with this budget."""
    return {"default": Profile(runtime="scripted", budget=Budget(**budget))}


async def test_what_is_beyond_the_budget_is_refused_and_people_are_told() -> None:
    """D14: an answer that is there is shown; the next message begins no turn."""
    plugin = StubPlugin()
    plugin.runtimes["scripted"] = ScriptedRuntime(answers)
    async with gateway(plugin, profiles=profile(tokens=150)) as stage:
        for text in ("one", "two", "three"):
            await stage.platform.say(text, channel="1", user="7")
            await stage.until_final()
        assert stage.platform.shown("1") == ["done", "done", SPENT_NOTICE]
        assert await stage.states("inbound_events") == ["answered", "answered", "refused"]
        reasons = await stage.states("inbound_events", "reason")
        assert reasons[-1] == "the budget of profile default is used up"
        await stage.platform.say("/usage", channel="1", user="7")
        await stage.platform.until_count(4, "1")


@pytest.mark.parametrize("budget", [{"tokens": 100}, {"cost": 0.5}])
async def test_a_turn_is_stopped_before_its_next_step(budget: Any) -> None:
    """D14: what reaches the budget is the last; what was said by then stays."""
    plugin = StubPlugin()
    plugin.runtimes["scripted"] = ScriptedRuntime(steps)
    async with gateway(plugin, profiles=profile(**budget)) as stage:
        await stage.platform.say("work", channel="1", user="7")
        await stage.until_final()
        assert stage.platform.shown("1")[-1].endswith(STOPPED)
        assert await stage.rows("SELECT failure FROM agent_runs") == [("budget",)]
        assert await stage.rows("SELECT sum(requests) FROM turn_usage") == [(1,)]
        assert await stage.rows("SELECT sum(input_tokens + output_tokens) FROM turn_usage") == [
            (120,)
        ]


async def test_what_waited_behind_the_turn_that_used_it_up_begins_nothing() -> None:
    """D14: it was let in while there was something left; its turn ends before its runtime runs."""
    plugin, gate = StubPlugin(), anyio.Event()

    async def slowly(request: Any, host: Any) -> Any:
        await gate.wait()
        yield TextBlock("1", "done")
        yield tokens(100)
        yield Finished()

    plugin.runtimes["scripted"] = ScriptedRuntime(slowly)
    async with gateway(plugin, profiles=profile(tokens=50)) as stage:
        for text in ("one", "two"):
            await stage.platform.say(text, channel="1", user="7")
        await stage.until("inbound_events", ["adopted", "queued"])
        gate.set()
        await stage.until_final()
        assert stage.platform.shown("1") == ["done", STOPPED]
        assert len(stage.runtime.requests) == 1


async def test_a_budget_is_one_profiles_and_one_days(tmp_path: Any) -> None:
    """D14: another profile answers meanwhile, a restart forgets nothing, the next day is new."""
    profiles = {
        "default": Profile(runtime="scripted", budget=Budget(tokens=50)),
        "other": Profile(runtime="scripted", budget=Budget(tokens=1000)),
    }
    start = datetime(2026, 3, 4, 22, 0, tzinfo=UTC)
    seen: list[list[str]] = []
    plugin = StubPlugin()
    plugin.runtimes["scripted"] = ScriptedRuntime(answers)
    for later in (timedelta(0), timedelta(hours=1), timedelta(hours=3)):
        clock = VirtualClock(start + later)
        async with gateway(
            plugin,
            store=tmp_path / "store.db",
            clock=clock,
            profiles=profiles,
            routes=(Route(profile="other", channel="2"),),
            access=Access(users=("stub:7",)),
        ) as stage:
            for channel in ("1", "2"):
                await stage.platform.say("hello", channel=channel, user="7")
            await clock.advance(5)
            await stage.quiet()
            seen.append([stage.platform.shown(channel)[-1] for channel in ("1", "2")])
    assert seen == [["done", "done"], [SPENT_NOTICE, "done"], ["done", "done"]]
