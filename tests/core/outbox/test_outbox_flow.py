"""What is owed goes out in order, and the ledger says what became of it."""

import itertools
import time

import anyio
import attrs
import pytest

from dragoman import (
    Address,
    Conflict,
    Expired,
    Finished,
    Forbidden,
    Gone,
    Moved,
    NotSent,
    PlainDialect,
    RateLimited,
    Refused,
    TextBlock,
    TextDelta,
    Unauthorized,
    Unknown,
)
from dragoman.outbox.lane import HELD
from dragoman.states import DeliveryState
from dragoman.store.operations import Delivery, Post
from dragoman.testing import ScriptedRuntime, StubPlugin, VirtualClock
from outboxes import outbox_of
from stage import Limits, can, gateway, table

pytestmark = pytest.mark.anyio

REPEAT = "*(this may be a repeat)*\n\nhello"


class Loud(PlainDialect):
    def plain(self, markdown):
        return markdown.upper()


@pytest.mark.parametrize(
    ("fault", "wait", "shown", "state"),
    [
        (NotSent("refused connection"), 1.0, ["hello"], "delivered"),
        (Conflict("another consumer"), 1.0, ["hello"], "delivered"),
        (RateLimited(7.0), 7.0, ["hello"], "delivered"),
        (RateLimited(7.0, "instance"), 7.0, ["hello"], "delivered"),
        (RateLimited(7.0, "method"), 7.0, ["hello"], "delivered"),
        (Unknown("no answer"), 1.0, [REPEAT], "delivered"),
        (KeyError("a bug of the adapter"), 1.0, [REPEAT], "delivered"),
        (Refused("can't parse"), 0, ["HELLO"], "delivered"),
        (Expired("the token ran out"), 0, ["hello"], "delivered"),
        (Forbidden("person"), 0, [], "failed"),
        (Forbidden("chat"), 0, [], "failed"),
        (Gone("channel"), 0, [], "failed"),
        (Gone("thread"), 0, [], "failed"),
        (Unauthorized("token"), 0, [], "pending"),
    ],
)
async def test_what_each_error_of_a_platform_comes_to(fault, wait, shown, state):
    """Design §5: errors are typed by what to do next."""
    clock = VirtualClock()
    async with gateway(clock=clock) as stage:
        stage.platform.capabilities = can(dialect=Loud())
        stage.platform.faults.append(fault)
        await stage.platform.say("hello")
        await clock.advance(0)
        if wait:
            await clock.advance(wait - 0.001)
            assert stage.platform.shown() == []
            await clock.advance(0.002)
        await stage.quiet()
        assert stage.platform.shown() == shown
        assert await stage.states("deliveries") == [state]
        (error,) = await stage.states("deliveries", "error")
        assert "a bug of the adapter" not in error


async def test_a_chat_that_moved_gets_its_answer_at_the_new_address():
    async with gateway() as stage:
        stage.platform.faults.append(Moved(Address("stub", "-100")))
        await stage.platform.say("hello")
        await stage.until_final()
        assert stage.platform.shown("-100") == ["hello"]
        assert await stage.states("deliveries") == ["delivered"]


async def test_a_chat_that_always_moves_is_given_up():
    async with gateway() as stage:
        stage.platform.faults += [Moved(Address("stub", "2")), Moved(Address("stub", "3"))]
        await stage.platform.say("hello")
        await stage.until_final()
        assert await stage.states("deliveries") == ["failed"]


async def test_a_text_refused_in_both_forms_fails_and_holds_nothing_up():
    async with gateway() as stage:
        stage.platform.faults += [Refused("format"), Refused("content")]
        await stage.platform.say("bad")
        await stage.platform.say("good")
        await stage.until_final()
        assert stage.platform.shown() == ["good"]
        assert await stage.states("deliveries") == ["failed", "delivered"]


