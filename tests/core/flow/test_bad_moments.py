"""Failures at moments that nobody chose: each ends for its own part only."""

import sqlite3

import anyio
import attrs
import pytest

from dragoman import (
    Finished,
    Place,
    Scope,
    ScopeRule,
    TextBlock,
    TextDelta,
    Unauthorized,
    Unknown,
    hookimpl,
)
from dragoman.errors import Forbidden, RateLimited
from dragoman.manifest.model import Profile
from dragoman.messages import Receipt
from dragoman.store import operations as ops
from dragoman.store.writer import Writer
from dragoman.testing import ScriptedRuntime, StubPlatform, StubPlugin, VirtualClock
from stage import can, eventually, gateway, table

pytestmark = pytest.mark.anyio


def failing_once(monkeypatch, kind, times=1):
    """The disk is full for commits with this kind of operation."""
    left = [times]
    real = Writer.commit

    async def commit(self, group):
        if left[0] and any(isinstance(op, kind) for op in group):
            left[0] -= 1
            raise sqlite3.OperationalError("database or disk is full")
        return await real(self, group)

    monkeypatch.setattr(Writer, "commit", commit)
    return left


async def test_a_full_disk_while_a_group_is_joined_ends_nobody(monkeypatch):
    left = failing_once(monkeypatch, ops.Merge, 1)
    clock = VirtualClock()
    async with gateway(clock=clock) as stage:
        for n in (1, 2):
            await stage.platform.say("p", album="g", message_id=str(n))
        await clock.advance(10)
        await stage.quiet()
        assert left == [0]
        assert await stage.states("inbound_events") == ["answered", "merged"]


async def test_what_a_stop_cuts_passes_the_outbound_hooks():
    class Redact:
        @hookimpl
        async def dragoman_outbound(self, text):
            return text.replace("SECRET", "[redacted]")

    async def script(request, host):
        yield TextDelta("1", "the password is SECRET " * 10)
        await anyio.sleep_forever()

    plugin = StubPlugin()
    plugin.runtimes["scripted"] = ScriptedRuntime(script)
    plugin.extensions["redact"] = Redact()
    clock = VirtualClock()
    tables = [table("extensions", "redact"), table("platforms", "stub")]
    async with gateway(plugin, clock=clock, components=tables) as stage:
        await stage.platform.say("hi")
        await clock.advance(5)
        await stage.quiet()
        platform = stage.platform
        assert platform.shown() == []
    assert not any("SECRET" in text for text in platform.shown())


async def test_a_send_that_lands_and_fails_is_not_repeated_for_ever():
    class Landing(StubPlatform):
        async def send(self, address, message):
            await super().send(address, message)
            raise Unknown("the answer names no message")

    platform = Landing(capabilities=can(edit=False))
    clock = VirtualClock()
    async with gateway(StubPlugin(platforms={"stub": platform}), clock=clock) as stage:
        await platform.say("one")
        await clock.advance(3600)
        await stage.quiet()
        count = len(platform.shown())
        try:
            assert count <= 5
        finally:
            platform.send = lambda a, m: StubPlatform.send(platform, a, m)


async def test_one_part_that_an_adapter_cannot_edit_does_not_hold_the_lane_for_ever():
    class Broken(StubPlatform):
        async def edit(self, address, native_id, message):
            if "bad" in message.text:
                raise KeyError("adapter bug")
            return await super().edit(address, native_id, message)

    async def script(request, host):
        text = request.inputs[0].text
        yield TextDelta("1", text * 100)
        await clock.sleep(10)
        yield TextBlock("1", text * 100)
        yield Finished()

    plugin = StubPlugin(platforms={"stub": Broken(capabilities=can())})
    plugin.runtimes["scripted"] = ScriptedRuntime(script)
    clock = VirtualClock()
    async with gateway(plugin, clock=clock) as stage:
        await stage.platform.say("bad ")
        await clock.advance(30)
        await stage.platform.say("/status")
        await stage.platform.say("good ")
        await clock.advance(2 * 3600)
        await stage.quiet()
        assert (await stage.states("deliveries"))[1:] == ["delivered", "delivered"]


async def test_a_waiting_message_of_a_profile_that_is_gone_does_not_stop_the_gateway(tmp_path):
    async def script(request, host):
        if request.inputs[0].text == "wait":
            await anyio.sleep_forever()
        yield TextBlock("1", "ok")
        yield Finished()

    from lives import wreck

    plugin = StubPlugin()
    plugin.runtimes["scripted"] = ScriptedRuntime(script)
    async with gateway(
        plugin, store=tmp_path / "a.db", profiles={"old": Profile(runtime="scripted")}
    ) as stage:
        await stage.platform.say("wait")
        await eventually(lambda: stage.states("inbound_events"), ["adopted"])
        await stage.platform.say("next")
        await eventually(lambda: stage.states("inbound_events"), ["adopted", "queued"])
        left = wreck(tmp_path / "a.db", plugin)
    async with gateway(
        left.plugin, store=left.store, profiles={"new": Profile(runtime="scripted")}
    ) as stage:
        await stage.until_final(5)


