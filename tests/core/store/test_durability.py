"""What survives: killed processes, cut-short migrations, files that others lock."""

import asyncio
import fcntl
import logging
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing, contextmanager
from pathlib import Path

import anyio
import pytest

from dragoman.errors import StoreHeld
from dragoman.store import operations as ops
from dragoman.store import writer
from dragoman.store.schema import VERSION
from dragoman.store.sqlite import open_sqlite
from dragoman.testing.store import NOW, Scene, together

pytestmark = pytest.mark.anyio

CHILD = Path(__file__).with_name("store_child.py")


@contextmanager
def child(path, *arguments, before=()):
    command = [*before, sys.executable, str(CHILD), str(path), *map(str, arguments)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            process.wait(60)


def is_whole(path):
    with closing(sqlite3.connect(path)) as db:
        return db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


# -- (a) killed at any time ----------------------------------------------------------------------


def kill_after(path, round_, count):
    """Let a process work until it has said that ``count`` operations are durable, and kill it."""
    with child(path, "work", round_) as process:
        lines = [process.stdout.readline() for _ in range(count)]
        process.send_signal(signal.SIGKILL)
        lines += process.stdout.readlines()
        assert process.wait(60) == -signal.SIGKILL
    return [line.split() for line in lines if line.endswith("\n")]


async def assert_kept(path, said):
    """Everything that was said to be durable is there."""
    order = ["received", "adopted", "answered"]
    reached = {}
    for what, native, *_ in said:
        if what in order:
            reached[native] = order.index(what)
    with closing(sqlite3.connect(path)) as db:
        states = dict(db.execute("SELECT native_id, state FROM inbound_events"))
    for native, index in reached.items():
        assert states[native] in order[index:], native
    async with open_sqlite(path) as store:
        for what, native, *rest in said:
            if what == "recorded":
                items = await store.read.records(rest[0], "transcript", None)
                assert f'"{native}"' in items
            if what == "put":
                value = await store.read.value("work", rest[0])
                assert progress(value) >= progress(native)


def progress(native):
    round_, _, number = native.split(".")
    return int(round_), int(number)


async def kill_rounds(path, rounds):
    chance = random.Random(7)
    said = []
    for round_ in range(rounds):
        now = kill_after(path, round_, chance.randint(1, 400))
        said += now
        assert is_whole(path)
        await assert_kept(path, now)
    async with open_sqlite(path) as store:
        states = (await store.read.states())["inbound_events"]
    answered = {native for what, native, *_ in said if what == "answered"}
    assert states["answered"] >= len(answered) > 0


async def test_what_was_acknowledged_outlives_a_kill(tmp_path):
    """A2, invariant 1: an answer means durable, whenever the process is killed."""
    await kill_rounds(tmp_path / "a.db", 4)


@pytest.mark.proof
async def test_what_was_acknowledged_outlives_twenty_kills(tmp_path):
    """A2, invariant 1: the same, at twenty random times on one file."""
    await kill_rounds(tmp_path / "a.db", 20)


# -- (b) on the disk -----------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_each_commit_is_synchronised_to_the_disk(tmp_path):
    """Invariant 1: at least one fdatasync or fsync per commit, seen from the kernel's side."""
    report = tmp_path / "calls"
    trace = ["strace", "-f", "-c", "-e", "trace=fdatasync,fsync", "-o", str(report)]
    with child(tmp_path / "a.db", "work", 0, 5, before=trace) as process:
        output = process.stdout.read()
        assert process.wait(60) == 0
    commits = int(re.search(r"commits (\d+)", output)[1])
    calls = sum(
        int(columns[3])
        for columns in map(str.split, report.read_text().splitlines())
        if columns and columns[-1] in {"fdatasync", "fsync"}
    )
    assert commits > 20
    assert calls >= commits


# -- (c) readers ---------------------------------------------------------------------------------


async def test_a_reader_sees_only_what_is_committed(tmp_path, monkeypatch):
    """A query that meets an open group sees the store as it was before, and does not wait."""
    written, go_on = anyio.Event(), threading.Event()
    receive, loop = writer.EXECUTORS[ops.Receive], asyncio.get_running_loop()

    async def receive_and_wait(tx, batch):
        """Stop in the database's thread, with the group's transaction open."""
        answers = await receive(tx, batch)
        loop.call_soon_threadsafe(written.set)
        assert go_on.wait(60)
        return answers

    async with open_sqlite(tmp_path / "a.db") as store:
        scene = Scene(store)
        await scene.received()
        monkeypatch.setitem(writer.EXECUTORS, ops.Receive, receive_and_wait)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(scene.received)
            await written.wait()
            during = await store.read.received("stub", 0, 10)
            go_on.set()
        assert len(during) == 1
        assert len(await store.read.received("stub", 0, 10)) == 2


# -- (d) migrations ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "killed_in"),
    [
        (version, step)
        for version in range(1, VERSION)
        for step in ["backup", *range(version, VERSION)]
    ],
)
async def test_fc_sto_04_a_migration_that_is_killed_begins_anew(
    tmp_path, made_by, version, killed_in
):
    """A file is whole before, between and after the steps; what it held is still there."""
    path = tmp_path / "a.db"
    made_by(path, version)
    with child(path, "die", killed_in) as process:
        assert process.stdout.read() == ""
        assert process.wait(60) == -signal.SIGKILL
    assert is_whole(path)
    async with open_sqlite(path) as store:
        owed = await store.read.owed(None, 10)
        assert [part.id for part in owed] == ["sooner", "sooner too", "later"]
        assert await Scene(store).received(channel="2")
    assert is_whole(path)
    backups = list(tmp_path.glob("*.backup"))
    assert backups
    assert all(is_whole(backup) for backup in backups)
    assert not list(tmp_path.glob("*.partial"))


