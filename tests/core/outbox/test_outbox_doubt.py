"""What may be shown, and who settles it: the platform's key, its look-up, or the operator."""

import anyio
import attrs
import pytest

from dragoman import Address, Finished, NotSent, RateLimited, TextBlock, TextDelta, Unknown
from dragoman.manifest.model import DeliveryRules
from dragoman.messages import Receipt
from dragoman.states import DeliveryState
from dragoman.store.operations import Delivery, Post
from dragoman.store.sqlite import open_sqlite
from dragoman.testing import ScriptedRuntime, StubPlatform, StubPlugin, VirtualClock
from lives import wreck
from outboxes import outbox_of
from stage import can, eventually, gateway

pytestmark = pytest.mark.anyio

REPEAT = "*(this may be a repeat)*\n\nhello"


@attrs.define(eq=False)
class Looking(StubPlatform):
    """Knows what it shows; ``blind`` are raised one after the other by its looks."""

    blind: list = attrs.field(factory=list)

    async def look_up(self, address, message):
        self.calls.append("look")
        if self.blind:
            raise self.blind.pop(0)
        for shown in self.messages:
            if shown.delivery_id == message.delivery_id:
                return Receipt(shown.native_id, shown.text)
        return None


def plugin_of(platform):
    return StubPlugin(platforms={"stub": platform})


def policy(uncertain):
    return {"delivery": DeliveryRules(uncertain=uncertain)}


@pytest.mark.parametrize("landed", [True, False])
@pytest.mark.parametrize("blind", [[], [Unknown("lost")], [NotSent("down"), RateLimited(3.0)]])
async def test_invariant_5_a_platform_that_can_look_is_asked_before_anything_is_sent_again(
    landed, blind
):
    """B7, invariant 5: found is delivered, not found is sent unmarked, no answer is no answer."""
    clock = VirtualClock()
    platform = Looking(capabilities=can(look_up=True), blind=list(blind))
    async with gateway(plugin_of(platform), clock=clock) as stage:
        (platform.late_faults if landed else platform.faults).append(Unknown("timeout"))
        await platform.say("hello")
        await stage.quiet()
        assert await stage.states("deliveries") == ["uncertain"]
        if blind:
            await clock.advance(1)
            await stage.quiet()
            assert await stage.states("deliveries") == ["uncertain"]  # nothing is settled yet
        await clock.advance(9)
        await stage.quiet()
        assert platform.shown() == ["hello"]
        assert platform.calls.count("send") == (1 if landed else 2)
        assert platform.calls.count("look") == len(blind) + 1
        assert await stage.states("deliveries") == ["delivered"]


async def test_invariant_5_doubt_that_a_look_did_not_settle_survives_a_crash(tmp_path):
    """B7, invariant 5: killed while the platform answers no look; the next start looks again."""
    platform = Looking(capabilities=can(look_up=True), blind=[NotSent("down")] * 3)
    plugin = plugin_of(platform)
    plugin.runtimes["scripted"] = ScriptedRuntime()
    async with gateway(plugin, store=tmp_path / "a.db") as stage:
        platform.late_faults.append(Unknown("timeout"))
        await platform.say("hello")
        await eventually(lambda: stage.states("deliveries", "error"), ["NotSent: down"])
        left = wreck(tmp_path / "a.db", plugin)
        platform.blind.clear()
    async with gateway(left.plugin, store=left.store) as stage:
        await stage.until_final()
        assert left.platform.shown() == ["hello"]
        assert "send" not in left.platform.calls


async def test_invariant_5_a_marked_repeat_that_was_not_sent_is_marked_after_a_crash(tmp_path):
    """B7, invariant 5: the first send may have landed, the second one surely did not."""
    plugin = StubPlugin()
    plugin.runtimes["scripted"] = ScriptedRuntime()
    platform = plugin.platform()
    platform.capabilities = can()
    async with gateway(plugin, store=tmp_path / "a.db") as stage:
        platform.late_faults.append(Unknown("timeout"))
        await platform.say("hello")
        await platform.until_count(1)
        platform.faults.append(NotSent("down"))
        await eventually(lambda: stage.states("deliveries", "error"), ["NotSent: down"])
        left = wreck(tmp_path / "a.db", plugin)
    async with gateway(left.plugin, store=left.store) as stage:
        await stage.until_final()
        assert left.platform.shown() == ["hello", REPEAT]


