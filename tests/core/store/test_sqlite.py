"""The file: its durability settings, its lock, its migrations, and what a full disk does."""

import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from dragoman.errors import SchemaTooNew, StoreHeld, StoreUnavailable
from dragoman.store import operations as ops
from dragoman.store.schema import STEPS, VERSION
from dragoman.store.sqlite import open_sqlite
from dragoman.testing.store import NOW, Scene, together

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


def leaf(group):
    """The one error inside nested exception groups."""
    while isinstance(group, BaseExceptionGroup):
        assert len(group.exceptions) == 1
        group = group.exceptions[0]
    return group


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


def make_version_1(path):
    with closing(sqlite3.connect(path)) as db:
        db.executescript(STEPS[0] + "PRAGMA user_version = 1;")
        db.execute(
            "INSERT INTO inbound_events (platform, native_id, lane, state, received_at, event)"
            " VALUES ('stub', '1', '[]', 'ignored', 1.0, '{}')"
        )
        db.commit()


async def test_every_connection_is_durable_and_waits_for_others(tmp_path):
    """Invariant 1: synchronous=FULL and WAL hold on every connection of the store."""
    async with open_sqlite(tmp_path / "a.db") as store:
        assert len(store.connections) == 2
        for connection in store.connections:
            for pragma, value in [
                ("synchronous", 2),
                ("journal_mode", "wal"),
                ("foreign_keys", 1),
                ("busy_timeout", 5000),
            ]:
                rows = list(await connection.execute_fetchall(f"PRAGMA {pragma}"))
                assert rows[0][0] == value, pragma


async def test_operations_that_wait_together_share_a_commit(tmp_path):
    async with open_sqlite(tmp_path / "a.db") as store:
        scene = Scene(store)
        events = [ops.Receive(inbound=scene.inbound(), now=NOW) for _ in range(100)]
        before = store.commits
        answers = await together(store, *events)
        assert store.commits == before + 1
        assert len({answer.event_id for answer in answers}) == 100


async def test_a_turn_costs_four_commits(tmp_path):
    """Two until it runs: received, and admission with lease, turn, item and first row."""
    async with open_sqlite(tmp_path / "a.db") as store:
        scene = Scene(store)
        await scene.running(channel="warm up")
        start = store.commits
        grant = await scene.running()
        assert store.commits - start == 2
        finish = scene.finish(grant)
        await store.apply(finish)
        await store.apply(
            ops.EndSend(
                delivery_id=finish.parts[0].delivery_id,
                state=ops.DeliveryState.DELIVERED,
                native_id="1",
                shown="one",
                now=NOW,
            )
        )
        assert store.commits - start == 4


async def test_the_file_outlives_its_process(tmp_path):
    async with open_sqlite(tmp_path / "a.db") as store:
        await Scene(store).received()
    async with open_sqlite(tmp_path / "a.db") as store:
        assert [event.id for event in await store.read.received("stub", 0, 10)] == [1]
    assert (tmp_path / "a.db").stat().st_mode & 0o077 == 0


async def test_fc_sto_04_an_older_file_is_migrated_after_a_backup(tmp_path):
    make_version_1(tmp_path / "old.db")
    async with open_sqlite(tmp_path / "old.db") as store:
        assert (await store.read.states())["inbound_events"] == {"ignored": 1}
    async with open_sqlite(tmp_path / "new.db"):
        pass
    assert schema_of(tmp_path / "old.db") == schema_of(tmp_path / "new.db")
    (backup,) = tmp_path.glob("old.db.schema1.*.backup")
    assert backup.stat().st_mode & 0o077 == 0
    assert schema_of(backup)[0] == (1,)
    assert not list(tmp_path.glob("new.db*.backup"))


async def test_only_the_last_two_backups_are_kept(tmp_path):
    for number in range(4):
        (tmp_path / f"a.db.schema0.2020010{number}.backup").touch()
    make_version_1(tmp_path / "a.db")
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


async def test_a_second_process_is_told_who_holds_the_file(tmp_path):
    path = tmp_path / "a.db"
    script = (
        "import anyio, pathlib, sys\n"
        "from dragoman.store.sqlite import open_sqlite\n"
        "async def main():\n"
        "    async with open_sqlite(pathlib.Path(sys.argv[1])):\n"
        "        print('open', flush=True)\n"
        "        await anyio.to_thread.run_sync(sys.stdin.read)\n"
        "anyio.run(main)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout.readline() == b"open\n"
        with pytest.raises(StoreHeld, match=f"process {other.pid}"):
            async with open_sqlite(path):
                pass
        other.kill()
        other.wait(10)
    async with open_sqlite(path):
        pass


async def test_fc_sto_03_a_full_disk_refuses_and_recovers(tmp_path):
    """Nothing is half kept while there is no room; with room again, all goes on."""
    async with open_sqlite(tmp_path / "a.db") as store:
        scene = Scene(store)
        await scene.received()
        db = store.connections[0]
        pages = list(await db.execute_fetchall("PRAGMA page_count"))[0][0]
        await db.execute_fetchall(f"PRAGMA max_page_count = {pages + 1}")
        full = 0
        for _ in range(40):
            try:
                await store.apply(
                    ops.PutValue(component="c", name=str(_), value="x" * 4000)
                )
            except StoreUnavailable as error:
                full += 1
                assert "full" in str(error)
        assert full > 30
        await db.execute_fetchall("PRAGMA max_page_count = 100000")
        assert await scene.received() > 0
        rows = list(await db.execute_fetchall("PRAGMA integrity_check"))
        assert rows[0][0] == "ok"


async def test_a_poisonous_operation_fails_alone(tmp_path):
    async with open_sqlite(tmp_path / "a.db") as store:
        scene = Scene(store)
        good = ops.Receive(inbound=scene.inbound(), now=NOW)
        poison = ops.PutValue(component="c", name="n", value=object())
        answers = []

        async def apply(operation):
            try:
                answers.append(await store.apply(operation))
            except StoreUnavailable as error:
                answers.append(error)

        import anyio

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(apply, poison)
            tasks.start_soon(apply, good)
        assert sorted(type(answer).__name__ for answer in answers) == [
            "Received",
            "StoreUnavailable",
        ]


async def test_a_closed_store_takes_nothing(tmp_path):
    async with open_sqlite(tmp_path / "a.db") as store:
        scene = Scene(store)
    with pytest.raises(StoreUnavailable):
        await scene.received()
