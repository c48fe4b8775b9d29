"""What belongs together becomes one message: albums, and texts that a client cut."""

from datetime import timedelta

import anyio
import attrs
import pytest

from dragoman import Attachment, Finished, Place, Scope, ScopeRule, TextBlock, hookimpl
from dragoman.flow.holds import MOST
from dragoman.manifest.model import Profile
from dragoman.store.operations import Accept
from dragoman.testing import ScriptedRuntime, StubPlugin, VirtualClock
from stage import Limits, gateway, table

pytestmark = pytest.mark.anyio

LONG = "x" * 4000 + "cut in a wo"
NEXT = "rd" + "y" * 4000
LAST = "the end"
HOLD = {"channel": "1", "continues": True}


def photo(number):
    return [Attachment(str(number), "photo")]


@attrs.define(eq=False)
class Blocks:
    """A script that answers ``wait`` when it is let go, and everything else at once."""

    go: anyio.Event = attrs.field(factory=anyio.Event)

    async def __call__(self, request, host):
        if request.inputs[0].text == "wait":
            await self.go.wait()
        yield TextBlock("1", " ".join(one.text for one in request.inputs))
        yield Finished()


def scripted(script, **changes):
    plugin = StubPlugin()
    plugin.runtimes["scripted"] = ScriptedRuntime(script, **changes)
    return plugin


def late(stage):
    """Return of each input of all turns whether it is marked as late."""
    return [one.late for request in stage.runtime.requests for one in request.inputs]


def inputs(stage):
    """Return what each turn was given: its texts and the ids of its files."""
    return [
        [(one.text, [file.id for file in one.attachments]) for one in request.inputs]
        for request in stage.runtime.requests
    ]


@pytest.mark.parametrize("mode", ["queue", "collect", "steer", "interrupt"])
async def test_fc_con_01_an_album_is_one_message_in_every_mode(mode):
    """B4: arrival 103, 101, 104, 102; what another person says meanwhile has its own turn."""
    from dragoman import RuntimeCapabilities

    clock = VirtualClock()
    plugin = scripted(ScriptedRuntime().script, capabilities=RuntimeCapabilities(steer=True))
    profile = Profile(runtime="scripted", busy=mode)
    async with gateway(plugin, clock=clock, profiles={"default": profile}) as stage:
        start = clock.boot()
        group = {"channel": "1", "place": Place.GROUP}

        async def part(at, number, text=""):
            await clock.advance(start + at - clock.boot())
            await stage.platform.say(
                text,
                user="7",
                album="g1",
                message_id=str(number),
                attachments=photo(number),
                addressed=bool(text),  # the mention is in the caption
                **group,
            )

        await part(0, 103)
        await clock.advance(0.2)
        await stage.platform.say("and I?", user="8", **group)
        await stage.quiet()
        assert inputs(stage) == [[("and I?", [])]]
        await part(0.3, 101)
        await part(0.35, 104)
        await part(0.75, 102, "look")
        await clock.advance(0.9)
        assert len(inputs(stage)) == 1
        await clock.advance(0.2)
        await stage.quiet()
        assert inputs(stage)[1:] == [[("look", ["101", "102", "103", "104"])]]
        states = await stage.states("inbound_events")
        assert states == ["answered", "answered", "merged", "merged", "merged"]