async def test_a_repair_that_has_to_wait_is_still_an_edit_after_a_crash(tmp_path):
    """Invariants 5 and 6: the ledger knows the message that shows too little."""
    plugin, platform = cutting(can(), cuts=1)
    platform.faults = [None, NotSent("down")]
    async with gateway(plugin, store=tmp_path / "a.db") as stage:
        await platform.say("hello")
        await eventually(lambda: stage.states("deliveries", "error"), ["NotSent: down"])
        left = wreck(tmp_path / "a.db", plugin)
    left.platform.cuts = 0
    async with gateway(left.plugin, store=left.store) as stage:
        await stage.until_final()
        assert left.platform.shown() == ["hello"]
        assert "send" not in left.platform.calls


@pytest.mark.parametrize(
    ("uncertain", "shown", "state"),
    [
        ("resend_marked", ["hello", REPEAT, "next"], "delivered"),
        ("skip", ["hello", "next"], "abandoned"),
        ("ask", ["hello", "next"], "uncertain"),
    ],
)
async def test_what_may_be_shown_is_marked_left_out_or_left_to_the_operator(
    tmp_path, uncertain, shown, state, caplog
):
    """B7, invariants 5 and 14: and the lane goes on; a further start changes nothing."""
    plugin = StubPlugin()
    plugin.runtimes["scripted"] = ScriptedRuntime()
    plugin.platform().capabilities = can()
    plugin.platform().late_faults.append(Unknown("timeout"))
    async with gateway(plugin, store=tmp_path / "a.db", **policy(uncertain)) as stage:
        await stage.platform.say("hello")
        await stage.platform.say("next")
        await stage.platform.until_shown("next")
        await stage.until("deliveries", [state, "delivered"])
        assert stage.platform.shown() == shown
        [(said,)] = await stage.rows("SELECT error FROM deliveries ORDER BY number LIMIT 1")
        assert ("with a mark" in said) == (uncertain == "resend_marked")  # A4
    assert caplog.text.count("may be shown; `dragoman deliveries` decides") == (uncertain == "ask")
    left = wreck(tmp_path / "a.db", plugin)
    async with gateway(left.plugin, store=left.store, **policy(uncertain)) as stage:
        await stage.platform.say("later")
        await stage.platform.until_shown("later")
        await stage.until("deliveries", [state, "delivered", "delivered"])
        assert stage.platform.shown() == [*shown, "later"]


async def test_many_parts_that_wait_for_the_operator_cost_nothing(tmp_path, monkeypatch):
    """Invariant 11: a hundred of them in one lane, at the start and at each look since."""
    async with open_sqlite(tmp_path / "a.db") as store:
        for number in range(100):
            await store.apply(Post(delivery=owed(number)))
    clock = VirtualClock()
    async with open_sqlite(tmp_path / "a.db") as store:
        await store.connections[0].execute_fetchall("UPDATE deliveries SET state = 'uncertain'")
    async with gateway(store=tmp_path / "a.db", clock=clock, **policy("ask")) as stage:
        reads = type(stage.app.store.read)
        asked, read = [], reads.owed

        async def counted(self, *arguments, **options):
            asked.append(arguments)
            return await read(self, *arguments, **options)

        monkeypatch.setattr(reads, "owed", counted)
        await clock.advance(95)
        await stage.quiet()
        assert len(asked) <= 4  # one for each slow look
        await stage.platform.say("hello")
        await stage.platform.until_shown("hello")
        assert stage.platform.shown() == ["hello"]
        assert (await stage.states("deliveries")).count("uncertain") == 100


def owed(number, channel="1"):
    return Delivery(
        id=f"msg_{number}",
        address=Address("stub", channel),
        text=str(number),
        state=DeliveryState.PENDING,
        ready_at=VirtualClock().now().timestamp(),
    )