@pytest.mark.parametrize(("idempotent", "shown"), [(True, ["hello"]), (False, ["hello", REPEAT])])
async def test_fc_dlv_01_an_answer_that_may_have_landed_is_shown_once_or_says_so(idempotent, shown):
    """Invariant 5."""
    clock = VirtualClock()
    async with gateway(clock=clock) as stage:
        stage.platform.capabilities = can(idempotent_send=idempotent)
        stage.platform.late_faults.append(Unknown("timeout"))
        await stage.platform.say("hello")
        await stage.quiet()
        assert await stage.states("deliveries") == ["pending" if idempotent else "uncertain"]
        await clock.advance(2)
        await stage.quiet()
        assert stage.platform.shown() == shown
        assert await stage.states("deliveries") == ["delivered"]


async def test_a_send_that_hangs_is_in_doubt_after_a_minute_and_holds_its_lane_no_longer():
    clock = VirtualClock()
    hangs = iter([True])

    async def before(method, address, message):
        if next(hangs, False):
            await anyio.sleep_forever()

    async with gateway(clock=clock) as stage:
        stage.platform.before = before
        await stage.platform.say("hello")
        await clock.advance(62)
        await stage.quiet()
        assert stage.platform.shown() == [REPEAT]


async def test_repeats_wait_longer_each_time_up_to_a_minute():
    clock = VirtualClock()
    at = []

    async def before(method, address, message):
        at.append(clock.boot())
        if len(at) < 9:
            raise NotSent("down")

    async with gateway(clock=clock) as stage:
        stage.platform.before = before
        await stage.platform.say("hello")
        await clock.advance(400)
        await stage.quiet()
        assert [b - a for a, b in itertools.pairwise(at)] == [1, 2, 4, 8, 16, 32, 60, 60]
        assert stage.platform.shown() == ["hello"]
        assert await stage.states("deliveries", "attempts") == [8]


def in_parts(count):
    """Return a plugin whose runtime answers with parts of one platform limit each."""

    async def script(request, host):
        if request.inputs[0].text == "long":
            yield TextBlock("1", "\n\n".join(f"part{n} ".ljust(60, "x") for n in range(count)))
        else:
            yield TextBlock("1", request.inputs[0].text)
        yield Finished()

    plugin = StubPlugin()
    plugin.runtimes["scripted"] = ScriptedRuntime(script)
    plugin.platform().capabilities = can(max_text=112, dialect=Loud())
    return plugin


@pytest.mark.parametrize(
    ("fault", "late"),
    [
        (RateLimited(20.0), False),
        (Refused("parse error"), False),
        (Unknown("read timeout"), True),
        (NotSent("connect error"), False),
    ],
)
@pytest.mark.parametrize("number", [0, 2])
async def test_fc_spl_05_a_part_that_fails_is_taken_up_where_it_was(fault, late, number):
    """Invariant 14; a notice for the chat comes before or after the parts, never inside."""
    clock = VirtualClock()
    plugin = in_parts(5)
    platform = plugin.platform()
    sent = itertools.count()

    async def before(method, address, message):
        if next(sent) == number:
            (platform.late_faults if late else platform.faults).append(fault)
            await outbox_of(stage).post(attrs.evolve(_owed(99), text="notice"))

    platform.before = before
    async with gateway(plugin, clock=clock) as stage:
        await stage.platform.say("long")
        await stage.platform.say("next")
        await clock.advance(40)
        await stage.quiet()
        shown = platform.shown()
        starts = [
            text.removeprefix("*(this may be a repeat)*\n\n")[:5].lower().strip() for text in shown
        ]
        parts = [f"part{n}" for n in range(5)]
        if late:
            parts.insert(number, f"part{number}")
        assert [text for text in starts if text in parts] == parts
        assert starts.index("part4") - starts.index("part0") == len(parts) - 1
        assert sorted(starts) == sorted([*parts, "notic", "next"])
        assert set(await stage.states("deliveries")) == {"delivered"}
        assert max(await stage.states("deliveries", "attempts")) <= 2
        ids = [int(message.native_id) for message in platform.messages]
        assert ids == sorted(ids)