async def test_a_full_disk_when_people_are_told_of_long_work_ends_nobody(monkeypatch):
    failing_once(monkeypatch, ops.Post, 1)

    async def script(request, host):
        await clock.sleep(200)
        yield TextBlock("1", "done")
        yield Finished()

    plugin = StubPlugin(platforms={"stub": StubPlatform(capabilities=can(edit=False))})
    plugin.runtimes["scripted"] = ScriptedRuntime(script)
    clock = VirtualClock()
    async with gateway(plugin, clock=clock) as stage:
        await stage.platform.say("hi")
        await clock.advance(300)
        await stage.quiet()
        assert stage.platform.shown()[-1:] == ["done"]


@attrs.define(eq=False)
class Looking(StubPlatform):
    blind: list = attrs.field(factory=list)

    async def look_up(self, address, message):
        self.calls.append("look")
        if self.blind:
            raise self.blind.pop(0)
        for shown in self.messages:
            if shown.delivery_id == message.delivery_id:
                return Receipt(shown.native_id, shown.text)
        return None


async def test_a_look_that_is_forbidden_leaves_the_doubt_to_the_policy():
    platform = Looking(capabilities=can(look_up=True), blind=[Forbidden("chat")] * 9)
    clock = VirtualClock()
    async with gateway(StubPlugin(platforms={"stub": platform}), clock=clock) as stage:
        platform.faults.append(Unknown("lost"))
        await platform.say("hello")
        await clock.advance(600)
        await stage.quiet()
        assert platform.shown() == ["*(this may be a repeat)*\n\nhello"]


async def test_a_store_that_cannot_be_read_while_more_is_awaited_fails_no_turn():
    from dragoman.errors import StoreUnavailable

    go = anyio.Event()

    async def script(request, host):
        if request.inputs[0].text == "wait":
            await go.wait()
        yield TextBlock("1", "|".join(one.text for one in request.inputs))
        yield Finished()

    plugin = StubPlugin()
    plugin.runtimes["scripted"] = ScriptedRuntime(script)
    clock = VirtualClock()
    async with gateway(
        plugin, clock=clock, profiles={"default": Profile(runtime="scripted", busy="collect")}
    ) as stage:
        await stage.platform.say("wait")
        await clock.advance(1)
        await stage.platform.say("one")
        await stage.quiet()
        read = stage.app.store.read
        real = read._query
        hits = []

        async def flaky(sql, parameters):
            if "session_id = ? AND state = 'queued' ORDER BY id LIMIT" in sql and not hits:
                hits.append(1)
                raise StoreUnavailable("not read: locked")
            return await real(sql, parameters)

        object.__setattr__(read, "_query", flaky)
        go.set()
        await clock.advance(20)
        await stage.quiet()
        assert stage.platform.shown() == ["wait", "one"]


async def test_a_message_that_another_thread_takes_over_is_answered_where_it_was_asked():
    go = anyio.Event()

    async def script(request, host):
        if request.inputs[0].text == "wait":
            await go.wait()
        yield TextBlock("1", "|".join(one.text for one in request.inputs))
        yield Finished()

    plugin = StubPlugin()
    plugin.runtimes["scripted"] = ScriptedRuntime(script)
    clock = VirtualClock()
    profile = Profile(runtime="scripted", busy="collect", scope=ScopeRule(group=Scope.CHANNEL))
    async with gateway(plugin, clock=clock, profiles={"default": profile}) as stage:

        async def say(text, thread, user):
            await stage.platform.say(text, channel="1", thread=thread, user=user, place=Place.GROUP)

        await say("wait", "A", "7")
        await clock.advance(1)
        await say("a2", "A", "7")
        await say("b1", "B", "8")
        await stage.quiet()
        go.set()
        await clock.advance(20)
        await stage.quiet()
        assert stage.platform.shown("1", "B")


async def test_a_rate_limit_of_no_seconds_is_no_hot_loop():
    class Zero(StubPlatform):
        async def send(self, address, message):
            self.calls.append("send")
            if len(self.calls) > 500:
                return await super().send(address, message)
            raise RateLimited(0.0)

    platform = Zero(capabilities=can(edit=False, typing=False))
    clock = VirtualClock()
    async with gateway(StubPlugin(platforms={"stub": platform}), clock=clock) as stage:
        await platform.say("one")
        await clock.advance(5)
        await stage.quiet()
        assert len(platform.calls) < 50


async def test_credentials_that_are_refused_once_do_not_silence_a_platform_for_good():
    platform = StubPlatform(capabilities=can(edit=False))
    clock = VirtualClock()
    async with gateway(StubPlugin(platforms={"stub": platform}), clock=clock) as stage:
        platform.faults.append(Unauthorized("401 for a moment"))
        await platform.say("one")
        await clock.advance(3600)
        await platform.say("two")
        await clock.advance(3600)
        await stage.quiet()
        assert platform.shown() == ["one", "two"]
