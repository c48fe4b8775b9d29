"""Whether the store refuses what a turn writes that has lost its session.

One process holds one SQLite file, so no kill of a whole gateway can make two owners. Here the
second one is made by hand, over the store itself: a turn ends, the session's next one begins, and
what the first still had to say arrives late.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import anyio

from dragoman.errors import StaleLease
from dragoman.store import operations as ops
from dragoman.store.sqlite import open_sqlite
from dragoman.testing.store_scene import Scene


async def late_writes_accepted(file: Path) -> list[str]:
    """Write late in every way that is fenced; return the operations that were not refused."""
    accepted: list[str] = []
    async with open_sqlite(file) as store:
        scene = Scene(store)
        grant = await scene.running()
        event_id = await scene.received()
        await store.apply(scene.accept(event_id, adopt=False))
        ended = await store.apply(scene.finish(grant))
        assert ended.next is not None, "the session's next turn has not begun"
        late: list[ops.Operation[None]] = [
            ops.AppendRecords(
                lease=grant.lease, namespace="transcript", batch="late", items=('"late"',)
            ),
            ops.OpenPart(lease=grant.lease, delivery_id="late", number=7, now=1.0),
        ]
        for operation in late:
            try:
                await store.apply(operation)
            except StaleLease:
                continue
            accepted.append(type(operation).__name__)
    return accepted


def accepted_by(python_path: str) -> list[str]:
    """Return which late writes the store of another copy of core accepts."""
    done = subprocess.run(
        [sys.executable, "-m", "crash.fence"],
        env={"PYTHONPATH": f"{python_path}:{Path(__file__).parents[1]}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout.split()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="fence-") as folder:
        print(*anyio.run(late_writes_accepted, Path(folder, "dragoman.db")))