async def test_fc_spl_06_slow_parts_keep_their_order_and_other_lanes_do_not_wait():
    clock = VirtualClock()
    plugin = in_parts(3)
    latencies = {"part0": 0.3, "part1": 0.01, "part2": 0.1}

    async def before(method, address, message):
        await clock.sleep(latencies.get(message.text[:5], 0))

    plugin.platform().before = before
    plugin.platform().faults.append(NotSent("500"))
    async with gateway(plugin, clock=clock) as stage:
        await stage.platform.say("long", channel="1")
        await stage.platform.say("long", channel="1", user="8")
        await clock.advance(0.31)
        await stage.platform.say("short", channel="2")
        await clock.advance(0.01)
        assert stage.platform.shown("1") == []
        assert stage.platform.shown("2") == ["short"]
        await clock.advance(10)
        await stage.quiet()
        assert [text[:5] for text in stage.platform.shown("1")] == ["part0", "part1", "part2"] * 2


async def test_invariant_4_nothing_is_sent_without_a_row_that_was_durable_before(tmp_path):
    """Invariant 4: asked from inside the platform's own calls."""
    found = []

    async def before(method, address, message):
        rows = await stage.rows("SELECT state FROM deliveries WHERE id = ?", message.delivery_id)
        found.append(rows)

    plugin = in_parts(4)
    plugin.platform().before = before
    async with gateway(plugin, store=tmp_path / "store.db") as stage:
        await stage.platform.say("long")
        await stage.platform.say("short", channel="2")
        await stage.until_final()
        assert len(found) == 5
        assert all(rows == [("sending",)] for rows in found)


async def test_invariant_4_nothing_is_streamed_without_a_row_that_was_durable_before(tmp_path):
    """Invariant 4: placeholders, further parts, edits, and the notice of a full queue."""
    found = []

    async def before(method, address, message):
        rows = await stage.rows("SELECT id FROM deliveries WHERE id = ?", message.delivery_id)
        found.append((method, len(rows)))

    async def script(request, host):
        for number in range(12):
            yield TextDelta("1", f"word{number} ".ljust(30, "x") + " ")
            await anyio.sleep(0.02)
        yield Finished()

    plugin = StubPlugin()
    plugin.runtimes["scripted"] = ScriptedRuntime(script)
    plugin.platform().capabilities = can(max_text=112, edit_interval=0.01)
    plugin.platform().before = before
    limits = Limits(queued_per_session=1)
    async with gateway(plugin, store=tmp_path / "store.db", limits=limits) as stage:
        for _ in range(3):
            await stage.platform.say("go")
        await stage.until_final()
        assert {method for method, _ in found} == {"send", "edit"}
        assert all(rows == 1 for _, rows in found)


async def test_refused_credentials_stop_one_platform_and_keep_what_it_owes():
    plugin = StubPlugin()
    tables = [table("platforms", "stub"), table("platforms", "other")]
    async with gateway(plugin, components=tables) as stage:
        plugin.platform("stub").faults.append(Unauthorized("revoked"))
        for number in range(3):
            await plugin.platform("stub").say(str(number))
        await plugin.platform("other").say("hello")
        await plugin.platform("other").until_shown("hello")
        await stage.until("inbound_events", ["answered"] * 4)
        await stage.quiet()
        assert plugin.platform("stub").calls.count("send") == 1
        owed = await stage.rows("SELECT state FROM deliveries WHERE lane LIKE '%stub%'")
        assert set(owed) <= {("pending",), ("sending",)}
        assert len(owed) == 3


def _owed(number, channel="1"):
    return Delivery(
        id=f"msg_{number}",
        address=Address("stub", channel),
        text=str(number),
        state=DeliveryState.PENDING,
        ready_at=float(number),
    )


async def test_invariant_14_more_than_memory_holds_goes_out_completely_and_in_order():
    """Invariants 3, 10 and 14: what comes while the lane reads the store included."""
    count = 4 * HELD + 3
    async with gateway() as stage:
        hold = anyio.Event()

        async def before(method, address, message):
            await hold.wait()

        stage.platform.before = before
        outbox = outbox_of(stage)
        for number in range(count):
            await outbox.post(_owed(number))
        assert len(outbox.lane(Address("stub", "1")).queue) <= HELD
        hold.set()
        for number in range(count, count + 40):
            await outbox.post(_owed(number))
            await anyio.sleep(0.002)
        await stage.until_final()
        assert stage.platform.shown() == [str(number) for number in range(count + 40)]