async def test_fc_con_01_a_late_part_joins_an_album_that_waits_else_it_is_the_next_input():
    """Invariant 3; in a group it need not mention the bot again, and plugins see it first."""
    clock, blocks = VirtualClock(), Blocks()

    class Upper:
        @hookimpl
        async def dragoman_inbound(self, event):
            return attrs.evolve(event, text=event.text.upper())

    plugin = scripted(blocks, namespace="chat")
    plugin.extensions["upper"] = Upper()
    blocks.go, tables = anyio.Event(), [table("extensions", "upper"), table("platforms", "stub")]

    async def script(request, host):
        if request.inputs[0].text == "WAIT":
            await blocks.go.wait()
        elif request.inputs[0].attachments and len(stage.runtime.requests) == 2:
            items.extend(await host.records("chat").read())
            await second.wait()
        yield TextBlock("1", request.inputs[0].text)
        yield Finished()

    items, second = [], anyio.Event()
    plugin.runtimes["scripted"].script = script
    async with gateway(plugin, clock=clock, components=tables) as stage:
        group = {"channel": "1", "place": Place.GROUP, "user": "7"}
        await stage.platform.say("wait", **group)
        await stage.quiet()
        for number, text in (1, "cap"), (2, ""):
            await stage.platform.say(
                text, album="g", attachments=photo(number), message_id=str(number), **group
            )
        await clock.advance(1.1)
        assert await stage.states("inbound_events") == ["adopted", "queued", "merged"]
        await stage.platform.say(
            "tion", album="g", attachments=photo(3), message_id="3", addressed=False, **group
        )
        await clock.advance(1.1)
        assert (await stage.states("inbound_events"))[1:] == ["queued", "merged", "merged"]
        blocks.go.set()
        await stage.quiet()
        assert inputs(stage)[1] == [("CAP\nTION", ["1", "2", "3"])]
        assert items == ["WAIT", "CAP\nTION"]
        for number, text in (4, "late"), (5, ""):
            await stage.platform.say(
                text, album="g", attachments=photo(number), addressed=False, **group
            )
        await clock.advance(1.1)
        second.set()
        await stage.quiet()
        assert inputs(stage)[2:] == [[("LATE", ["4", "5"])]]
        assert late(stage) == [False, False, True]
        await stage.platform.say("", album="g", attachments=photo(6), addressed=False, **group)
        await clock.advance(1.1)
        await stage.quiet()
        assert inputs(stage)[3:] == [[("", ["6"])]]
        assert late(stage) == [False, False, True, True]
        marked = "SELECT event ->> '$.late' FROM inbound_events WHERE turn_id > '' ORDER BY id"
        assert await stage.rows(marked) == [(0,), (0,), (1,), (1,)]


async def test_an_album_that_speaks_to_nobody_is_ignored():
    clock = VirtualClock()
    async with gateway(clock=clock) as stage:
        for number in range(3):
            await stage.platform.say(
                "", place=Place.GROUP, album="g", attachments=photo(number), addressed=False
            )
        await clock.advance(2)
        await stage.quiet()
        await stage.platform.say("", place=Place.GROUP, album="g", addressed=False)
        await clock.advance(2)
        await stage.quiet()
        assert await stage.states("inbound_events") == ["ignored", "merged", "merged", "ignored"]
        assert stage.runtime.requests == []


async def test_fc_con_02_a_long_paste_is_one_message_without_anything_in_between():
    """B4: short texts do not wait at all; the last piece ends the wait."""
    clock = VirtualClock()
    async with gateway(clock=clock) as stage:
        await stage.platform.say("twelve chars", channel="2")
        await stage.quiet()
        assert [text for [(text, _)] in inputs(stage)] == ["twelve chars"]
        assert clock.boot() < 0.1
        await stage.platform.say(LONG, **HOLD)
        await clock.advance(0.056)
        await stage.platform.say(NEXT, **HOLD)
        await clock.advance(0.4)
        await stage.platform.say(LAST, channel="1")
        await stage.quiet()
        assert inputs(stage)[1:] == [[(LONG + NEXT + LAST, [])]]
        assert await stage.states("inbound_events") == ["answered"] * 2 + ["merged"] * 2


async def test_fc_con_02_a_paste_waits_for_more_only_as_long_as_its_gap():
    clock = VirtualClock()
    async with gateway(clock=clock) as stage:
        await stage.platform.say(LONG, **HOLD)
        await clock.advance(1.4)
        assert inputs(stage) == []
        await stage.platform.say(NEXT, **HOLD)
        await clock.advance(1.4)
        assert inputs(stage) == []
        await clock.advance(0.2)
        assert inputs(stage) == [[(LONG + NEXT, [])]]


async def test_fc_con_02_a_paste_without_end_begins_after_five_seconds():
    """Invariant 10."""
    clock = VirtualClock()
    async with gateway(clock=clock) as stage:
        for number in range(7):
            await stage.platform.say(f"{number} ", **HOLD)
            await clock.advance(1)
        await stage.quiet()
        assert [text for [(text, _)] in inputs(stage)] == ["0 1 2 3 4 "]
        await clock.advance(1)
        assert [text for [(text, _)] in inputs(stage)] == ["0 1 2 3 4 ", "5 6 "]
        assert late(stage) == [False, True]
        await stage.platform.say("the end", channel="1")
        await stage.platform.say("and another thing", channel="1")
        await stage.quiet()
        assert late(stage) == [False, True, True, False]