async def test_a_part_that_is_left_to_the_operator_is_not_sent_by_who_took_it_over_twice():
    """Invariant 5: it came both from the store and from whoever owed it."""
    async with gateway(**policy("ask")) as stage:
        stage.platform.capabilities = can()
        outbox = outbox_of(stage)
        stage.platform.late_faults.append(Unknown("timeout"))
        part = owed(1)
        await stage.app.store.apply(Post(delivery=part))
        outbox.push([part, part])
        await outbox.flush()
        assert stage.platform.shown() == ["1"]
        assert await stage.states("deliveries") == ["uncertain"]


@attrs.define(eq=False)
class Cutting(StubPlatform):
    """Shows only the first letters of so many texts, and says so, unless it is ``mute``."""

    cuts: int = 0
    mute: bool = False
    finals: list = attrs.field(factory=list)

    async def _begin(self, method, address, message):
        if message.final:
            self.finals.append(method)
        if self.faults and self.faults[0] is None:
            self.faults.pop(0)
            return
        await super()._begin(method, address, message)

    async def send(self, address, message):
        return self._cut(await super().send(address, message))

    async def edit(self, address, native_id, message):
        return self._cut(await super().edit(address, native_id, message))

    def _cut(self, receipt):
        shown = next(one for one in self.messages if one.native_id == receipt.native_id)
        if self.cuts and len(shown.text) > 2:
            self.cuts -= 1
            shown.texts[-1] = shown.text[:2]
        return Receipt(receipt.native_id, None if self.mute else shown.text)


def cutting(capabilities, cuts, *, mute=False):
    plugin = plugin_of(Cutting(capabilities=capabilities, cuts=cuts, mute=mute))
    plugin.runtimes["scripted"] = ScriptedRuntime()
    return plugin, plugin.platform()


@pytest.mark.parametrize(
    ("edit", "cuts", "shown", "state", "calls"),
    [
        (True, 0, "hello", "delivered", ["send"]),
        (True, 1, "hello", "delivered", ["send", "edit"]),
        (True, 2, "he", "failed", ["send", "edit"]),
        (False, 1, "he", "failed", ["send"]),
    ],
)
async def test_invariant_6_what_is_cut_silently_is_repaired_once_or_not_called_delivered(
    edit, cuts, shown, state, calls
):
    """Invariant 6."""
    plugin, platform = cutting(can(edit=edit), cuts)
    async with gateway(plugin) as stage:
        await platform.say("hello")
        await stage.until_final()
        assert platform.shown() == [shown]
        assert [call for call in platform.calls if call != "typing"] == calls
        assert await stage.states("deliveries") == [state]
        assert await stage.states("deliveries", "shown") == [shown]


async def test_invariant_6_what_a_platform_does_not_quote_is_delivered_unverified():
    """Invariant 6: the ledger has no text of what is shown."""
    plugin, platform = cutting(can(), 0, mute=True)
    async with gateway(plugin) as stage:
        await platform.say("hello")
        await stage.until_final()
        assert await stage.rows("SELECT state, shown FROM deliveries") == [("delivered", None)]


async def test_invariant_6_a_streamed_answer_that_is_cut_silently_is_repaired_too():
    """Invariant 6: what a preview showed counts only as the platform quotes it."""
    whole = "word " * 30

    async def script(request, host):
        yield TextDelta("1", whole)
        await previewed.wait()
        yield TextBlock("1", whole)
        yield Finished()

    previewed = anyio.Event()
    plugin, platform = cutting(can(edit_interval=0.01, idempotent_send=True), 1)
    plugin.runtimes["scripted"].script = script
    async with gateway(plugin) as stage:
        await platform.say("go")
        await platform.until_count(1)
        await eventually(
            lambda: stage.rows("SELECT count(*) FROM deliveries WHERE native_id <> ''"), [(1,)]
        )
        previewed.set()
        await stage.until_final()
        assert [text.strip() for text in platform.shown()] == [whole.strip()]
        assert await stage.states("deliveries") == ["delivered"]
