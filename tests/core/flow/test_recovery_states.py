"""What a start does with the work of a process that was killed, by how far that work had come."""

import logging
import sqlite3
from contextlib import closing

import anyio
import pytest

from dragoman import Finished, NotSent, Place, RuntimeCapabilities, TextDelta, ToolCall
from dragoman.manifest.model import Profile
from dragoman.testing import ScriptedRuntime, StubPlatform, StubPlugin
from lives import wreck
from stage import Limits, can, eventually, gateway, table

pytestmark = pytest.mark.anyio

NOTICE = "*(a restart interrupted this before there was an answer; please ask again)*"
MARK = "*(interrupted by a restart)*"
CUT = Limits(grace=0)
RETRY = {"default": Profile(runtime="scripted", recovery="retry")}
NOTIFY = {"default": Profile(runtime="scripted", recovery="notify")}
LONG = " ".join(f"word{number}" for number in range(30))


def acting(script, **capabilities):
    """Return a plugin whose runtime keeps a journal and its inputs."""
    runtime = ScriptedRuntime(script, namespace="items")
    runtime.capabilities = RuntimeCapabilities(stream=True, journal=True)
    platform = StubPlatform(capabilities=can(edit_interval=0.01, **capabilities))
    return StubPlugin(platforms={"stub": platform}, runtimes={"scripted": runtime})


async def hangs(request, host):
    """Write and show something, and never come to an end."""
    await host.records("items").append(["cut off"])
    yield TextDelta("1", LONG)
    await anyio.sleep_forever()


async def says_done(request, host):
    said = await host.records("items").read()
    await host.records("items").append([f"answer to {said}"])
    yield TextDelta("1", "done")
    yield Finished()


async def shown_by_a_row(stage, count=1):
    """Wait until so many parts are shown and noted in the ledger."""
    await eventually(
        lambda: stage.rows("SELECT count(*) FROM deliveries WHERE shown <> ''"), [(count,)]
    )


async def test_a_turn_that_is_run_again_goes_on_in_the_same_messages(tmp_path):
    """B8, invariants 3, 5 and 14: same turn, next fence, parts edited, surplus marked, once."""
    plugin = acting(hangs, max_text=128)
    async with gateway(plugin, store=tmp_path / "a.db", profiles=RETRY, limits=CUT) as stage:
        await stage.platform.say("one")
        await stage.platform.until_count(3)
        await shown_by_a_row(stage, 3)
        await stage.platform.say("two")
        await stage.until("inbound_events", ["adopted", "queued"])
        old = await stage.rows("SELECT id, fence, attempt FROM agent_runs")
        left = wreck(tmp_path / "a.db", plugin, says_done)
    ids = [message.native_id for message in left.platform.messages]
    async with gateway(left.plugin, store=left.store, profiles=RETRY) as stage:
        await stage.until_final()
        runs = await stage.rows("SELECT id, fence, attempt FROM agent_runs ORDER BY started_at")
        assert runs[0] == (old[0][0], old[0][1] + 1, 2)
        assert left.platform.shown() == ["done", "⁂", "⁂", "done"]
        assert [message.native_id for message in left.platform.messages][:3] == ids
        assert await stage.states("inbound_events") == ["answered", "answered"]
        assert await stage.states("agent_runs") == ["succeeded", "succeeded"]
        requests = stage.runtime.requests
        assert [(r.inputs[0].text, r.attempt) for r in requests] == [("one", 2), ("two", 1)]
        assert await stage.rows("SELECT item FROM records ORDER BY number") == [
            ("one",),
            ("answer to ['one']",),
            ("two",),
            ("""answer to ['one', "answer to ['one']", 'two']""",),
        ]


@pytest.mark.parametrize(("read_only", "shown"), [(True, ["done"]), (False, [NOTICE])])
async def test_invariant_7_a_turn_that_may_have_changed_something_is_not_run_again(
    tmp_path, read_only, shown
):
    """B8, invariant 7: a call in the journal that is not read-only leaves it to the person."""

    async def acts(request, host):
        await host.tool_begins(ToolCall("1", "work", "{}", read_only=read_only))
        begun.set()
        await anyio.sleep_forever()
        yield Finished()

    begun = anyio.Event()
    plugin = acting(acts)
    async with gateway(plugin, store=tmp_path / "a.db", profiles=RETRY, limits=CUT) as stage:
        await stage.platform.say("go")
        await begun.wait()
        left = wreck(tmp_path / "a.db", plugin, says_done)
    async with gateway(left.plugin, store=left.store, profiles=RETRY) as stage:
        await stage.until_final()
        assert left.platform.shown() == shown


