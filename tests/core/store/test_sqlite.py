"""The file: its durability settings, its lock, its migrations, and what a full disk does."""

import sqlite3
from contextlib import closing
from pathlib import Path

import anyio
import attrs
import pytest

from dragoman.errors import SchemaTooNew, StoreUnavailable
from dragoman.states import DeliveryState
from dragoman.store import operations as ops
from dragoman.store import writer
from dragoman.store.schema import VERSION
from dragoman.store.sqlite import open_sqlite
from dragoman.testing.store import NOW, Scene, together

pytestmark = pytest.mark.anyio

SCHEMAS = Path(__file__).with_name("schemas")


async def pragma(db, name):
    return next(iter(await db.execute_fetchall(f"PRAGMA {name}")))[0]


async def refusal(store, operation):
    """Apply an operation; return what refused it."""
    try:
        await store.apply(operation)
    except StoreUnavailable as error:
        return error
    return None


def schema_of(path):
    with closing(sqlite3.connect(path)) as db:
        version = db.execute("PRAGMA user_version").fetchone()
        tables = [row[0] for row in db.execute("SELECT name FROM sqlite_schema WHERE type='table'")]
        columns = {
            table: db.execute(
                "SELECT name, type, [notnull], dflt_value, pk FROM pragma_table_info(?)", (table,)
            ).fetchall()
            for table in tables
        }
        indexes = sorted(
            db.execute("SELECT name, sql FROM sqlite_schema WHERE type IN ('index', 'view')")
        )
        return version, columns, indexes


async def test_every_connection_is_durable_and_waits_for_others(tmp_path):
    """Invariant 1: synchronous=FULL and WAL hold on every connection of the store."""
    async with open_sqlite(tmp_path / "a.db") as store:
        assert len(store.connections) == 2
        for connection in store.connections:
            for name, value in [
                ("synchronous", 2),
                ("journal_mode", "wal"),
                ("foreign_keys", 1),
                ("busy_timeout", 5000),
            ]:
                assert await pragma(connection, name) == value, name


async def test_operations_that_wait_together_share_a_commit(tmp_path):
    async with open_sqlite(tmp_path / "a.db") as store:
        scene = Scene(store)
        events = [ops.Receive(inbound=scene.inbound(), now=NOW) for _ in range(100)]
        before = store.commits
        answers = await together(store, *events)
        assert store.commits == before + 1
        assert len({answer.event_id for answer in answers}) == 100


async def test_a_turn_costs_four_commits_and_nine_rows(tmp_path):
    """Two until it runs: received, and admission with lease, turn, item and first row."""
    async with open_sqlite(tmp_path / "a.db") as store:
        scene = Scene(store)
        await store.apply(scene.finish(await scene.running(), next_turn=False))
        start, rows = store.commits, store.connections[0].total_changes
        grant = await scene.running()
        assert store.commits - start == 2
        part = ops.Part(
            delivery_id=grant.delivery_id, number=0, text="one", state=DeliveryState.SENDING
        )
        await store.apply(attrs.evolve(scene.finish(grant), parts=(part,)))
        await store.apply(
            ops.EndSend(
                delivery_id=part.delivery_id,
                state=DeliveryState.DELIVERED,
                native_id="1",
                shown="one",
                now=NOW,
            )
        )
        assert store.commits - start == 4
        assert store.connections[0].total_changes - rows <= 9
        assert (await store.read.states())["deliveries"] == {"delivered": 1, "pending": 2}


async def test_the_file_outlives_its_process(tmp_path):
    async with open_sqlite(tmp_path / "a.db") as store:
        await Scene(store).received()
    async with open_sqlite(tmp_path / "a.db") as store:
        assert [event.id for event in await store.read.received("stub", 0, 10)] == [1]
    assert (tmp_path / "a.db").stat().st_mode & 0o077 == 0