async def test_fc_con_02_what_no_client_sent_together_is_not_late():
    """A text that looked cut and was whole; what its sender says later, or others say, is new."""
    clock = VirtualClock()
    async with gateway(clock=clock) as stage:
        await stage.platform.say(LONG, sent_at=clock.now(), **HOLD)
        await clock.advance(1.6)
        await stage.platform.say("an answer?", channel="1", sent_at=clock.now())
        await stage.quiet()
        await stage.platform.say(LONG, channel="2", continues=True)
        await clock.advance(1.6)
        await stage.platform.say("hello", channel="3")
        await stage.platform.say("/status", channel="2")
        await stage.quiet()
        assert late(stage) == [False] * 4


async def test_what_is_remembered_of_groups_that_ended_is_bounded(monkeypatch):
    """Invariant 10: the oldest are forgotten first."""
    monkeypatch.setattr("dragoman.flow.holds.MOST", 2)
    clock = VirtualClock()
    async with gateway(clock=clock) as stage:
        for channel in ("1", "2", "3"):
            await stage.platform.say(LONG, channel=channel, continues=True)
            await clock.advance(2)
        for channel in ("1", "2", "3"):
            await stage.platform.say(LAST, channel=channel)
            await stage.quiet()
        assert late(stage) == [False] * 4 + [True] * 2


async def test_fc_con_02_a_stop_ends_what_is_held_before_it_at_once():
    """B11: the text that was held is refused with the stop, and what comes later is new."""
    clock = VirtualClock()
    async with gateway(clock=clock) as stage:
        await stage.platform.say(LONG, **HOLD)
        await clock.advance(0.1)
        await stage.platform.say("/stop", channel="1")
        await stage.quiet()
        assert clock.boot() == 0.1
        assert stage.platform.shown() == ["Stopped. 1 message that waited will not be answered."]
        await stage.platform.say("hello", channel="1")
        await clock.advance(10)
        await stage.quiet()
        assert inputs(stage) == [[("hello", [])]]
        assert await stage.rows("SELECT state, reason FROM inbound_events ORDER BY id") == [
            ("refused", "stopped by 2"),
            ("handled", "command /stop"),
            ("answered", ""),
        ]


async def test_fc_con_02_no_command_is_held_or_merged():
    clock = VirtualClock()
    async with gateway(clock=clock) as stage:
        await stage.platform.say(LONG, **HOLD)
        await stage.platform.say("/status", channel="1", continues=True)
        await stage.quiet()
        assert stage.platform.shown() == ["Nothing is running here."]
        await stage.platform.say(LAST, channel="1")
        await stage.quiet()
        assert inputs(stage) == [[(LONG + LAST, [])]]


async def test_a_command_behind_a_group_that_is_being_decided_on_finds_its_turn(monkeypatch):
    """B11: a stop is not lost on a conversation that is being made, however slow the store is."""
    clock = VirtualClock()

    async def script(request, host):
        await anyio.sleep_forever()
        yield Finished()

    async with gateway(scripted(script), clock=clock) as stage:
        store, reads = type(stage.app.store), type(stage.app.store.read)
        apply, session = store.apply, reads.session

        async def slow_apply(self, operation):
            if isinstance(operation, Accept):
                await clock.sleep(2)
            return await apply(self, operation)

        async def slow_session(self, *key):
            found = await session(self, *key)
            await clock.sleep(4)
            return found

        monkeypatch.setattr(store, "apply", slow_apply)
        monkeypatch.setattr(reads, "session", slow_session)
        await stage.platform.say(LONG, **HOLD)
        await clock.advance(2)  # held for 1.5 s, then on its way
        await stage.platform.say("/stop", channel="1")
        await clock.advance(10)
        await stage.quiet()
        assert stage.runtime.running == 0
        assert await stage.states("agent_runs") == ["cancelled"]
        assert stage.platform.shown() == ["Stopped."]