async def test_a_turn_is_tried_three_times_and_then_its_person_is_told(tmp_path):
    """B8: whatever brings the process down each time does not do so for ever."""
    plugin, store = acting(hangs), tmp_path / "a.db"
    profiles = {"profiles": RETRY, "limits": Limits(restarts=10, grace=0)}
    for life in range(1, 4):
        async with gateway(plugin, store=store, **profiles) as stage:
            if life == 1:
                await stage.platform.say("go")
            await eventually(lambda stage=stage: stage.states("agent_runs", "attempt"), [life])
            await shown_by_a_row(stage)
            left = wreck(store, plugin)
            plugin, store = left.plugin, left.store
    async with gateway(plugin, store=store, **profiles) as stage:
        await stage.until_final()
        assert plugin.platform().shown() == [f"{LONG}\n\n{MARK}"]
        assert await stage.states("inbound_events") == ["refused"]
        assert plugin.runtimes["scripted"].requests == []


@pytest.mark.parametrize("orderly", [False, True])
async def test_starts_after_crashes_in_a_short_time_run_no_turn_again(tmp_path, orderly, caplog):
    """B8: three within five minutes; an orderly stop in between says that all is well."""
    plugin, store = acting(hangs), tmp_path / "a.db"
    manifest = {"profiles": RETRY, "limits": CUT}
    for life in range(1, 4):
        async with gateway(plugin, store=store, **manifest) as stage:
            if life == 3:
                await stage.platform.say("go")
                await shown_by_a_row(stage)
            left = wreck(store, plugin, says_done if life == 3 else None)
        if life == 3 and orderly:
            left = wreck(store, plugin, says_done)  # with what the stop wrote
        plugin, store = left.plugin, left.store
    with caplog.at_level(logging.ERROR):
        async with gateway(plugin, store=store, **manifest) as stage:
            await stage.until_final()
    if orderly:
        assert plugin.platform().shown() == ["done"]
    else:
        assert plugin.platform().shown() == [f"{LONG}\n\n{MARK}"]
        assert "3 starts after crashes within 300 s: no turn is run again" in caplog.text


async def test_a_damaged_count_of_starts_stops_nothing(tmp_path):
    """FC-RST-07: what a start reads first may be the damaged thing."""
    plugin, store = acting(hangs), tmp_path / "a.db"
    async with gateway(plugin, store=store, limits=CUT) as stage:
        await stage.platform.say("go")
        await shown_by_a_row(stage)
        left = wreck(store, plugin, says_done)
    for value in ("[1, ", '{"a": 1}', '["x", null, 1.5]', "7"):
        left.run(
            "INSERT OR REPLACE INTO component_values VALUES ('core:gateway', 'starts', ?)", value
        )
        async with gateway(left.plugin, store=left.store) as stage:
            await stage.until_final()


@pytest.mark.parametrize("profiles", [RETRY, NOTIFY])
async def test_a_turn_whose_platform_is_gone_ends_and_harms_nobody(tmp_path, profiles):
    plugin = acting(hangs)
    async with gateway(plugin, store=tmp_path / "a.db", profiles=profiles, limits=CUT) as stage:
        await stage.platform.say("go")
        await shown_by_a_row(stage)
        left = wreck(tmp_path / "a.db", plugin, says_done)
    other = StubPlatform(id="other", capabilities=can())
    left.plugin.platforms["other"] = other
    async with gateway(
        left.plugin,
        store=left.store,
        profiles=profiles,
        components=[table("platforms", "other")],
    ) as stage:
        await stage.until("agent_runs", ["interrupted"])
        assert await stage.states("inbound_events") == ["refused"]
        assert other.messages == []


@pytest.mark.parametrize(
    ("profiles", "turn", "at_stop", "later"),
    [
        (RETRY, "running", LONG, "done"),
        (NOTIFY, "interrupted", f"{LONG}\n\n{MARK}", f"{LONG}\n\n{MARK}"),
    ],
)
async def test_a_stop_that_cuts_a_turn_tells_its_person_or_leaves_it_to_the_next_start(
    tmp_path, profiles, turn, at_stop, later
):
    """B8, B9."""
    plugin, store = acting(hangs), tmp_path / "a.db"
    manifest = {"profiles": profiles, "limits": CUT}
    async with gateway(plugin, store=store, **manifest) as stage:
        await stage.platform.say("go")
        await shown_by_a_row(stage)
    assert plugin.platform().shown() == [at_stop]
    left = wreck(store, plugin, says_done)
    assert left.run("SELECT state FROM agent_runs") == [(turn,)]
    async with gateway(left.plugin, store=left.store, **manifest) as stage:
        await stage.until_final()
        assert left.platform.shown() == [later]