def test_fc_sto_04_each_older_schema_has_a_fixture():
    """A step of the schema that has been in use is never edited: these files would show it."""
    found = sorted(int(path.stem) for path in SCHEMAS.glob("*.sql"))
    assert found == list(range(1, VERSION))


@pytest.mark.parametrize("version", range(1, VERSION))
async def test_fc_sto_04_an_older_file_is_migrated_after_a_backup(tmp_path, made_by, version):
    """The result is what a fresh file is, the backup is private and what the file was."""
    made_by(tmp_path / "old.db", version)
    async with open_sqlite(tmp_path / "old.db"), open_sqlite(tmp_path / "new.db"):
        pass
    assert schema_of(tmp_path / "old.db") == schema_of(tmp_path / "new.db")
    (backup,) = tmp_path.glob(f"old.db.schema{version}.*.backup")
    assert backup.stat().st_mode & 0o077 == 0
    made_by(tmp_path / "again.db", version)
    assert schema_of(backup) == schema_of(tmp_path / "again.db")
    assert not list(tmp_path.glob("new.db*.backup"))


@pytest.mark.parametrize("version", range(1, VERSION))
async def test_fc_sto_04_work_goes_on_where_an_older_version_left_it(tmp_path, made_by, version):
    """Nothing is lost on the way: waiting, running and owed work, and what was said."""
    made_by(tmp_path / "a.db", version)
    async with open_sqlite(tmp_path / "a.db") as store:
        scene = Scene(store)
        assert [event.id for event in await store.read.received("stub", 0, 10)] == [4]
        owed = [part.id for part in await store.read.owed(None, 10)]
        assert owed == ["sooner", "sooner too", "later"]
        (again,) = (await store.apply(scene.recover())).again
        assert (again.lease.turn_id, again.lease.fence, again.attempt) == ("turn_2", 2, 2)
        assert [event.inbound.text for event in again.inputs] == ["message 2"]
        assert again.parts == (
            ops.KnownPart(delivery_id="streaming", native_id="42", shown="so f"),
        )
        assert await store.read.records("sess_1", "transcript", None) == [
            '"item 1"',
            '"answer 1"',
            '"item 2"',
        ]
        ended = await store.apply(scene.finish(again))
        assert [event.id for event in ended.next.inputs] == [3]
        assert await store.read.value("memories.notes", "a") == "1"


async def test_only_the_last_two_backups_are_kept(tmp_path, made_by):
    for number in range(4):
        (tmp_path / f"a.db.schema0.2020010{number}.backup").touch()
    made_by(tmp_path / "a.db", 1)
    async with open_sqlite(tmp_path / "a.db"):
        pass
    assert len(list(tmp_path.glob("a.db.schema*.backup"))) == 2


async def test_fc_sto_04_a_newer_file_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA user_version = {VERSION + 1}")
        db.execute("CREATE TABLE future (x)")
        db.commit()
    with pytest.raises(SchemaTooNew, match="upgrade dragoman"):
        async with open_sqlite(path):
            pass
    assert schema_of(path)[0] == (VERSION + 1,)


async def test_fc_sto_03_a_full_disk_refuses_and_recovers(tmp_path):
    """Nothing is half kept while there is no room; with room again, all goes on."""
    async with open_sqlite(tmp_path / "a.db") as store:
        scene = Scene(store)
        await scene.received()
        db = store.connections[0]
        pages = await pragma(db, "page_count")
        await db.execute_fetchall(f"PRAGMA max_page_count = {pages + 1}")
        values = [ops.PutValue(component="c", name=str(n), value="x" * 4000) for n in range(40)]
        refused = [error for value in values if (error := await refusal(store, value))]
        assert len(refused) > 30
        assert all("full" in str(error) for error in refused)
        await db.execute_fetchall("PRAGMA max_page_count = 100000")
        assert await scene.received() > 0
        assert await pragma(db, "integrity_check") == "ok"


