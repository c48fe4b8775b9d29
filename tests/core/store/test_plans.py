"""Cost per message does not grow: no statement reads a table from end to end."""

import re
import statistics
import time

import attrs
import pytest

from dragoman.states import DeliveryState, TurnState
from dragoman.store import operations as ops
from dragoman.store.codec import lane_column
from dragoman.store.sqlite import open_sqlite
from dragoman.testing.store import NOW, SAMPLES, Scene, together

pytestmark = pytest.mark.anyio

TABLES = {
    "conversations",
    "conversation_keys",
    "platform_sessions",
    "inbound_events",
    "agent_runs",
    "deliveries",
    "records",
    "component_values",
    "tool_calls",
    "turn_usage",
    "model_calls",
    "model_pieces",
    "approvals",
    "grants",
    "identities",
    "codes",
    "attempts",
}
"""All but ``channel_moves``, which has a row for each channel that ever moved."""
OF_THE_UNFINISHED = {
    "events_received",
    "events_waiting",
    "events_queued",
    "events_noted",
    "one_turn_per_session",
    "runs_open",
    "runs_waiting",
    "approvals_open",
    "approvals_live",
    "deliveries_open",
}
"""Partial indexes: they hold only what has not ended, so that reading one whole is no history."""


async def statements_of(store, apply):
    """Return the statements that the store ran while ``apply`` was awaited."""
    said = []
    for connection in store.connections:
        await connection.set_trace_callback(said.append)
    await apply
    for connection in store.connections:
        await connection.set_trace_callback(None)
    return [sql for sql in said if re.match(r"\s*(SELECT|INSERT|UPDATE|DELETE|WITH)", sql)]


def named(table, sql):
    """The names by which a statement speaks of a table."""
    aliases = re.findall(rf"\b{table}\s+AS\s+(\w+)", sql)
    return {table, *aliases}


async def searches_only(store, sql):
    """Whether each real table is reached through an index that leads to the rows asked for."""
    plan = [
        row[3] for row in await store.connections[0].execute_fetchall(f"EXPLAIN QUERY PLAN {sql}")
    ]
    names = {name for table in TABLES for name in named(table, sql)}
    for step in plan:
        words = step.split()
        if words[0] not in {"SCAN", "SEARCH"} or words[1] not in names:
            continue
        whole = words[0] == "SCAN" or " USING " not in step or "AUTOMATIC" in step
        if whole and not any(f"INDEX {index}" in step for index in OF_THE_UNFINISHED):
            return f"{step}\n{sql}"
    return ""


async def history(store):
    """Let the store hold something of every kind."""
    scene = Scene(store)
    for _ in range(3):
        grant = await scene.running()
        await store.apply(scene.finish(grant, next_turn=False))


@pytest.mark.parametrize("kind", SAMPLES, ids=lambda kind: kind.__name__)
async def test_an_operation_reads_no_table_from_end_to_end(kind):
    """neither alone, nor repeated, nor beside another one of its kind."""
    async with open_sqlite(None) as store:
        await history(store)
        scene = Scene(store, native_prefix="late ")
        operation = await SAMPLES[kind].make(scene)
        said = await statements_of(store, together(store, operation, operation))
        assert said
        assert [bad for sql in said if (bad := await searches_only(store, sql))] == []