async def test_fc_rst_03_one_notice_where_the_turn_was_and_none_elsewhere(tmp_path):
    """B8: two restarts within five seconds, a group's thread at work, a direct chat idle."""
    running = anyio.Event()

    async def script(request, host):
        if request.address.thread:
            running.set()
            await anyio.sleep_forever()
        yield TextDelta("1", "hello")
        yield Finished()

    plugin, store = acting(script), tmp_path / "a.db"
    async with gateway(plugin, store=store, limits=CUT) as stage:
        await stage.platform.say("hi", channel="1")
        await stage.platform.until_shown("hello", "1")
        await stage.platform.say("work", channel="2", thread="5", user="1", place=Place.GROUP)
        await running.wait()
        left = wreck(store, plugin)
    for _ in range(2):
        async with gateway(left.plugin, store=left.store) as stage:
            await stage.until_final()
            left = wreck(left.store, left.plugin)
    assert left.platform.shown("1") == ["hello"]
    assert left.platform.shown("2", "5") == [NOTICE]
    assert len(left.platform.messages) == 2


async def test_fc_rst_02_events_that_are_polled_again_start_nothing(tmp_path):
    """B8, invariant 1: killed after the last turn ended and before the platform was told."""
    plugin, store = acting(says_done), tmp_path / "a.db"
    async with gateway(plugin, store=store, limits=CUT) as stage:
        for number in range(1000, 1006):
            await stage.platform.say(str(number), native_id=str(number))
        await stage.until_final()
        left = wreck(store, plugin)
    async with gateway(left.plugin, store=left.store) as stage:
        for number in range(1003, 1007):
            await stage.platform.say(str(number), native_id=str(number))
        await stage.until_final()
        assert [r.inputs[0].text for r in stage.runtime.requests] == ["1006"]
        assert len(await stage.states("agent_runs")) == 7 - (await _merged(stage))


async def _merged(stage):
    return (await stage.states("inbound_events")).count("merged")


@pytest.mark.parametrize("confirmed", [False, True])
async def test_fc_rst_05_an_answer_that_could_not_be_sent_is_sent_by_the_next_start(
    tmp_path, confirmed
):
    """B8, invariant 5: where it belongs, and only if it had not been confirmed."""
    plugin, store = acting(says_done, edit=False), tmp_path / "a.db"
    down = not confirmed

    async def before(method, address, message):
        if down:
            raise NotSent("connection refused")

    plugin.platform().before = before
    async with gateway(plugin, store=store, limits=CUT) as stage:
        await stage.platform.say("go", channel="2", thread="5", place=Place.GROUP, user="1")
        await stage.until("agent_runs", ["succeeded"])
        await stage.until("deliveries", ["delivered" if confirmed else "pending"])
    left = wreck(store, plugin)
    async with gateway(left.plugin, store=left.store) as stage:
        await stage.until_final()
    assert left.platform.calls.count("send") == (0 if confirmed else 1)
    assert left.platform.shown("2", "5") == ["done"]
    assert len(left.platform.messages) == 1


async def test_fc_rst_01_what_was_delivered_is_not_sent_again_and_what_is_old_is_left_out(
    tmp_path, caplog
):
    """B7, B8, invariant 5: four rows as a lost process left them, and two starts."""
    plugin, store = acting(says_done, edit=True), tmp_path / "a.db"
    async with gateway(plugin, store=store, limits=CUT) as stage:
        for channel in "1234":
            await stage.platform.say(f"for {channel}", channel=channel)
        await stage.until_final()
        left = wreck(store, plugin)
    del left.platform.messages[2:]  # C and D never appeared
    for channel, changes in {
        "2": "state = 'sending', shown = NULL",
        "3": "state = 'sending', shown = NULL, native_id = '', ready_at = ready_at - 120",
        "4": "state = 'pending', shown = NULL, native_id = '', ready_at = ready_at - 54000",
    }.items():
        left.run(f"UPDATE deliveries SET {changes} WHERE address ->> '$.channel' = ?", channel)
    sends = []
    for _ in range(2):
        async with gateway(
            left.plugin, store=left.store, limits=Limits(freshness=12 * 3600)
        ) as stage:
            await stage.until_final()
            sends.append(left.platform.calls.count("send"))
            assert await stage.states("deliveries") == [*["delivered"] * 3, "abandoned"]
            left = wreck(left.store, left.plugin)
    assert sends == [1, 0]
    assert [left.platform.shown(channel) for channel in "1234"] == [
        ["done"],
        ["done"],
        ["*(this may be a repeat)*\n\ndone"],
        [],
    ]
    assert "1 expired" in caplog.text


