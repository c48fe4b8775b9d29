"""A platform that forgets which sends it has seen: what it may not know any more is asked for."""

import attrs
import pytest

from dragoman import Finished, Receipt, TextDelta, Unknown
from dragoman.manifest.model import DeliveryRules
from dragoman.testing import ScriptedRuntime, StubPlatform, StubPlugin, VirtualClock
from dragoman.testing.platform import Message
from lives import wreck
from stage import can, gateway

pytestmark = pytest.mark.anyio
WINDOW = 120.0


@attrs.define(eq=False)
class Forgetful(StubPlatform):
    """Shows a message once for `WINDOW` seconds; later the same send shows it again."""

    clock: VirtualClock = attrs.field(factory=VirtualClock)
    first: dict = attrs.field(factory=dict)

    async def send(self, address, message):
        known, at = self.first.get(message.delivery_id, (None, 0.0))
        if known and self.clock.boot() - at < WINDOW:
            self._end()
            return Receipt(known.native_id, known.text)
        shown = Message(str(len(self.messages) + 1), address, [message.text], message.delivery_id)
        self.calls.append("send")
        self.messages.append(shown)
        self.first[message.delivery_id] = (shown, self.clock.boot())
        self._end()
        return Receipt(shown.native_id, message.text)

    async def look_up(self, address, message):
        self.calls.append("look")
        known, _ = self.first.get(message.delivery_id, (None, 0.0))
        return Receipt(known.native_id, known.text) if known else None


def plugin_of(clock, *, look_up, script=None):
    capabilities = can(
        idempotent_send=True, idempotent_window=WINDOW, look_up=look_up, edit_interval=1.0
    )
    platform = Forgetful(capabilities=capabilities, clock=clock)
    plugin = StubPlugin(platforms={"stub": platform})
    if script:
        plugin.runtimes["scripted"] = ScriptedRuntime(script)
    return plugin, platform


@pytest.mark.parametrize("lost", [1, 3, 6, 7, 8, 12])
@pytest.mark.parametrize("look_up", [True, False])
async def test_invariant_5_a_send_is_repeated_only_while_the_platform_knows_it(lost, look_up):
    """B7, invariant 5: then it is looked up, or the policy decides; never a blind repeat."""
    clock = VirtualClock()
    plugin, platform = plugin_of(clock, look_up=look_up)
    platform.late_faults = [Unknown("lost")] * lost
    async with gateway(plugin, clock=clock, delivery=DeliveryRules(uncertain="skip")) as stage:
        await platform.say("hello")
        await clock.advance(1200)
        await stage.quiet()
        assert platform.shown() == ["hello"]
        [state] = await stage.states("deliveries")
        within = lost <= 6  # 1 + 2 + 4 + 8 + 16 + 32 seconds, then 60 more
        assert state == ("delivered" if look_up or within else "abandoned")
        assert ("look" in platform.calls) == (look_up and not within)


@pytest.mark.parametrize("look_up", [True, False])
async def test_invariant_5_nor_while_an_answer_grows(look_up):
    """A first preview of which nothing is known for long is not sent once more."""
    clock = VirtualClock()

    async def script(request, host):
        for _ in range(300):
            yield TextDelta("1", "word " * 20)
            await clock.sleep(1)
        yield Finished()

    plugin, platform = plugin_of(clock, look_up=look_up, script=script)
    platform.late_faults = [Unknown("lost")] * 200
    async with gateway(plugin, clock=clock, delivery=DeliveryRules(uncertain="skip")) as stage:
        await platform.say("go")
        await clock.advance(250)
        await stage.quiet()
        platform.late_faults.clear()
        await clock.advance(600)
        await stage.quiet()
        whole = "word " * 20 * 300
        shown = "".join(platform.shown())
        assert shown.count("word") <= whole.count("word")
        assert len({one.delivery_id for one in platform.messages}) == len(platform.messages)


@pytest.mark.parametrize("after", [10.0, 500.0])
async def test_invariant_5_nor_after_a_restart(tmp_path, after):
    """B7: the ledger knows since when a part may be shown."""
    clock = VirtualClock()
    plugin, platform = plugin_of(clock, look_up=True)
    platform.late_faults = [Unknown("lost")] * 3
    async with gateway(plugin, store=tmp_path / "a.db", clock=clock) as stage:
        await platform.say("hello")
        await stage.quiet()
        left = wreck(tmp_path / "a.db", plugin, None)
        platform.late_faults.clear()
    await clock.advance(after)
    again, fresh = plugin_of(clock, look_up=True)
    fresh.first = dict(platform.first)
    fresh.messages = list(platform.messages[:1])
    async with gateway(again, store=left.store, clock=clock) as stage:
        await stage.quiet()
        await clock.advance(5)
        await stage.quiet()
        assert len(fresh.messages) == 1
        assert await stage.states("deliveries") == ["delivered"]
        assert ("look" in fresh.calls) == (after > WINDOW)
