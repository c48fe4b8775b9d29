"""Limits with many lanes at work: what is scarce goes to whom it should, and nobody asks too often."""

import itertools

import anyio
import pytest

from dragoman import Address, Finished, Moved, Place, Rate, RateLimited, TextBlock, TextDelta
from dragoman.outbox.limits import MARGIN
from dragoman.states import DeliveryState
from dragoman.store.operations import Delivery
from dragoman.testing import VirtualClock
from dragoman.testing.platform import Message
from outboxes import outbox_of, watched
from stage import Limits, gateway

pytestmark = pytest.mark.anyio

GROUP = {"channel": "1", "place": Place.GROUP}


async def test_fc_edt_04_four_topics_that_stream_share_what_their_group_bears():
    """FC-EDT-04: twenty calls in any minute at the most; each final is there at once, and no topic
    waits longer for its next preview than until all others had theirs."""
    clock = VirtualClock()
    ended, seconds = {}, 130

    async def script(request, host):
        for number in range(seconds // 2):
            yield TextDelta("1", f"word{number} ")
            await clock.sleep(2)
        await clock.sleep(int(request.address.thread) / 7)
        ended[request.address.thread] = clock.boot()
        yield TextBlock("1", f"whole {request.address.thread}")
        yield Finished()

    rates = {"rate": Rate(5, 5.0), "group_rate": Rate(20, 60.0), "typing": True}
    plugin, platform = watched(clock, script, **rates)
    async with gateway(plugin, clock=clock) as stage:
        for thread in "1234":
            await platform.say("go", thread=thread, user="7", **GROUP)
        await clock.advance(seconds + 5)
        await stage.quiet()
        times = platform.times()
        assert max(sum(a <= at < a + 60 for at in times) for a in times) <= 20
        for thread in "1234":
            assert platform.shown("1", thread) == [f"whole {thread}"]
            calls = [one for one in platform.made if one[2].thread == thread and one[3]]
            assert calls[-1][0] - ended[thread] < 0.5
            assert calls[-1][3].final
            gaps = [b[0] - a[0] for a, b in itertools.pairwise(calls)]
            assert max(gaps) <= 24
        assert len(times) >= 30


async def test_fc_edt_04_a_long_stream_is_never_told_to_wait():
    """FC-EDT-04: 20,000 characters in a minute, where the 21st call of a minute costs 200 seconds;
    no call shows what is shown already, and the whole is there as soon as it is whole."""
    clock = VirtualClock()
    text = "".join(f"word{number} " for number in range(2000))

    async def script(request, host):
        for end in range(250, len(text), 250):
            yield TextDelta("1", text[end - 250 : end])
            await clock.sleep(0.8)
        yield TextBlock("1", text)
        yield Finished()

    plugin, platform = watched(clock, script, rate=Rate(20, 60.0))

    async def before(method, address, message):
        if sum(at > clock.boot() - 60 for at in platform.times()) > 20:
            raise RateLimited(200.0)

    platform.before = before
    async with gateway(plugin, clock=clock) as stage:
        await platform.say("go")
        await clock.advance(len(text) // 250 * 0.8 + 1)
        await stage.quiet()
        assert await stage.states("deliveries") == ["delivered"] * len(platform.messages)
        assert " ".join(platform.shown()).split() == text.split()
        for message in platform.messages:
            assert len(set(message.texts)) == len(message.texts)
        assert not await stage.rows("SELECT id FROM deliveries WHERE error <> ''")


async def test_a_final_that_waits_for_the_rate_is_pending_and_costs_no_attempt():
    """Invariant 5: killed meanwhile, it is known not to have been sent; invariant 11: only its own
    channel waits."""
    clock = VirtualClock()
    plugin, platform = watched(clock, rate=Rate(2, 10.0), edit=False)
    async with gateway(plugin, clock=clock) as stage:
        for number in range(3):
            await platform.say(str(number))
        await clock.advance(1)
        await stage.quiet()
        assert platform.shown() == ["0", "1"]
        assert await stage.states("deliveries") == ["delivered", "delivered", "pending"]
        await platform.say("other", channel="2")
        await stage.quiet()
        assert platform.shown("2") == ["other"]
        await clock.advance(10)
        await stage.quiet()
        assert platform.shown() == ["0", "1", "2"]
        assert platform.times()[-1] == 10 + MARGIN
        assert await stage.states("deliveries", "attempts") == [0, 1, 1, 0]


async def test_of_two_that_end_at_once_the_second_is_not_called_sent_while_it_waits():
    """Invariant 5: both saw the room, one took it; the other's row says that it waits."""
    clock = VirtualClock()
    both = anyio.Event()

    async def script(request, host):
        await both.wait()
        yield TextBlock("1", "whole")
        yield Finished()

    plugin, platform = watched(clock, script, group_rate=Rate(1, 10.0))
    async with gateway(plugin, clock=clock) as stage:
        for thread in "12":
            await platform.say("go", thread=thread, user="7", **GROUP)
        await stage.quiet()
        assert await stage.states("deliveries") == ["sending", "sending"]
        both.set()
        await stage.quiet()
        assert sorted(await stage.states("deliveries")) == ["delivered", "pending"]
        await clock.advance(11)
        await stage.quiet()
        assert platform.times() == [0, 10 + MARGIN]
        assert await stage.states("deliveries") == ["delivered", "delivered"]


def _part(number, channel, thread, native_id=""):
    return Delivery(
        id=f"msg_{number}",
        address=Address("stub", channel, thread),
        text=f"text {number}",
        state=DeliveryState.PENDING,
        native_id=native_id,
        ready_at=float(number),
    )


@pytest.mark.parametrize("seconds", [0.5, 2.25, 34.999])
@pytest.mark.parametrize(
    ("scope", "held"),
    [
        ("instance", {("1", "send"), ("1", "edit"), ("2", "send")}),
        ("channel", {("1", "send"), ("1", "edit")}),
        ("method", {("1", "send")}),
    ],
)
async def test_what_a_platform_asks_for_holds_exactly_the_scope_that_it_names(scope, held, seconds):
    """Invariant 11: lanes side by side, new messages and edits; to the fraction of a second."""
    clock = VirtualClock()
    plugin, platform = watched(clock)
    async with gateway(plugin, clock=clock) as stage:
        outbox = outbox_of(stage)
        old = Message("old", Address("stub", "1", "3"), ["before"], "msg_old")
        platform.messages.append(old)
        platform.faults.append(RateLimited(seconds, scope))
        await outbox.post(_part(0, "1", "1"))
        await stage.quiet()
        await outbox.post(_part(1, "1", "2"))
        await outbox.post(_part(2, "1", "3", "old"))
        await outbox.post(_part(3, "2", ""))
        await clock.advance(seconds - 0.001)
        await stage.quiet()
        early = {(where.channel, how) for _, how, where, _ in platform.made[1:]}
        assert early == {("1", "send"), ("1", "edit"), ("2", "send")} - held
        await clock.advance(0.001)
        await stage.quiet()
        assert {at for at, *_ in platform.made} <= {0.0, seconds}
        assert sorted(message.text for message in platform.messages if message is not old) == [
            "text 0",
            "text 1",
            "text 3",
        ]
        assert old.text == "text 2"
        assert len(platform.made) == 5


async def test_a_limit_at_the_new_address_of_a_chat_is_obeyed_too():
    clock = VirtualClock()
    plugin, platform = watched(clock)
    async with gateway(plugin, clock=clock) as stage:
        platform.faults += [Moved(Address("stub", "-100")), RateLimited(7.0)]
        await platform.say("hello")
        await clock.advance(6.9)
        assert len(platform.made) == 2
        await clock.advance(0.2)
        await stage.quiet()
        assert platform.shown("-100") == ["hello"]
        assert len(platform.made) == 3


async def test_fc_rat_01_a_limit_on_the_last_edit_costs_no_second_message():
    """FC-RAT-01: the answer is one message; what was unfinished in it is gone 36 s later."""
    clock = VirtualClock()

    async def script(request, host):
        yield TextDelta("1", "half " * 30 + "open")
        await clock.sleep(10)
        yield TextBlock("1", "half " * 30 + "and whole")
        yield Finished()

    plugin, platform = watched(clock, script)

    async def before(method, address, message):
        if message.final and not refused:
            refused.append(clock.boot())
            raise RateLimited(35.0)

    refused = []
    platform.before = before
    async with gateway(plugin, clock=clock) as stage:
        await platform.say("go")
        await clock.advance(10)
        await stage.quiet()
        assert refused == [10]
        assert [text[-6:] for text in platform.shown()] == ["f open"]
        await clock.advance(36)
        await stage.quiet()
        assert [text[-10:] for text in platform.shown()] == [" and whole"]
        assert platform.calls.count("send") == 1
        assert platform.times("edit")[-1] == 45
        assert await stage.states("deliveries") == ["delivered"]


async def test_a_busy_chat_shows_less_typing_and_gets_it_back():
    """Previews use the room meanwhile; a long tool after them does not look dead."""
    clock = VirtualClock()

    async def script(request, host):
        for _ in range(60):
            yield TextDelta("1", "word " * 20)
            await clock.sleep(1)
        await clock.sleep(60)
        yield Finished()

    plugin, platform = watched(clock, script, rate=Rate(5, 5.0), typing=True)
    async with gateway(plugin, clock=clock) as stage:
        await platform.say("go")
        await clock.advance(121)
        await stage.quiet()
        typed = platform.times("typing")
        assert sum(at > 65 for at in typed) >= 12
        assert sum(at < 60 for at in typed) <= 12


@pytest.mark.parametrize("latency", [0.0, 0.9])
async def test_fc_rat_02_cosmetic_calls_of_one_chat_mute_no_other(latency):
    """FC-RAT-02: 26 conversations of a group show that they work; the group asks for a minute."""
    clock = VirtualClock()

    async def script(request, host):
        await clock.sleep(300 if request.address.channel == "1" else 0.5)
        yield TextBlock("1", "done")
        yield Finished()

    plugin, platform = watched(clock, script, typing=True, edit=False)
    platform.flood, platform.latency = RateLimited(60.0), latency
    limits = Limits(concurrent_turns=64)
    async with gateway(plugin, clock=clock, limits=limits) as stage:
        for number in range(26):
            await platform.say("go", thread=str(number), user="7", **GROUP)
        await clock.advance(5)
        begin = clock.boot()
        await platform.say("hello", channel="2")
        await clock.advance(2)
        await stage.quiet()
        assert platform.shown("2") == ["done"]
        assert platform.times("send", channel="2")[0] - begin < 2
        assert platform.times("typing", channel="2")
        await clock.advance(300)
        await stage.quiet()
        assert len(platform.times("typing")) <= 3
        done = [message.text for message in platform.messages].count("done")
        assert done == 27