async def test_what_comes_while_a_lane_reads_the_store_is_sent_too(monkeypatch):
    """Invariant 3: the part is neither in what was read nor in memory."""
    async with gateway() as stage:
        outbox = outbox_of(stage)
        reads = type(stage.app.store.read)
        owed = reads.owed
        hold = anyio.Event()

        async def before(method, address, message):
            await hold.wait()

        async def read_then_post(self, *arguments, **options):
            found = await owed(self, *arguments, **options)
            if not late:
                late.append(True)
                await outbox.post(_owed(HELD + 5))
            return found

        late = []
        stage.platform.before = before
        for number in range(HELD + 5):
            await outbox.post(_owed(number))
        monkeypatch.setattr(reads, "owed", read_then_post)
        hold.set()
        await stage.until_final()
        assert stage.platform.shown() == [str(number) for number in range(HELD + 6)]


async def test_an_edit_that_finds_its_lane_full_is_not_left_to_the_store():
    clock = VirtualClock()

    async def script(request, host):
        yield TextBlock("1", "x" * 100)
        await clock.sleep(5)
        yield TextBlock("1", "whole")
        yield Finished()

    plugin = StubPlugin()
    plugin.runtimes["scripted"] = ScriptedRuntime(script)
    async with gateway(plugin, clock=clock) as stage:
        stage.platform.capabilities = can(idempotent_send=True)
        await stage.platform.say("go")
        await clock.advance(1)
        stage.platform.faults.append(RateLimited(20.0))
        outbox = outbox_of(stage)
        for number in range(2 * HELD):
            await outbox.post(_owed(number))
        assert outbox.lane(Address("stub", "1")).overflow
        await clock.advance(60)
        await stage.quiet()
        assert stage.platform.shown()[0] == "whole"
        assert set(await stage.states("deliveries")) == {"delivered"}


async def test_what_an_earlier_process_owed_goes_out_before_anything_new(tmp_path):
    """Lanes with more than fits in memory, and many lanes."""
    from dragoman.store.sqlite import open_sqlite

    file = tmp_path / "store.db"
    async with open_sqlite(file) as store, anyio.create_task_group() as tasks:
        for number in range(3 * HELD):
            tasks.start_soon(store.apply, Post(delivery=_owed(_soon(number))))
        for number in range(300):
            late = _owed(_soon(1000 + number), channel=str(2 + number))
            tasks.start_soon(store.apply, Post(delivery=late))
    async with gateway(store=file) as stage:
        await stage.platform.say("new", channel="1")
        await stage.platform.say("new", channel="200")
        await stage.until_final()
        assert stage.platform.shown("1") == [*(str(_soon(n)) for n in range(3 * HELD)), "new"]
        assert stage.platform.shown("200") == [str(_soon(1198)), "new"]


BASE = int(time.time()) - 3000


def _soon(number):
    return BASE + number


async def test_a_store_that_fails_holds_lanes_up_and_nothing_is_lost(monkeypatch):
    """The gateway survives a full disk: what was sent is recorded when the disk has room again."""
    from dragoman import StoreUnavailable

    clock = VirtualClock()
    async with gateway(clock=clock) as stage:
        store = stage.app.store
        apply = store.apply
        full = []

        async def failing(operation):
            if full and type(operation).__name__ in full:
                raise StoreUnavailable("disk full")
            return await apply(operation)

        monkeypatch.setattr(type(store), "apply", lambda self, op: failing(op))
        for kinds in (["EndSend"], ["Finish"], ["Accept"], ["BeginSend"], ["OpenPart", "Shown"]):
            full[:] = kinds
            await stage.platform.say(kinds[0])
            await clock.advance(5)
            full.clear()
            await clock.advance(5)
            await stage.quiet()
        assert stage.platform.shown() == ["EndSend", "Finish", "Accept", "BeginSend", "OpenPart"]
        assert set(await stage.states("deliveries")) == {"delivered"}
        monkeypatch.undo()


async def test_a_stopped_gateway_waits_for_what_it_is_sending():
    slow = anyio.Event()

    async def before(method, address, message):
        slow.set()
        await anyio.sleep(0.1)

    plugin = StubPlugin()
    plugin.platform().before = before
    async with gateway(plugin) as stage:
        await stage.platform.say("hello")
        await slow.wait()
    assert plugin.platform().shown() == ["hello"]