STATEMENTS = {
    ops.Receive: 1,
    ops.Merge: 3,
    ops.Settle: 2,
    ops.Move: 3,
    ops.Stop: 3,
    ops.Accept: 8,
    ops.Adopt: 7,
    ops.Absorb: 5,
    ops.Finish: 10,
    ops.Pause: 5,
    ops.Decide: 3,
    ops.ClearCard: 1,
    ops.Expire: 1,
    ops.EndWaiting: 8,
    ops.Revoke: 1,
    ops.Reset: 7,
    ops.Resume: 4,
    ops.Rename: 1,
    ops.Undo: 5,
    ops.Renew: 1,
    ops.Recover: 7,
    ops.OpenPart: 2,
    ops.Shown: 2,
    ops.Post: 1,
    ops.BeginSend: 1,
    ops.EndSend: 1,
    ops.Press: 3,
    ops.BeginTool: 3,
    ops.EndTool: 2,
    ops.AppendRecords: 4,
    ops.KeepCalls: 7,
    ops.MakeCode: 3,
    ops.Redeem: 6,
    ops.SetRole: 13,
    ops.Link: 3,
    ops.Unlink: 1,
    ops.PutValue: 1,
    ops.DeleteValue: 1,
}
"""Each is a trip to the database's thread, whatever the size of its group."""


@pytest.mark.parametrize("kind", SAMPLES, ids=lambda kind: kind.__name__)
async def test_the_statements_of_an_operation_are_counted(kind):
    """One more is a cost that each group of its kind pays: it is chosen here, not by accident."""
    async with open_sqlite(None) as store:
        await history(store)
        operation = await SAMPLES[kind].make(Scene(store, native_prefix="late "))
        said = await statements_of(store, store.apply(operation))
        assert len(said) == STATEMENTS[kind], "\n".join(said)


async def turns(scene, channels):
    """Run one turn in each channel, all at once."""
    receives = [
        ops.Receive(inbound=scene.inbound(channel=channel), now=NOW) for channel in channels
    ]
    received = await together(scene.store, *receives)
    accepts = [
        scene.accept(event.event_id, channel=channel)
        for event, channel in zip(received, channels, strict=True)
    ]
    accepted = await together(scene.store, *accepts)
    ends = [scene.finish(answer.turn) for answer in accepted]
    assert len(await together(scene.store, *ends)) == len(channels)


async def test_the_statements_and_commits_of_a_group_do_not_grow_with_it():
    """A hundred messages at once cost what one costs."""
    async with open_sqlite(None) as store:
        counts = []
        for number in (1, 100):
            scene = Scene(store, native_prefix=f"{number} of ")
            commits = store.commits
            channels = [f"{number}.{channel}" for channel in range(number)]
            said = await statements_of(store, turns(scene, channels))
            counts.append((len(said), store.commits - commits))
        assert counts[0] == counts[1]
        assert counts[0][1] == 3


async def test_a_recovery_reads_no_table_from_end_to_end():
    """Also where turns begin again: what has ended is not looked at."""
    async with open_sqlite(None) as store:
        await history(store)
        scene = Scene(store, native_prefix="late ")
        grant = await scene.running()
        await store.apply(scene.append(grant, "transcript", "half a thought"))
        await store.apply(scene.begin_tool(grant, read_only=True))
        said = await statements_of(store, store.apply(scene.recover()))
        assert len(said) == 14  # two of them put the inputs back
        assert [bad for sql in said if (bad := await searches_only(store, sql))] == []


async def test_a_reset_costs_the_same_however_long_the_session_is():
    """Counted in steps of SQLite's own machine: it begins lists anew without reading them."""
    steps = []
    async with open_sqlite(None) as store:
        scene = Scene(store)
        for count in (10, 10_000):
            grant = await scene.running()
            append = scene.append(grant, "transcript", "item")
            await store.apply(attrs.evolve(append, items=('"item"',) * count))
            await store.apply(scene.finish(grant, next_turn=False))
            steps.append(0)

            def step():
                steps[-1] += 1

            reset = ops.Reset(
                session_id=grant.lease.session_id, event_id=await scene.received(), now=NOW
            )
            await store.connections[0].set_progress_handler(step, 10)
            assert await store.apply(reset)
            await store.connections[0].set_progress_handler(None, 0)
    assert steps[0] > 0
    assert steps[1] < 2 * steps[0]


