"""A channel's rate is never exceeded, and those who wait go in order of priority and arrival."""

import itertools
import random

import anyio
import pytest

from dragoman import Address, Place, Rate
from dragoman.outbox.limits import COSMETIC_SECONDS, MARGIN, Limits, Priority
from dragoman.testing import VirtualClock
from stage import can

pytestmark = pytest.mark.anyio

FORUM = Rate(20, 60.0)


def thread(number, channel="1", place=Place.GROUP):
    return Address("stub", channel, str(number), place=place)


def limits_of(clock, **capabilities):
    return Limits(clock, can(**capabilities))


def most(times, rate):
    """Return how many calls the fullest window of a rate has."""
    return max(sum(at <= other < at + rate.seconds for other in times) for at in times)


@pytest.mark.parametrize("rate", [FORUM, Rate(1, 1.0), Rate(2, 3.0), Rate(5, 5.0)])
@pytest.mark.parametrize("seed", range(5))
async def test_fc_edt_04_no_window_is_ever_overfull_whoever_calls(rate, seed):
    """FC-EDT-04: lanes that begin, wait and give up at random; finals wait for no preview."""
    clock = VirtualClock()
    limits = limits_of(clock, group_rate=rate)
    chance = random.Random(seed)
    calls, waited = [], []

    async def lane(number):
        for priority in chance.choices(list(Priority)[:3], (1, 1, 8), k=30):
            await clock.sleep(chance.random() * rate.seconds / rate.calls * 4)
            patience = chance.choice([rate.seconds / 2, rate.seconds * 100])
            begin = clock.boot()
            while wait := limits.claim(thread(number), "send", priority):
                if priority is Priority.PREVIEW and clock.boot() - begin > patience:
                    break
                await clock.sleep(wait)
            if not wait:
                calls.append(clock.boot())
                waited.append((priority, clock.boot() - begin))

    async with anyio.create_task_group() as tasks:
        for number in range(4):
            tasks.start_soon(lane, number)
        await clock.advance(rate.seconds / rate.calls * 200)
        tasks.cancel_scope.cancel()
    assert len(calls) > 60
    assert most(calls, rate) <= rate.calls
    finals = [seconds for priority, seconds in waited if priority is Priority.FINAL]
    # Four lanes: each has three others before it at the most, and each needs one place.
    assert max(finals) <= (rate.seconds + MARGIN) * max(1, 4 / rate.calls)


async def test_a_final_finds_the_room_that_previews_leave():
    """Design §5: fifteen previews of a group's twenty calls, spread over the minute; five finals go
    at once, in any lane."""
    clock = VirtualClock()
    limits = limits_of(clock, group_rate=FORUM)
    previews = []
    for number in range(5900):
        while not limits.claim(thread(0), "edit", Priority.PREVIEW):
            previews.append(number // 100)
        await clock.advance(0.01)
    assert previews == [0] * 5 + [20] * 5 + [40] * 5
    assert limits.claim(thread(30), "typing", Priority.COSMETIC) > 0
    assert [limits.claim(thread(40 + n), "send") for n in range(5)] == [0.0] * 5
    assert limits.claim(thread(50), "send") == pytest.approx(1 + MARGIN)
    assert limits.claim(thread(0, channel="2"), "send") == 0.0


async def test_those_who_wait_go_by_priority_and_then_in_the_order_of_their_asking():
    """Invariant 11: nobody is passed for ever; who asks again keeps the place."""
    clock = VirtualClock()
    limits = limits_of(clock, group_rate=Rate(1, 10.0))
    order = []

    async def waiter(number, priority):
        while wait := limits.claim(thread(number), "edit", priority):
            await clock.sleep(wait)
        order.append(number)

    async with anyio.create_task_group() as tasks:
        for number, priority in enumerate(
            [Priority.PREVIEW] * 4 + [Priority.NOTICE] * 2 + [Priority.FINAL] * 2
        ):
            tasks.start_soon(waiter, number, priority)
            await clock.advance(0.1)
        await clock.advance(200)
    assert order == [0, 6, 7, 4, 5, 1, 2, 3]


async def test_a_place_that_nobody_comes_for_is_given_to_the_next():
    clock = VirtualClock()
    limits = limits_of(clock, group_rate=Rate(1, 10.0))
    assert limits.claim(thread(0), "edit") == 0
    first = limits.claim(thread(1), "edit")
    assert limits.claim(thread(2), "edit") == 2 * first
    await clock.advance(first + 2)
    assert limits.claim(thread(2), "edit") == 0


async def test_a_direct_chat_has_its_own_rate_and_so_has_a_group():
    clock = VirtualClock()
    for place, rates, bears in (
        (Place.DM, {"rate": Rate(2, 9), "group_rate": Rate(5, 9)}, 2),
        (Place.GROUP, {"rate": Rate(2, 9), "group_rate": Rate(5, 9)}, 5),
        (Place.CHANNEL, {"rate": Rate(2, 9)}, 2),
        (Place.DM, {"group_rate": Rate(5, 9)}, 50),
    ):
        limits = limits_of(clock, **rates)
        found = [limits.claim(thread(n, place=place), "send") for n in range(50)]
        assert found.count(0.0) == bears


async def test_invariant_10_an_idle_channel_is_forgotten():
    """Invariant 10: three thousand channels, and lanes that gave up waiting in a busy one."""
    clock = VirtualClock()
    limits = limits_of(clock, rate=Rate(1, 5.0))
    for number in range(3000):
        limits.claim(thread(0, channel=str(number), place=Place.DM), "send")
        limits.claim(thread(number, channel="busy", place=Place.DM), "send")
        limits.close(thread(0, channel=str(number)), "send", "channel", 1.0)
        await clock.advance(0.1)
    assert len(limits._windows) <= 60
    assert len(limits._until) <= 12
    busy = limits._windows["", "busy"]
    assert len(busy.waiting) <= 120
    assert len(busy.calls) == 1


async def test_cosmetic_calls_of_one_channel_come_one_by_one_and_cost_no_room():
    clock = VirtualClock()
    limits = limits_of(clock, group_rate=FORUM)
    found = [limits.claim(thread(n), "typing", Priority.COSMETIC) for n in range(26)]
    assert found == [0.0] + [COSMETIC_SECONDS] * 25
    assert limits._windows == {}
    times = []
    for at in itertools.count():
        if limits.claim(thread(at), "send"):
            break
        times.append(at)
    assert len(times) == 20