async def test_a_poisonous_operation_fails_alone(tmp_path):
    async with open_sqlite(tmp_path / "a.db") as store:
        scene = Scene(store)
        good = ops.Receive(inbound=scene.inbound(), now=NOW)
        poison = ops.PutValue(component="c", name="n", value=object())
        refused = []

        async def apply(operation):
            refused.append(await refusal(store, operation))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(apply, poison)
            tasks.start_soon(apply, good)
        assert sum(error is None for error in refused) == 1
        assert (await store.apply(good)).duplicate


async def test_an_operation_that_breaks_its_executor_does_not_end_the_store(tmp_path, monkeypatch):
    """Invariant 11: whatever one operation raises, the writer goes on for the others."""

    async def broken(tx, batch):
        raise KeyError("no such thing")

    async with open_sqlite(tmp_path / "a.db") as store:
        monkeypatch.setitem(writer.EXECUTORS, ops.Renew, broken)
        error = await refusal(store, ops.Renew(owner="me", lease_until=1.0))
        assert isinstance(error.__cause__, KeyError)
        assert await Scene(store).received()


async def test_a_locked_file_is_said_once_to_all_who_wait(tmp_path):
    """Nobody waits for the lock in turn: the whole group is refused, and nothing of it is kept."""
    path = tmp_path / "a.db"
    async with open_sqlite(path) as store:
        scene = Scene(store)
        await store.connections[0].execute_fetchall("PRAGMA busy_timeout = 400")
        events = [ops.Receive(inbound=scene.inbound(), now=NOW) for _ in range(50)]
        refused = []

        async def apply(operation):
            refused.append(await refusal(store, operation))

        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with anyio.fail_after(10):  # one by one it would take 20 seconds
                async with anyio.create_task_group() as tasks:
                    for event in events:
                        tasks.start_soon(apply, event)
        assert all("locked" in str(error) for error in refused)
        assert len(await together(store, *events)) == 50
        assert (await store.read.states())["inbound_events"] == {"received": 50}


async def test_characters_that_sqlite_cannot_keep_spoil_nothing(tmp_path):
    """Invariant 3: a NUL or half a surrogate pair costs that character, not the row or a query."""
    async with open_sqlite(tmp_path / "a.db") as store:
        scene = Scene(store)
        for bad in ["\0", "\ud800", "\udc00"]:
            text = f"before {bad} after 😀"
            notice = attrs.evolve(scene.notice(), text=text)
            await store.apply(ops.Post(delivery=notice))
            event = scene.inbound(native_id=text)
            first = await store.apply(ops.Receive(inbound=event, now=NOW))
            again = await store.apply(ops.Receive(inbound=event, now=NOW))
            assert again == ops.Received(first.event_id, duplicate=True)
            value = ops.PutValue(component="c", name=text, value=text)
            await store.apply(value)
            assert await store.read.value("c", text) == "before \ufffd after 😀"
            assert await store.apply(ops.DeleteValue(component="c", name=text))
        shown = [part.text for part in await store.read.owed(None, 10)]
        assert shown == ["before \ufffd after 😀"] * 3


async def test_appending_costs_no_more_per_item_in_long_lists():
    """Counted in steps of SQLite's own machine: twice the items, about twice the steps."""
    steps = []
    async with open_sqlite(None) as store:
        lease = (await Scene(store).running()).lease
        for count in (1000, 2000):
            steps.append(0)

            def step():
                steps[-1] += 1

            await store.connections[0].set_progress_handler(step, 1000)
            await store.apply(
                ops.AppendRecords(
                    lease=lease,
                    namespace="transcript",
                    batch=str(count),
                    items=tuple(map(str, range(count))),
                    new_generation=True,
                )
            )
    assert steps[0] > 0
    assert steps[1] < 3 * steps[0]


async def test_a_closed_store_takes_nothing(tmp_path):
    async with open_sqlite(tmp_path / "a.db") as store:
        scene = Scene(store)
    with pytest.raises(StoreUnavailable):
        await scene.received()
