"""A channel that goes on under another id, and one that the account has left."""

from datetime import UTC, datetime
from functools import partial

import anyio
import attrs
import pytest

from dragoman import Address, Finished, Moved, Place, TextBlock, TextDelta
from dragoman.manifest.model import Access, Profile, Route
from dragoman.messages import Kind
from dragoman.testing import ScriptedRuntime, StubPlatform, StubPlugin, VirtualClock
from stage import can, gateway

pytestmark = pytest.mark.anyio

GROUP = {"place": Place.GROUP, "user": "7"}
OLD, NEW = "-4001", "-1001500000003"
ONLY_OLD = {
    "access": Access(channels=(f"stub:{OLD}",)),
    "profiles": {"default": Profile(runtime="scripted"), "group": Profile(runtime="scripted")},
    "routes": (Route(profile="group", channel=OLD),),
}


@attrs.define(eq=False)
class History:
    """A runtime that answers with all that its session was told; ``gate`` holds turns that wait."""

    gate: anyio.Event = attrs.field(factory=anyio.Event)

    async def __call__(self, request, host):
        text = request.inputs[-1].text
        if "wait" in text:
            yield TextDelta("1", "a thought that takes its time, and more of it")
            await self.gate.wait()
        yield TextBlock("1", f"{request.profile}: {' | '.join(await host.records('chat').read())}")
        yield Finished()


@attrs.define(eq=False)
class Chats(StubPlatform):
    """Chats that may have moved: a call to an old id says where to."""

    moved: dict = attrs.field(factory=dict)
    called: list = attrs.field(factory=list)

    async def _begin(self, method, address, message):
        self.called.append(address.channel)
        if new := self.moved.get(address.channel):
            raise Moved(attrs.evolve(address, channel=new))
        await super()._begin(method, address, message)


def stub(history=None, **more):
    plugin = StubPlugin(platforms={"stub": Chats(can(**more))})
    plugin.runtimes["scripted"] = ScriptedRuntime(history or History(), namespace="chat")
    return plugin


async def say(stage, text, channel=OLD, **more):
    await stage.platform.say(text, channel=channel, **GROUP, **more)
    await stage.quiet()


async def move(stage, old=OLD, new=NEW, **more):
    await stage.platform.say(
        "", channel=old, kind=Kind.MOVED, data=new, place=Place.GROUP, user="system", **more
    )
    await stage.quiet()


def told(caplog):
    return [one for one in caplog.messages if "goes on as" in one]


async def test_fc_thr_07_session_access_and_route_follow_a_channel(caplog):
    """A9: told by both service messages, which start no turn; the operator is told once."""
    async with gateway(stub(), clock=VirtualClock(), **ONLY_OLD) as stage:
        await say(stage, "one")
        await move(stage)
        await move(stage)
        await say(stage, "two", NEW)
        assert stage.platform.shown(NEW) == ["group: one | two"]
        assert len(stage.runtime.requests) == 2
        assert await stage.states("inbound_events") == [
            "answered",
            "handled",
            "handled",
            "answered",
        ]
        await say(stage, "three", OLD)
        assert stage.platform.shown(NEW)[1:] == ["group: one | two | three"], "not the old id"
        for channel in (OLD, NEW):
            await say(stage, "in a topic", channel, thread="5")
        assert stage.platform.shown(NEW, "5")[1] == "group: in a topic | in a topic"
        await say(stage, "me too", "-1002")
        assert (await stage.states("inbound_events"))[-1] == "refused"
    assert len(told(caplog)) == 1


async def test_fc_thr_07_the_first_message_under_the_new_id_may_come_before_the_move():
    """A9: the history goes on; what was begun under the new id meanwhile ends there."""
    everybody = {"access": Access(users=("stub:7",))}
    async with gateway(stub(), clock=VirtualClock(), **everybody) as stage:
        await say(stage, "one")
        await say(stage, "early", NEW)
        await move(stage)
        await say(stage, "two", NEW)
        assert stage.platform.shown(NEW) == ["default: early", "default: one | two"]


async def test_fc_thr_07_a_move_outlives_the_process_and_another_one_follows_it(tmp_path):
    """A9: chains lead to their end, whichever name a list has."""
    plugin, path = stub(), tmp_path / "a.db"
    async with gateway(plugin, store=path, **ONLY_OLD) as stage:
        await stage.platform.say("one", channel=OLD, **GROUP)
        await stage.platform.until_shown("group: one", OLD)
        await move_and_settle(stage, OLD, "b")
        await stage.platform.say("two", channel="b", **GROUP)
        await stage.platform.until_shown("group: one | two", "b")
        await stage.until_final()
    async with gateway(plugin, store=path, **ONLY_OLD) as stage:
        await move_and_settle(stage, "b", "c")
        await stage.platform.say("three", channel="c", **GROUP)
        await stage.platform.until_shown("group: one | two | three", "c")
        await move_and_settle(stage, "c", OLD)
        await stage.platform.say("four", channel="b", **GROUP)
        await stage.platform.until_shown("group: one | two | three | four", OLD)


async def move_and_settle(stage, old, new):
    await stage.platform.say("", channel=old, kind=Kind.MOVED, data=new, place=Place.GROUP)
    await stage.until_final()


@pytest.mark.parametrize("edits", [True, False])
async def test_fc_thr_07_an_answer_that_streams_is_sent_once_to_the_new_id(edits, caplog):
    """A9: the send is told where the chat is; nobody asks the old id again."""
    clock, history = VirtualClock(), History()
    async with gateway(stub(history, edit=edits), clock=clock, **ONLY_OLD) as stage:
        await say(stage, "wait")
        await clock.advance(3)
        stage.platform.moved[OLD] = NEW
        history.gate.set()
        await stage.quiet()
        assert stage.platform.shown(NEW) == ["group: wait"]
        asked = stage.platform.called.count(OLD)
        await say(stage, "and", OLD)
        await move(stage)
        await say(stage, "so on", NEW)
        assert stage.platform.shown(NEW)[1:] == ["group: wait | and", "group: wait | and | so on"]
        assert stage.platform.called.count(OLD) == asked
        assert set(await stage.states("deliveries")) == {"delivered"}
    assert len(told(caplog)) == 1