async def test_turns_that_meet_a_queue_read_no_table_from_end_to_end():
    """admission into a full and into a busy session, and handing a session on."""
    async with open_sqlite(None) as store:
        await history(store)
        scene = Scene(store, native_prefix="late ")
        grant = await scene.running()
        events = [await scene.received() for _ in range(3)]
        accepts = [scene.accept(event, queue_limit=2) for event in events]
        said = await statements_of(store, together(store, *accepts))
        finish = attrs.evolve(scene.finish(grant), take_back=True)
        said += await statements_of(store, together(store, finish))
        said += await statements_of(store, together(store, finish))
        cancelled = ops.Finish(lease=grant.lease, state=TurnState.CANCELLED, now=NOW)
        said += await statements_of(store, together(store, cancelled))
        assert len(said) > 15
        assert [bad for sql in said if (bad := await searches_only(store, sql))] == []


async def test_queries_read_no_table_from_end_to_end():
    """what intake, turns, outbox and runtimes ask; `states` is for `doctor` alone, and `identities` and `spent` are read once."""
    async with open_sqlite(None) as store:
        await history(store)
        scene = Scene(store, native_prefix="late ")
        session_id = await scene.queued()
        lane = lane_column(scene.inbound().address.lane)
        asked = {
            "received": store.read.received("stub", 0, 10),
            "undecided": store.read.undecided([1, 2]),
            "queued": store.read.queued(session_id, 10),
            "waiting": store.read.waiting(scene.inbound().address, "7", "1"),
            "waiting_in": store.read.waiting_in(scene.inbound().address, 9, 10),
            "at_work": store.read.at_work(scene.inbound().address, 9),
            "said": store.read.said(scene.inbound().address, "1", 9),
            "told": store.read.told(scene.inbound().address, "1"),
            "notes": store.read.notes(scene.conversation("1"), "default", "echo", 10),
            "noted": store.read.noted(10),
            "moves": store.read.moves(),
            "event_of": store.read.event_of(session_id, 1),
            "session": store.read.session(scene.conversation("1"), "default", "echo"),
            "sessions": store.read.sessions(session_id),
            "used": store.read.used(session_id, NOW, all_=True),
            "used alone": store.read.used(session_id),
            "running": store.read.running(session_id),
            "busy": store.read.busy(scene.inbound().address),
            "oldest": store.read.oldest(NOW),
            "backlog": store.read.backlog(10, ["stub"]),
            "overdue": store.read.overdue(NOW, 10),
            "owed": store.read.owed(lane, 10),
            "owing": store.read.owing(),
            "files": store.read.files(),
            "records": store.read.records(session_id, "transcript", 10),
            "value": store.read.value("c", "a"),
            "values": store.read.values("c", "a"),
            "decided": store.read.decided(10, ["stub"]),
            "approval": store.read.approval("a"),
            "decided_by": store.read.decided_by(1),
            "card": store.read.card("a"),
            "stale_cards": store.read.stale_cards(10),
            "open_in": store.read.open_in([lane]),
            "open_questions": store.read.open_questions(session_id),
            "next_expiry": store.read.next_expiry(),
            "turn_inputs": store.read.turn_inputs("turn_1"),
            "begun": store.read.begun("turn_1"),
            "granted": store.read.granted("c", "default", "look"),
        }
        queries = {name for name in dir(store.read) if not name.startswith("_")}
        assert queries == {*asked} - {"used alone"} | {"states", "identities", "spent"}
        for name, query in asked.items():
            said = await statements_of(store, query)
            assert said, name
            assert [bad for sql in said if (bad := await searches_only(store, sql))] == [], name
        everything = await statements_of(store, store.read.owed(None, 10))
        assert [bad for sql in everything if (bad := await searches_only(store, sql))] == []


