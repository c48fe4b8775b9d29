"""What the store calls durable has been given to the disk."""

import re
import shutil
import subprocess
import sys

import pytest

CHILD = """
import sys
from pathlib import Path

import anyio

from dragoman import Address
from dragoman.states import DeliveryState
from dragoman.store.operations import Delivery, Post
from dragoman.store.sqlite import open_sqlite


async def main():
    async with open_sqlite(Path(sys.argv[1])) as store:
        for number in range(100):
            part = Delivery(
                id=str(number),
                address=Address("stub", "1"),
                text="text",
                state=DeliveryState.PENDING,
            )
            await store.apply(Post(delivery=part))
        print(store.commits)


anyio.run(main)
"""


def traced(command):
    """Run a command; return its output, and how often it had a file written through to the disk."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed")
    done = subprocess.run(
        [strace, "-f", "-e", "trace=fdatasync,fsync", *command],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    if "PTRACE" in done.stderr or "Operation not permitted" in done.stderr:
        pytest.skip("this machine lets no process be traced")
    assert done.returncode == 0, done.stderr
    return done.stdout, len(re.findall(r"f(?:data)?sync\(\d+", done.stderr))


def test_each_commit_reaches_the_disk_before_it_is_answered(tmp_path):
    """B2, invariant 1: as many calls as commits, or more."""
    said, calls = traced([sys.executable, "-c", CHILD, str(tmp_path / "store.db")])
    commits = int(said)
    assert commits == 100
    assert calls >= commits