# -- (e) two processes ---------------------------------------------------------------------------


@pytest.mark.parametrize("version", [*range(1, VERSION), VERSION])
def test_fc_sto_04_of_two_processes_that_start_at_once_one_wins(tmp_path, made_by, version):
    """The other says who holds the file, even right after a holder was killed, or an upgrade."""
    path = tmp_path / "a.db"
    for _ in range(2 if version == VERSION else 1):
        if version < VERSION:
            made_by(path, version)
        with child(path, "hold") as one, child(path, "hold") as other:
            both = (one, other)
            assert [process.stdout.readline() for process in both] == ["ready\n"] * 2
            for process in both:
                process.stdin.write("\n")
                process.stdin.flush()
            said = {process.pid: process.stdout.readline().strip() for process in both}
            (winner,) = [pid for pid, words in said.items() if words == "open"]
            del said[winner]
            assert list(said.values()) == [f"held process {winner}"]
        assert is_whole(path)
        with closing(sqlite3.connect(path)) as db:
            assert db.execute("PRAGMA user_version").fetchone() == (VERSION,)


def dead_process():
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait(60)
    return process.pid


async def test_fc_sto_04_a_name_left_by_a_dead_holder_is_not_told(tmp_path):
    """The lock file may still name the process before."""
    with (tmp_path / "a.db.lock").open("w") as lock:
        lock.write(str(dead_process()))
        lock.flush()
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(StoreHeld, match="another process"):
            async with open_sqlite(tmp_path / "a.db"):
                pass


# -- (f) locks of others -------------------------------------------------------------------------


async def measure_lag(lags):
    while True:
        before = time.perf_counter()
        await anyio.sleep(0.005)
        lags.append(time.perf_counter() - before - 0.005)


async def hear(process, word):
    assert await anyio.to_thread.run_sync(process.stdout.readline) == f"{word}\n"


async def test_fc_sto_01_locks_of_another_process_lose_nothing(tmp_path, caplog):
    """Two hundred operations meet a long reader, then a write lock; the loop never waits."""
    caplog.set_level(logging.DEBUG, logger="dragoman")
    lags = []
    async with open_sqlite(tmp_path / "a.db") as store, anyio.create_task_group() as tasks:
        scene = Scene(store)
        tasks.start_soon(measure_lag, lags)
        with child(tmp_path / "a.db", "meddle") as process:
            await hear(process, "reading")
            first = [await scene.received() for _ in range(100)]
            assert (await store.read.states())["inbound_events"] == {"received": 100}
            await hear(process, "locked")
            begun = time.perf_counter()
            operations = [ops.Receive(inbound=scene.inbound(), now=NOW) for _ in range(100)]
            second = await together(store, *operations)
            waited = time.perf_counter() - begun
            await hear(process, "done")
        assert (await store.read.states())["inbound_events"] == {"received": 200}
        tasks.cancel_scope.cancel()
    assert len({*first, *(answer.event_id for answer in second)}) == 200
    assert waited > 0.5, "the lock was not felt"
    # A loop that waited for the lock would have stood still as long as the writer did.
    assert max(lags) < waited / 2
    assert "locked" not in caplog.text
