"""When calls may be made, by what answers say; on a virtual clock."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from dragoman import RateLimited
from dragoman.testing import VirtualClock, settle
from dragoman_discord.buckets import INVALID, KEPT, Buckets

pytestmark = pytest.mark.anyio
SEND, EDIT = "POST /channels/{channel}/messages", "PATCH /channels/{channel}/messages/{message}"


def told(left: int, after: float, bucket: str = "abc") -> dict[str, str]:
    return {
        "x-ratelimit-remaining": str(left),
        "x-ratelimit-reset-after": str(after),
        "x-ratelimit-bucket": bucket,
    }


async def test_a_used_up_bucket_is_waited_for_or_left_to_core() -> None:
    clock = VirtualClock()
    buckets = Buckets(clock)
    buckets.learn(SEND, "1", told(0, 0.8))
    entered = anyio.Event()

    async def call() -> None:
        async with buckets.turn(SEND, "1"):
            entered.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        await clock.advance(0.7)
        assert not entered.is_set()
        await clock.advance(0.2)
        assert entered.is_set()
    buckets.learn(SEND, "1", told(0, 5.0))
    with pytest.raises(RateLimited) as caught:
        await call()
    assert (caught.value.retry_after, caught.value.scope) == (pytest.approx(5.0), "method")


async def test_routes_share_a_bucket_where_discord_says_so_and_channels_never_do() -> None:
    buckets = Buckets(VirtualClock())
    buckets.learn(SEND, "1", told(3, 5.0))
    buckets.learn(EDIT, "1", told(0, 5.0))
    with pytest.raises(RateLimited):
        async with buckets.turn(SEND, "1"):
            pass
    for route in (SEND, EDIT):
        async with buckets.turn(route, "2"):
            pass


async def test_calls_of_one_bucket_go_one_after_the_other() -> None:
    buckets, order = Buckets(VirtualClock()), list[str]()
    gate = anyio.Event()

    async def first() -> None:
        async with buckets.turn(SEND, "1"):
            order.append("first")
            await gate.wait()
            order.append("first done")

    async def second() -> None:
        async with buckets.turn(SEND, "1"):
            order.append("second")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(first)
        await settle()
        tasks.start_soon(second)
        await settle()
        gate.set()
    assert order == ["first", "first done", "second"]


async def test_the_whole_bot_waits_but_for_answers_to_interactions() -> None:
    buckets = Buckets(VirtualClock())
    buckets.refused(SEND, "1", RateLimited(9.0, "instance"))
    with pytest.raises(RateLimited) as caught:
        async with buckets.turn(EDIT, "2"):
            pass
    assert caught.value.scope == "instance"
    async with buckets.turn("PATCH /webhooks/{application}/{token}", "t", free=True):
        pass


async def test_refused_calls_end_before_discord_shuts_the_address_out() -> None:
    clock = VirtualClock()
    buckets = Buckets(clock)
    for _ in range(INVALID):
        buckets.invalid()
    with pytest.raises(RateLimited) as caught:
        async with buckets.turn(SEND, "1"):
            pass
    assert caught.value.scope == "instance"
    await clock.advance(601)
    async with buckets.turn(SEND, "1"):
        pass


async def test_what_is_remembered_is_bounded() -> None:
    """Invariant 10."""
    buckets: Any = Buckets(VirtualClock())
    for number in range(KEPT * 2):
        async with buckets.turn(SEND, str(number)):
            pass
        buckets.learn(SEND, str(number), told(4, 0.0))
    assert len(buckets._buckets) <= KEPT + 1
