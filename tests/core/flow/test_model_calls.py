"""Calls of models, beside the run: no turn waits for them, and none is written twice."""

import json
import math
import sqlite3
from datetime import UTC, datetime

import anyio
import anyio.lowlevel
import pytest

from dragoman import Failed, FailureKind, Finished, ModelCall, TextBlock, Usage
from dragoman.flow import modelcalls
from dragoman.manifest.model import Limits
from dragoman.store.operations import KeepCalls
from dragoman.store.writer import EXECUTORS
from dragoman.testing import ScriptedRuntime, StubPlugin, VirtualClock
from stage import gateway

pytestmark = pytest.mark.anyio
BEGUN = datetime(2026, 1, 2, tzinfo=UTC)


def call(sent="", **changes):
    values = {"model": "large", "begun_at": BEGUN, "outcome": "completed", "sent": sent}
    return ModelCall(**{**values, **changes})


def body(*texts):
    return json.dumps({"model": "large", "input": list(texts)})


def scripted(script):
    return StubPlugin(runtimes={"scripted": ScriptedRuntime(script)})


async def kept(stage):
    return await stage.rows(
        "SELECT turn_id, model, outcome, request_id, pieces IS NOT NULL FROM model_calls"
    )


async def test_the_calls_of_a_short_turn_come_with_its_end():
    """A10: no commit of their own, and none before the model is asked."""

    async def script(request, host):
        host.model_called(call(body("a"), request_id="req_1"))
        host.model_called(call(body("a", "b"), request_id="req_2", outcome="status 500"))
        yield Usage(1, 5, 2, "large", cost=0.25)
        yield Usage(1, 1, 1, "small")
        yield Usage(2, 9, 4, "large", cost=0.5)
        yield TextBlock("1", "hello")
        yield Finished()

    async with gateway(scripted(script)) as stage:
        before = stage.app.store.commits
        await stage.platform.say("go")
        await stage.until_final()
        assert stage.app.store.commits - before <= 4
        (turn,) = await stage.states("agent_runs", "id")
        assert await kept(stage) == [
            (turn, "large", "completed", "req_1", 1),
            (turn, "large", "status 500", "req_2", 1),
        ]
        used = "SELECT model, requests, input_tokens, cost FROM turn_usage ORDER BY model"
        assert await stage.rows(used) == [("large", 2, 9, 0.5), ("small", 1, 1, None)]


async def found(stage, count):
    """Wait until so many are kept: the clock knows nothing of the thread that cuts a long one."""
    with anyio.fail_after(30):
        while len(rows := await kept(stage)) < count:
            await anyio.lowlevel.checkpoint()
    return rows


@pytest.mark.parametrize("length", [1, 100_000])
async def test_those_of_a_long_turn_are_written_while_it_runs(length):
    """A10: a crash loses the last second; a long request is cut in a thread of its own."""
    clock = VirtualClock()

    async def script(request, host):
        host.model_called(call(body("a" * length)))
        await clock.sleep(10)
        host.model_called(call(body("a" * length, "b")))
        await clock.sleep(10)
        yield Finished()

    async with gateway(scripted(script), clock=clock) as stage:
        await stage.platform.say("go")
        await stage.quiet()
        assert await kept(stage) == []
        await clock.advance(modelcalls.GATHERED)
        assert len(await found(stage, 1)) == 1
        await clock.advance(9.5)
        assert len(await kept(stage)) == 1
        await clock.advance(modelcalls.GATHERED)
        assert len(await found(stage, 2)) == 2
        assert await stage.states("agent_runs") == ["running"]


async def test_those_of_a_turn_that_fails_or_hangs_are_kept():
    """A10: they are wanted most where something went wrong."""
    clock = VirtualClock()

    async def script(request, host):
        host.model_called(call(body("a")))
        if request.inputs[0].text == "hang":
            await clock.sleep(1000)
        yield Failed(FailureKind.TRANSPORT)

    async with gateway(
        scripted(script), clock=clock, limits=Limits(grace=0.5, turn_timeout=0.5)
    ) as stage:
        await stage.platform.say("fail")
        await stage.quiet()
        await stage.platform.say("hang")
        await stage.quiet()
        await clock.advance(0.6)
        assert await stage.states("agent_runs") == ["failed", "failed"]
        assert len(await kept(stage)) == 2


async def test_a_store_that_does_not_take_them_costs_no_turn(monkeypatch):
    """Invariant 11: the run goes on, and its end is written."""
    clock = VirtualClock()

    async def script(request, host):
        host.model_called(call(body("a")))
        await clock.sleep(5)
        yield TextBlock("1", "hello")
        yield Finished()

    async def refuse(tx, batch):
        raise sqlite3.OperationalError("full")

    monkeypatch.setitem(EXECUTORS, KeepCalls, refuse)
    async with gateway(scripted(script), clock=clock) as stage:
        await stage.platform.say("go")
        await stage.quiet()
        await clock.advance(6)
        assert await stage.states("agent_runs") == ["succeeded"]
        assert await kept(stage) == []


async def test_what_waits_for_the_store_is_bounded(monkeypatch):
    """Invariant 10: of what comes then, the request is not kept, and at last not the call."""
    monkeypatch.setattr(modelcalls, "WAITING", 100)
    monkeypatch.setattr(modelcalls, "CALLS", 3)

    async def script(request, host):
        for _ in range(5):
            host.model_called(call(body("a" * 50)))
        yield Finished()

    async with gateway(scripted(script)) as stage:
        await stage.platform.say("go")
        await stage.until_final()
        assert [row[4] for row in await kept(stage)] == [1, 0, 0]


async def test_models_that_a_run_names_are_bounded():
    """Invariant 10."""

    async def script(request, host):
        for number in range(1000):
            yield Usage(1, model=f"m{number}")
        yield Finished()

    async with gateway(scripted(script)) as stage:
        await stage.platform.say("go")
        await stage.until_final()
        assert await stage.rows("SELECT count(*) FROM turn_usage") == [(50,)]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Usage(-1),
        lambda: Usage(0.5),
        lambda: Usage(requests=None),
        lambda: Usage(cost=math.nan),
        lambda: Usage(cost=math.inf),
        lambda: call(model=None),
        lambda: call(begun_at=1.0),
    ],
)
async def test_a_runtime_that_counts_wrong_hears_of_it_itself(wrong):
    """D13: its turn fails; nothing that cannot be stored comes as far as the turn's end."""

    async def script(request, host):
        wrong()
        yield Finished()

    async with gateway(scripted(script)) as stage:
        await stage.platform.say("go")
        await stage.until_final()
        assert await stage.states("agent_runs") == ["failed"]