async def test_fc_thr_07_what_waits_and_what_is_owed_follows():
    """A9: turns that were queued under the old id, too, answer under the new one."""
    clock, history = VirtualClock(), History()
    async with gateway(stub(history), clock=clock, **ONLY_OLD) as stage:
        await say(stage, "wait")
        await say(stage, "wait more")
        stage.platform.moved[OLD] = NEW
        await move(stage)
        before = stage.platform.called.count(OLD)
        history.gate, gate = anyio.Event(), history.gate
        gate.set()
        await clock.advance(3)
        assert stage.platform.shown(NEW) == ["group: wait", "…"]
        history.gate.set()
        await stage.quiet()
        assert stage.platform.shown(NEW) == ["group: wait", "group: wait | wait more"]
        assert stage.platform.called.count(OLD) == before


async def test_what_was_noted_follows_its_session():
    clock = VirtualClock(datetime(2026, 11, 29, tzinfo=UTC))
    async with gateway(stub(), clock=clock, **ONLY_OLD) as stage:
        await say(stage, "one", message_id="50", sent_at=clock.now())
        await say(stage, "two", message_id="50", sent_at=clock.now(), kind=Kind.EDIT)
        await move(stage)
        await say(stage, "three", NEW, sent_at=clock.now())
        assert "now says: two" in stage.runtime.requests[-1].inputs[0].words


async def left(stage, channel=OLD, **more):
    await stage.platform.say("", channel=channel, kind=Kind.LEFT, place=Place.GROUP, **more)
    await stage.quiet()


async def test_a_place_that_was_left_is_stopped_and_takes_nothing(caplog):
    """A9, FC-RAT-03: what runs ends, what waits is refused with a reason, nothing is sent there."""
    clock, history = VirtualClock(), History()
    async with gateway(stub(history), clock=clock) as stage:
        for channel in ("1", "2"):
            await say(stage, "wait", channel)
            await say(stage, "next", channel)
        await left(stage, "1")
        await clock.advance(1)
        calls = stage.platform.called.count("1")
        reason = "this account is not there any more"
        rows = await stage.rows(
            "SELECT state, reason FROM inbound_events WHERE lane LIKE '%\"1\"%'"
        )
        assert rows == [("refused", reason)] * 2 + [("handled", "left")]
        assert sorted(await stage.states("agent_runs")) == ["cancelled", "running"]
        assert stage.platform.called.count("1") == calls
        history.gate.set()
        await stage.quiet()
        await say(stage, "back again", "1")
        assert "back again" in stage.platform.shown("1")[-1], "until somebody speaks there"
        assert len(stage.platform.shown("2")) == 2
    assert [one for one in caplog.messages if "not in channel 1 any more" in one]


async def test_what_is_owed_where_the_account_has_left_is_not_sent():
    """FC-RAT-03: neither what waits behind a call that is under way, nor anything after it."""
    gate = anyio.Event()

    async def before(method, address, message):
        await gate.wait()

    async with gateway(stub(), clock=VirtualClock()) as stage:
        stage.platform.before = before
        for _ in range(3):
            await say(stage, "/status", "1")
        await left(stage, "1")
        gate.set()
        await stage.quiet()
        assert len(stage.platform.shown("1")) == 1
        assert await stage.states("deliveries") == ["delivered", "failed", "failed"]
        errors = await stage.states("deliveries", "error")
        assert errors[1:] == ["not sent: this account is not there any more"] * 2


async def test_a_channel_is_left_with_its_threads_and_a_thread_alone():
    clock, history = VirtualClock(), History()
    async with gateway(stub(history), clock=clock) as stage:
        for thread in ("7", "8"):
            await say(stage, "wait", "1", thread=thread)
        await left(stage, "1", thread="7")
        await clock.advance(1)
        assert sorted(await stage.states("agent_runs")) == ["cancelled", "running"]
        await left(stage, "1")
        await clock.advance(1)
        assert await stage.states("agent_runs") == ["cancelled", "cancelled"]
        assert stage.runtime.requests[0].address == Address("stub", "1", "7", place=Place.GROUP)


async def test_nobody_leaves_by_moving_on():
    """A9: platforms tell that the account is not in the old chat any more, too."""
    clock, history = VirtualClock(), History()
    async with gateway(stub(history), clock=clock, **ONLY_OLD) as stage:
        await say(stage, "wait")
        await move(stage)
        await left(stage)
        history.gate.set()
        await stage.quiet()
        assert stage.platform.shown(NEW) == ["group: wait"]


async def test_what_comes_right_behind_a_move_finds_it_known():
    """FC-THR-07: lanes do not wait for each other, but all of them wait for a move before them."""
    numbers = range(100, 140)
    lists = Access(channels=tuple(f"stub:{number}" for number in numbers))
    async with gateway(access=lists) as stage:
        for number in numbers:
            old, new = str(number), f"{number}-new"
            moved = partial(stage.platform.say, "", kind=Kind.MOVED, data=new, channel=old)
            async with anyio.create_task_group() as tasks:  # received in this order, at once
                tasks.start_soon(partial(moved, user="7"))
                tasks.start_soon(partial(stage.platform.say, "hello", channel=new, user="7"))
        await stage.until_final()
        states = await stage.states("inbound_events")
        assert states == ["handled", "answered"] * len(numbers)
