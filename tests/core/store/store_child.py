"""A process with a store of its own: the tests start it, watch its output and kill it.

store_child.py FILE work ROUND [COUNT]   runs turns, and prints each operation once it is durable
store_child.py FILE hold                 opens the store when told, and holds it
store_child.py FILE die STEP             is killed inside a step of the migration
store_child.py FILE meddle               locks the file as a backup tool does
"""

import os
import signal
import sqlite3
import sys
import time
from pathlib import Path

import anyio

from dragoman.errors import StoreHeld
from dragoman.store import migrate
from dragoman.store import operations as ops
from dragoman.store.sqlite import open_sqlite
from dragoman.testing.store import NOW, Scene


def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


async def turns(store, channel, round_, count):
    """Run turn after turn in one session; say what is durable by now."""
    scene = Scene(store)
    for number in range(count):
        native = f"{round_}.{channel}.{number}"
        inbound = scene.inbound(channel=channel, native_id=native)
        received = await store.apply(ops.Receive(inbound=inbound, now=NOW))
        say("received", native)
        accepted = await store.apply(scene.accept(received.event_id, channel=channel))
        lease = accepted.turn.lease
        say("adopted", native)
        await store.apply(
            ops.AppendRecords(
                lease=lease, namespace="transcript", batch=native, items=(f'"{native}"',)
            )
        )
        say("recorded", native, lease.session_id)
        await store.apply(scene.finish(accepted.turn, next_turn=False))
        say("answered", native)
        await store.apply(ops.PutValue(component="work", name=channel, value=native))
        say("put", native, channel)


async def work(path, round_, count="1000000"):
    async with open_sqlite(path) as store:
        await store.apply(
            ops.Recover(
                owner=f"round {round_}",
                everyone=True,
                boot=0.0,
                now=NOW,
                oldest=0.0,
                mark="(interrupted)",
                notice="interrupted",
            )
        )
        async with anyio.create_task_group() as tasks:
            for channel in range(8):
                tasks.start_soon(turns, store, str(channel), round_, int(count))
        say("commits", store.commits)


async def hold(path):
    say("ready")
    sys.stdin.readline()
    try:
        async with open_sqlite(path):
            say("open")
            await anyio.to_thread.run_sync(sys.stdin.readline)
    except StoreHeld as error:
        say("held", error.holder)


async def die(path, step):
    def kill():
        os.kill(os.getpid(), signal.SIGKILL)

    async def connect(database):
        db = await plain_connect(database)
        await db.create_function("die", 0, kill)
        return db

    plain_connect = migrate.connect
    import dragoman.store.sqlite as opening

    opening.connect = connect
    if step == "backup":
        Path.replace = lambda *_: kill()
    else:
        steps = list(migrate.STEPS)
        steps[int(step)] += "\nSELECT die();"
        migrate.STEPS = tuple(steps)
    async with open_sqlite(path):
        say("open")


def meddle(path):
    db = sqlite3.connect(path, isolation_level=None, timeout=5)
    db.execute("BEGIN")
    db.execute("SELECT count(*) FROM inbound_events").fetchone()
    say("reading")
    time.sleep(1)
    db.execute("COMMIT")
    db.execute("BEGIN IMMEDIATE")
    say("locked")
    time.sleep(1)
    db.execute("COMMIT")
    say("done")
    db.close()


if __name__ == "__main__":
    if sys.argv[2] == "meddle":
        meddle(Path(sys.argv[1]))
    else:
        what = {"work": work, "hold": hold, "die": die}[sys.argv[2]]
        anyio.run(what, Path(sys.argv[1]), *sys.argv[3:])