DAMAGE = {
    "half an event": "UPDATE inbound_events SET event = substr(event, 1, 40) WHERE id = 2",
    "an event of another type": "UPDATE inbound_events SET event = '[1]' WHERE id = 2",
    "an event without a sender": (
        "UPDATE inbound_events SET event = json_remove(event, '$.sender') WHERE id = 2"
    ),
    "a block of zeros": "UPDATE inbound_events SET event = zeroblob(4096) WHERE id = 2",
    "half a character": (
        "UPDATE inbound_events SET event = CAST(CAST(event AS BLOB) || x'c3' AS TEXT) WHERE id = 2"
    ),
    "a date that is none": "UPDATE inbound_events SET received_at = 'soon' WHERE id = 2",
    "a part's address": "UPDATE deliveries SET address = '{}' WHERE number = 2",
    "a part's count": "UPDATE deliveries SET attempts = 'many' WHERE number = 2",
    "a part's text": "UPDATE deliveries SET text = CAST(x'c3c3' AS TEXT) WHERE number = 2",
    "a part's date": "UPDATE deliveries SET ready_at = 'soon' WHERE number = 2",
    "a part's sight": "UPDATE deliveries SET shown = CAST(x'ff' AS TEXT) WHERE number = 2",
    "a record's text": "UPDATE records SET item = CAST(x'ff' AS TEXT) WHERE session_id = :bad",
    "a record's type": "UPDATE records SET item = 7 WHERE session_id = :bad",
}


STATIONS = {
    "inbound_events": ("received", "queued", "running"),
    "deliveries": ("running", "owed"),
    "records": ("running",),
}


async def last_shown(stage, channel):
    return stage.platform.shown(channel)[-1]


@pytest.mark.parametrize("profiles", [RETRY, NOTIFY])
@pytest.mark.parametrize(
    ("damage", "station"),
    [(damage, station) for damage, sql in DAMAGE.items() for station in STATIONS[sql.split()[1]]],
)
async def test_fc_rst_07_a_damaged_row_concerns_its_own_conversation_only(
    tmp_path, damage, station, profiles, caplog
):
    """B8, invariant 11: the gateway starts, the others are answered, and a new one works."""
    file = tmp_path / "a.db"
    plugin = acting(hangs)
    async with gateway(plugin, store=file, profiles=profiles, limits=CUT) as stage:
        for channel in "123":
            await stage.platform.say(f"for {channel}", channel=channel)
        await shown_by_a_row(stage, 3)
        left = wreck(file, plugin, says_done)
    ((bad,),) = left.run("SELECT session_id FROM inbound_events WHERE id = 2")
    for change in {
        "received": (
            "DELETE FROM agent_runs",
            "DELETE FROM deliveries",
            "UPDATE inbound_events SET state = 'received', turn_id = NULL, session_id = NULL",
        ),
        "queued": (
            "DELETE FROM agent_runs",
            "DELETE FROM deliveries",
            "UPDATE inbound_events SET state = 'queued', turn_id = NULL",
        ),
        "running": (),
        "owed": (
            (
                "UPDATE deliveries SET state = 'pending', text = 'owed', ready_at = created_at,"
                " place = number, turn_id = NULL"
            ),
            "UPDATE inbound_events SET state = 'answered'",
            "UPDATE agent_runs SET state = 'succeeded'",
        ),
    }[station]:
        left.run(change)
    sql = DAMAGE[damage]
    with closing(sqlite3.connect(left.store)) as db, db:
        db.execute(sql, {"bad": bad} if ":bad" in sql else {})
    async with gateway(left.plugin, store=left.store, profiles=profiles) as stage:
        for channel in "13":
            await stage.platform.say("again", channel=channel)
            await stage.platform.until_shown("done", channel)
        await stage.platform.say("/new", channel="2")
        await stage.platform.until_shown("A new conversation begins.", "2")
        await stage.platform.say("hello", channel="2")
        await eventually(lambda: last_shown(stage, "2"), "done")
        await stage.until_final()
    assert caplog.text.count("damaged and left out") <= 1


async def test_fc_rst_07_a_damaged_record_costs_no_other_record(tmp_path):
    """FC-RST-07: the conversation goes on with what can be read."""
    plugin, store = acting(says_done), tmp_path / "a.db"
    async with gateway(plugin, store=store) as stage:
        await stage.platform.say("one")
        await stage.until_final()
        left = wreck(store, plugin)
    left.run("UPDATE records SET item = CAST(x'6fff' AS TEXT) WHERE item = 'one'")
    async with gateway(left.plugin, store=left.store) as stage:
        await stage.platform.say("two")
        await stage.until_final()
        assert left.platform.shown() == ["done", "done"]
        ((last,),) = await stage.rows("SELECT item FROM records ORDER BY number DESC LIMIT 1")
        assert last == """answer to ['o\ufffd', "answer to ['one']", 'two']"""
