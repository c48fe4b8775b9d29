"""Failures of a process that the next one takes over from."""

import anyio
import attrs
import pytest

from dragoman import (
    ChatCommand,
    Finished,
    RateLimited,
    RuntimeCapabilities,
    TextBlock,
    TextDelta,
    hookimpl,
)
from dragoman.manifest.model import DeliveryRules, Profile
from dragoman.messages import Receipt
from dragoman.store import operations as ops
from dragoman.store.sqlite import open_sqlite
from dragoman.testing import ScriptedRuntime, StubPlatform, StubPlugin, VirtualClock
from dragoman.testing.store_scene import Scene
from lives import wreck
from stage import can, eventually, gateway

pytestmark = pytest.mark.anyio
RETRY = {"default": Profile(runtime="scripted", recovery="retry")}


@attrs.define(eq=False)
class Looking(StubPlatform):
    blind: list = attrs.field(factory=list)
    since: list = attrs.field(factory=list)

    async def look_up(self, address, message):
        self.calls.append("look")
        self.since.append(message.created_at)
        if self.blind:
            raise self.blind.pop(0)
        for shown in self.messages:
            if shown.delivery_id == message.delivery_id:
                return Receipt(shown.native_id, shown.text)
        return None


@attrs.define(eq=False)
class Commanding(StubPlugin):
    commands: dict = attrs.field(factory=dict)

    @hookimpl
    def dragoman_commands(self):
        return [ChatCommand(name, f"does {name}", run) for name, run in self.commands.items()]


def retrying(first, platform):
    plugin = StubPlugin(platforms={"stub": platform})
    plugin.runtimes["scripted"] = ScriptedRuntime(
        first, capabilities=RuntimeCapabilities(stream=True, journal=True)
    )
    return plugin


async def streams(request, host):
    yield TextDelta("1", "some words that are shown " * 5)
    await anyio.sleep_forever()


@pytest.mark.parametrize("how", ["short", "limited"])
async def test_what_the_first_attempt_sent_is_found_again(tmp_path, how):
    platform = Looking(capabilities=can(look_up=True))
    plugin = retrying(streams, platform)
    async with gateway(plugin, store=tmp_path / "a.db", profiles=RETRY) as stage:
        await stage.platform.say("hi")
        await eventually(lambda: stage.states("deliveries", "native_id"), ["2"])
        clock = VirtualClock()

        async def second(request, host):
            if how == "limited":
                yield TextDelta("1", "the whole answer of the second attempt " * 5)
                await clock.sleep(10)
            yield TextBlock("1", "the whole answer " * 5)
            yield Finished()

        left = wreck(tmp_path / "a.db", plugin, second)
        # killed between the call that showed the placeholder, and the note of its id
        left.run("UPDATE deliveries SET native_id = '', shown = NULL")
        del left.platform.messages[0].texts[1:]
    left.platform.blind = [RateLimited(1.0)] if how == "limited" else []
    async with gateway(left.plugin, store=left.store, profiles=RETRY, clock=clock) as stage:
        await clock.advance(60)
        await stage.quiet()
        assert len(left.platform.shown()) == 1
        [received] = [float(at) for at in await stage.states("inbound_events", "received_at")]
    # A platform that finds a message by its time is told the earliest that it can have.
    assert left.platform.since
    assert all(
        since and since.timestamp() == pytest.approx(received, abs=1e-3)
        for since in left.platform.since
    )


async def test_what_was_said_before_is_read_after_a_turn_began_anew_and_is_run_again():
    async with open_sqlite(None) as store:
        scene = Scene(store)
        earlier = await scene.running()
        await store.apply(scene.append(earlier, "transcript", "earlier"))
        await store.apply(scene.finish(earlier))
        grant = await scene.running()
        before = await store.read.records(grant.lease.session_id, "transcript", None)
        await store.apply(
            attrs.evolve(scene.append(grant, "transcript", "summary"), new_generation=True)
        )
        absorbed = await scene.waiting()
        await store.apply(ops.Absorb(lease=grant.lease, event_ids=(absorbed,)))
        await store.apply(scene.recover())
        after = await store.read.records(grant.lease.session_id, "transcript", None)
        assert list(after)[: len(before)] == list(before)


async def test_a_text_that_the_ledger_does_not_know_is_replaced(tmp_path):
    platform = StubPlatform(capabilities=can())
    plugin = retrying(streams, platform)
    async with gateway(plugin, store=tmp_path / "a.db", profiles=RETRY) as stage:
        await stage.platform.say("hi")
        await eventually(
            lambda: stage.states("deliveries", "shown IS NOT NULL AND shown <> ''"), [1]
        )

        async def second(request, host):
            yield TextBlock("1", ("some words that are shown " * 5).rstrip())
            yield Finished()

        left = wreck(tmp_path / "a.db", plugin, second)
        # an edit within two seconds of the one that was noted
        left.platform.messages[0].texts.append("some words that are shown " * 5 + "and more")
    async with gateway(left.plugin, store=left.store, profiles=RETRY) as stage:
        await stage.until_final()
        assert left.platform.shown() == await stage.states("deliveries", "text")


@pytest.mark.parametrize("policy", ["resend_marked", "skip"])
async def test_what_waits_for_a_limit_is_not_in_doubt(tmp_path, policy):
    rules = {"delivery": DeliveryRules(uncertain=policy)}
    platform = StubPlatform(capabilities=can(edit=False, typing=False))
    plugin = StubPlugin(platforms={"stub": platform})
    plugin.runtimes["scripted"] = ScriptedRuntime()
    clock = VirtualClock()
    async with gateway(plugin, store=tmp_path / "a.db", clock=clock, **rules) as stage:
        platform.faults.append(RateLimited(300.0, "channel"))
        await platform.say("one")
        await stage.quiet()
        await platform.say("/nothing", channel="1", thread="x")
        await stage.quiet()
        left = wreck(tmp_path / "a.db", plugin)
    async with gateway(left.plugin, store=left.store, clock=VirtualClock(), **rules) as stage:
        await stage.until_final()
        assert left.platform.shown("1", "x") == ["/nothing"]


async def test_a_turn_that_is_days_old_is_not_run_again_as_if_it_were_new(tmp_path):
    from datetime import timedelta

    platform = StubPlatform(capabilities=can(edit=False))
    plugin = retrying(streams, platform)
    first = VirtualClock()
    async with gateway(plugin, store=tmp_path / "a.db", profiles=RETRY, clock=first) as stage:
        await platform.say("what is due in the next hour?", sent_at=first.now())
        await stage.quiet()

        async def second(request, host):
            yield TextBlock("1", "answered as if new")
            yield Finished()

        left = wreck(tmp_path / "a.db", plugin, second)
    clock = VirtualClock(start=first.start + timedelta(days=7))
    async with gateway(left.plugin, store=left.store, profiles=RETRY, clock=clock) as stage:
        await clock.advance(60)
        await stage.quiet()
        assert left.platform.shown() != ["answered as if new"]


async def test_a_send_without_a_receipt_is_not_repeated_at_full_speed():
    class Careless(StubPlatform):
        async def send(self, address, message):
            await super().send(address, message)
            if len(self.messages) > 300:
                return Receipt("1")
            return None

    platform = Careless(capabilities=can(edit=False, typing=False))
    clock = VirtualClock()
    async with gateway(StubPlugin(platforms={"stub": platform}), clock=clock) as stage:
        await platform.say("one")
        await stage.quiet()
        assert len(platform.shown()) < 5
