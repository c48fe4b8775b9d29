"""What a platform refuses for good, and what it takes another way: no call is made for nothing."""

import anyio
import pytest

from dragoman import (
    Address,
    Expired,
    Finished,
    Forbidden,
    Gone,
    Place,
    RateLimited,
    TextBlock,
    TextDelta,
)
from dragoman.outbox.lane import HELD
from dragoman.states import DeliveryState
from dragoman.store.operations import Delivery, Post
from dragoman.testing import ScriptedRuntime, StubPlugin, VirtualClock
from outboxes import outbox_of
from stage import can, eventually, gateway

pytestmark = pytest.mark.anyio

WORD = "word " * 24


def plugin_of(script, **capabilities):
    plugin = StubPlugin()
    plugin.runtimes["scripted"] = ScriptedRuntime(script)
    plugin.platform().capabilities = can(**capabilities)
    return plugin


async def in_five(request, host):
    if request.inputs[0].text == "long":
        yield TextBlock("1", "\n\n".join(f"part{n} ".ljust(60, "x") for n in range(5)))
    else:
        yield TextBlock("1", request.inputs[0].text)
    yield Finished()


def record(platform, faults=()):
    """Return what the platform is asked for, as it comes; of each method, so many are refused."""
    asked, left = [], {method: list(errors) for method, errors in faults}

    async def before(method, address, message):
        asked.append((method, message))
        if left.get(method) and (error := left[method].pop(0)):
            raise error

    platform.before = before
    return asked


REFUSALS = [Forbidden("person"), Forbidden("chat"), Gone("channel"), Gone("thread")]


@pytest.mark.parametrize("fault", REFUSALS)
async def test_fc_rat_03_a_lane_that_takes_nothing_is_not_asked_again_until_people_speak(fault):
    """FC-RAT-03: one call for all five parts, each failed with its reason and counted; the next
    message of the person is answered."""
    plugin = plugin_of(in_five, max_text=112, edit=False)
    platform = plugin.platform()
    async with gateway(plugin) as stage:
        asked = record(platform, {"send": [None, fault]}.items())
        await platform.say("long")
        await stage.until_final()
        assert len(asked) == 2
        assert await stage.states("deliveries") == ["delivered"] + ["failed"] * 4
        assert max(await stage.states("deliveries", "attempts")) <= 1
        errors = await stage.states("deliveries", "error")
        assert all(str(fault) in error for error in errors[1:])
        assert (await stage.app.store.read.states())["deliveries"]["failed"] == 4
        await platform.say("back")
        await stage.until_final()
        assert platform.shown()[1:] == ["back"]


@pytest.mark.parametrize("fault", REFUSALS)
async def test_fc_rat_03_a_refusal_in_the_middle_of_a_stream_ends_the_calls_of_its_lane(fault):
    """FC-RAT-03: neither previews nor the whole text are tried again, nor a notice meanwhile."""
    clock = VirtualClock()

    async def script(request, host):
        if request.inputs[0].text == "go":
            for _ in range(300):
                yield TextDelta("1", WORD)
                await clock.sleep(1)
        yield TextBlock("1", "whole")
        yield Finished()

    plugin = plugin_of(script)
    platform = plugin.platform()
    async with gateway(plugin, clock=clock) as stage:
        asked = record(platform, {"edit": [None, fault]}.items())
        await platform.say("go")
        await clock.advance(290)
        await platform.say("other", channel="2")
        await clock.advance(15)
        await stage.quiet()
        assert [method for method, _ in asked] == ["send", "edit", "edit", "send"]
        assert platform.shown("2") == ["whole"]
        assert await stage.states("deliveries") == ["failed", "delivered"]
        await platform.say("back")
        await clock.advance(1)
        await stage.quiet()
        assert platform.shown()[1:] == ["whole"]


async def test_fc_rat_03_who_speaks_while_the_refusal_is_on_its_way_is_answered():
    """FC-RAT-03: the refusal is older than the message."""
    plugin = plugin_of(in_five, edit=False)
    platform = plugin.platform()
    hold, refused = anyio.Event(), []

    async def before(method, address, message):
        if not refused:
            refused.append(message.text)
            await hold.wait()
            raise Forbidden("person")

    async with gateway(plugin) as stage:
        platform.before = before
        await platform.say("lost")
        await eventually(lambda: _length(refused), 1)
        await platform.say("kept")
        await stage.until("inbound_events", ["answered", "answered"])
        hold.set()
        await stage.until_final()
        assert platform.shown() == ["kept"]