async def test_values_are_found_by_the_beginning_of_their_names():
    """The range of a prefix has an exact end, for every last character."""
    names = [
        "",
        "a",
        "a\0",
        "a\ud7ff",
        "a\ue000",
        "a\U0010ffff",
        "a\U0010ffffz",
        "b",
        "é",
        "\U0010ffff",
    ]
    async with open_sqlite(None) as store:
        for name in names:
            await store.apply(ops.PutValue(component="c", name=name, value=name))
        kept = [name.replace("\0", "\ufffd") for name in names]
        for prefix in [*kept, "a\ud7ff", "\U0010ffff\U0010ffff"]:
            found = [name for name, _ in await store.read.values("c", prefix)]
            assert found == sorted(name for name in kept if name.startswith(prefix))


async def fill(store, sessions, records):
    """Give the store a history, as rows."""
    db = store.connections[0]
    await db.execute("BEGIN")
    await db.executemany(
        "INSERT INTO conversations (id, created_at) VALUES (?, 0)",
        [(f"c{n}",) for n in range(sessions)],
    )
    await db.executemany(
        "INSERT INTO platform_sessions (id, conversation_id, profile, runtime, created_at)"
        " VALUES (?, ?, 'default', 'echo', 0)",
        [(f"s{n}", f"c{n}") for n in range(sessions)],
    )
    await db.executemany(
        "INSERT INTO conversation_keys VALUES ('stub', '', ?, '', '', ?)",
        [(str(n), f"c{n}") for n in range(sessions)],
    )
    await db.executemany(
        "INSERT INTO inbound_events"
        " (platform, native_id, lane, state, received_at, event, session_id, turn_id)"
        " VALUES ('stub', ?, 'lane', 'answered', 0, '{}', ?, ?)",
        [(f"old {n}", f"s{n}", f"t{n}") for n in range(sessions)],
    )
    await db.executemany(
        "INSERT INTO agent_runs (id, session_id, state, fence, owner, lease_until, started_at)"
        " VALUES (?, ?, 'succeeded', 1, 'old', 0, 0)",
        [(f"t{n}", f"s{n}") for n in range(sessions)],
    )
    await db.executemany(
        "INSERT INTO deliveries (id, turn_id, part, lane, address, state, created_at, place)"
        " VALUES (?, ?, 0, 'lane', '{}', 'delivered', 0, 1)",
        [(f"d{n}", f"t{n}") for n in range(sessions)],
    )
    await db.executemany(
        "INSERT INTO records VALUES ('s1', 'transcript', 1, ?, ?, '\"item\"', NULL)",
        [(n, f"batch {n}") for n in range(records)],
    )
    await db.execute("COMMIT")


async def seconds_per_turn(scene, turns):
    store = scene.store
    taken = []
    for _ in range(turns):
        begun = time.process_time()
        grant = await scene.running()
        await store.apply(
            ops.AppendRecords(
                lease=grant.lease, namespace="transcript", batch=grant.delivery_id, items=('"x"',)
            )
        )
        await store.read.records(grant.lease.session_id, "transcript", 20)
        finish = scene.finish(grant)
        await store.apply(finish)
        for part in finish.parts:
            await store.apply(ops.BeginSend(delivery_id=part.delivery_id, attempt=1))
            state = DeliveryState.DELIVERED
            await store.apply(ops.EndSend(delivery_id=part.delivery_id, state=state, now=NOW))
        taken.append(time.process_time() - begun)
    return statistics.median(taken)


@pytest.mark.proof
async def test_a_turn_costs_the_same_with_twenty_thousand_sessions():
    """within twice the time of an empty store, in a session of 20,000 records."""
    async with open_sqlite(None) as empty, open_sqlite(None) as full:
        await fill(full, 20_000, 20_000)
        scenes = [Scene(empty), Scene(full)]
        for scene in scenes:
            await seconds_per_turn(scene, 20)
        small, large = [await seconds_per_turn(scene, 300) for scene in scenes]
        print(f"{small * 1e6:.0f} and {large * 1e6:.0f} µs per turn")
        assert large < 2 * small