async def test_fc_con_02_nothing_is_merged_across_people_threads_or_albums():
    """Invariant 16."""
    clock = VirtualClock()
    rule = ScopeRule(group=Scope.CHANNEL)
    async with gateway(
        clock=clock, profiles={"default": Profile(runtime="scripted", scope=rule)}
    ) as stage:
        group = {"channel": "1", "place": Place.GROUP}
        for user in "78":
            for thread in ("", "5"):
                await stage.platform.say(
                    f"{user}{thread}", user=user, thread=thread, continues=True, **group
                )
        for album in "ab":
            await stage.platform.say(album, user="9", album=album, **group)
        await clock.advance(3)
        await stage.quiet()
        assert sorted(text for [(text, _)] in inputs(stage)) == ["7", "75", "8", "85", "a", "b"]


async def test_what_a_person_says_next_follows_what_is_held_of_them():
    """Invariant 14: an album is not overtaken by the text below it."""
    clock = VirtualClock()
    async with gateway(clock=clock) as stage:
        await stage.platform.say("", album="g", attachments=photo(1))
        await stage.platform.say("what is this?")
        await stage.quiet()
        assert clock.boot() == 0
        assert inputs(stage) == [[("", ["1"])], [("what is this?", [])]]


@pytest.mark.parametrize("heard", [True, False])
async def test_fc_con_02_a_crash_while_holding_loses_nothing(tmp_path, heard):
    """Invariants 1 and 3: nothing goes on before the platform has said anything, or 30 s."""
    file = tmp_path / "store.db"
    async with gateway(store=file, clock=VirtualClock()) as stage:
        await stage.platform.say(LONG, **HOLD)
        await stage.platform.say(NEXT, **HOLD)
        await stage.quiet()
        assert await stage.states("inbound_events") == ["held", "held"]
    clock = VirtualClock(start=VirtualClock().start + timedelta(seconds=60))
    async with gateway(store=file, clock=clock) as stage:
        await clock.advance(20)
        assert await stage.states("inbound_events") == ["held", "held"]
        if heard:
            stage.plugin.hosts["platforms.stub"].alive()
            await clock.advance(1.4)
            await stage.platform.say("more, ", native_id="new", **HOLD)
            await clock.advance(1)
            assert inputs(stage) == []
            await clock.advance(3)
            await stage.quiet()
            assert inputs(stage) == [[(f"{LONG}{NEXT}more, ", [])]]
        else:
            await clock.advance(9)
            assert inputs(stage) == []
            await clock.advance(6)
            await stage.quiet()
            assert inputs(stage) == [[(LONG + NEXT, [])]]


async def test_fc_con_02_a_crash_between_joining_and_deciding_loses_nothing(tmp_path):
    """Invariant 3: the joined text is one message to the next process, too."""
    file = tmp_path / "store.db"

    class Hang:
        @hookimpl
        async def dragoman_admit(self, event):
            await anyio.sleep_forever()

    plugin = StubPlugin()
    plugin.extensions["hang"] = Hang()
    tables = [table("extensions", "hang"), table("platforms", "stub")]
    async with gateway(plugin, store=file, components=tables, limits=Limits(grace=0)) as stage:
        await stage.platform.say(LONG, **HOLD)
        await stage.platform.say(LAST, channel="1")
        await stage.until("inbound_events", ["held", "merged"])
    async with gateway(store=file) as stage:
        await stage.until_final()
        assert inputs(stage) == [[(LONG + LAST, [])]]


async def test_invariant_10_a_flood_of_fragments_holds_a_bounded_number_of_groups():
    """Invariant 10: whoever comes when too many wait is answered without waiting for more."""
    from dragoman.manifest.model import Access

    clock = VirtualClock()
    access = Access(channels=("stub:1",))
    rule = ScopeRule(group=Scope.USER)
    profiles = {"default": Profile(runtime="scripted", scope=rule)}
    limits = Limits(concurrent_turns=2000, conversation_rate=0)
    async with gateway(clock=clock, access=access, profiles=profiles, limits=limits) as stage:
        async with anyio.create_task_group() as people:
            for number in range(MOST + 20):
                people.start_soon(
                    lambda n: stage.platform.say(
                        "x", channel="1", user=str(n), place=Place.GROUP, continues=True
                    ),
                    number,
                )
        await stage.quiet()
        assert (await stage.states("inbound_events")).count("held") == MOST
        assert len(stage.runtime.requests) == 20
        await clock.advance(2)
        await stage.quiet()
        assert set(await stage.states("inbound_events")) == {"answered"}