async def _length(found):
    return len(found)


async def test_fc_edt_06_an_answer_to_a_message_that_is_gone_comes_without_the_reference():
    """FC-EDT-06: two calls, one message."""
    plugin = plugin_of(in_five, edit=False)
    platform = plugin.platform()
    async with gateway(plugin) as stage:
        asked = record(platform, {"send": [Gone("message")]}.items())
        await platform.say("hello", place=Place.GROUP, message_id="77")
        await stage.until_final()
        assert platform.shown() == ["hello"]
        assert [message.reply_to for _, message in asked] == ["77", ""]
        assert await stage.states("deliveries") == ["delivered"]


async def test_fc_edt_06_a_lost_message_and_a_lost_question_make_one_new_message():
    """FC-EDT-06: the bubble of the answer was deleted and so was what it replied to."""
    clock = VirtualClock()

    async def script(request, host):
        yield TextDelta("1", WORD)
        await clock.sleep(5)
        platform.messages.clear()
        yield TextBlock("1", "whole")
        yield Finished()

    plugin = plugin_of(script)
    platform = plugin.platform()
    async with gateway(plugin, clock=clock) as stage:
        asked = record(platform, {"send": [None, Gone("message")]}.items())
        await platform.say("go", place=Place.GROUP, message_id="77")
        await clock.advance(6)
        await stage.quiet()
        assert platform.shown() == ["whole"]
        assert [(how, message.reply_to) for how, message in asked if message.final] == [
            ("edit", "77"),
            ("send", "77"),
            ("send", ""),
        ]


@pytest.mark.parametrize("gone", [False, True])
async def test_an_expired_stream_is_closed_by_an_ordinary_edit_of_the_same_message(gone):
    """Invariant 5: its message is not doubled; only where it is gone, a new one is made."""
    clock = VirtualClock()

    async def script(request, host):
        yield TextDelta("1", WORD)
        await clock.sleep(5)
        faults.append(Expired("the stream is closed"))
        if gone:
            platform.messages.clear()
        yield TextBlock("1", WORD + "whole")
        yield Finished()

    plugin = plugin_of(script)
    platform = plugin.platform()
    faults = platform.faults
    async with gateway(plugin, clock=clock) as stage:
        asked = record(platform)
        await platform.say("go")
        await clock.advance(6)
        await stage.quiet()
        assert platform.shown() == [WORD + "whole"]
        finals = [(how, message.ordinary) for how, message in asked if message.final]
        assert finals == [("edit", False), ("edit", True)] + [("send", True)] * gone
        assert asked[-1][1].shown == ("" if gone else WORD.strip())
        assert await stage.states("deliveries") == ["delivered"]


async def test_what_the_ordinary_way_says_to_be_expired_too_fails():
    plugin = plugin_of(in_five, edit=False)
    async with gateway(plugin) as stage:
        asked = record(stage.platform, {"send": [Expired("token")] * 2}.items())
        await stage.platform.say("hello")
        await stage.until_final()
        assert [message.ordinary for _, message in asked] == [False, True]
        assert await stage.states("deliveries") == ["failed"]


async def test_invariant_14_a_refused_lane_fails_also_what_waits_in_the_store():
    """Invariants 3 and 14: more parts than memory holds; a part that waits fails nobody else's."""
    clock = VirtualClock()
    async with gateway(clock=clock) as stage:
        platform = stage.platform
        asked = record(platform, {"send": [RateLimited(5.0, "channel"), Forbidden("chat")]}.items())
        parts = [
            Delivery(
                id=f"msg_{n}",
                address=Address("stub", "1"),
                text=str(n),
                state=DeliveryState.PENDING,
                ready_at=float(n),
            )
            for n in range(HELD + 9)
        ]
        for part in parts:
            await stage.app.store.apply(Post(delivery=part))
        outbox_of(stage).push(parts)
        await clock.advance(6)
        await stage.quiet()
        assert len(asked) == 2
        assert await stage.states("deliveries") == ["failed"] * len(parts)
