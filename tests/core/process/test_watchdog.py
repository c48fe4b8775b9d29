"""The loop watchdog: a loop that is really held, and processes that are really stopped."""

import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import anyio
import pytest

from dragoman.process import exits
from dragoman.process.watchdog import TICK, watch_loop

pytestmark = pytest.mark.alone
LOG = logging.getLogger("dragoman.process-test")

CHILD = """
import logging, sys, time
import anyio
from dragoman.process.watchdog import watch_loop

logging.basicConfig(format="%(message)s")

async def main():
    async with watch_loop(logging.getLogger(), limit=1.2) as watch:
        await anyio.sleep(0.5)
        BODY

anyio.run(main)
"""


@contextmanager
def child(body):
    with subprocess.Popen(
        [sys.executable, "-c", CHILD.replace("BODY", body)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


async def until(condition):
    with anyio.fail_after(60):
        while not condition():  # noqa: ASYNC110 - another thread sets it
            await anyio.sleep(0.01)


def hold_the_loop(seconds, secret=""):
    time.sleep(seconds)
    return secret


def said(caplog):
    return [record.getMessage() for record in caplog.records]


@pytest.mark.anyio
async def test_a_held_loop_is_reported_once_with_its_place_and_its_duration(caplog):
    """Invariant 13, B9: files, lines and functions, no values; each time once."""
    async with watch_loop(LOG, limit=60) as watch:
        await until(lambda: watch._recent)
        assert watch.lag < 1
        for number in (1, 2):
            hold_the_loop(1.9, "my-password")
            await until(lambda number=number: len(said(caplog)) == 2 * number)
            assert watch.blocked == number
        assert 1.5 < watch.lag < 2.6
    begun, ended, *_ = said(caplog)
    assert re.match(r"the event loop is held since 1\.[0-9] s:\n", begun)
    assert f"{__file__}:" in begun
    assert "in hold_the_loop" in begun.splitlines()[1]
    assert "my-password" not in begun
    assert re.fullmatch(r"the event loop was held for [12]\.[0-9] s", ended)


@pytest.mark.anyio
async def test_a_busy_loop_that_makes_progress_is_not_reported(caplog):
    async with watch_loop(LOG, limit=0.4) as watch:
        ends = time.monotonic() + 1.0
        while time.monotonic() < ends:
            await anyio.lowlevel.checkpoint()
    assert watch.blocked == 0
    assert said(caplog) == []


@pytest.mark.anyio
async def test_a_loop_held_beyond_its_limit_is_ended_once():
    ended = []
    async with watch_loop(LOG, limit=0.5, end=ended.append):
        hold_the_loop(1.0)
        await until(lambda: ended)
        hold_the_loop(0.9)
    (words,) = ended
    assert "the event loop was held for" in words


@pytest.mark.anyio
async def test_the_lag_of_more_than_a_minute_ago_is_forgotten(monkeypatch):
    async with watch_loop(LOG, limit=60) as watch:
        hold_the_loop(0.6)
        await until(lambda: watch.lag > 0.2)
        plain = time.monotonic
        monkeypatch.setattr(
            "dragoman.process.watchdog.time.monotonic", lambda: plain() + 61, raising=True
        )
        assert watch.lag == 0
        monkeypatch.undo()


@pytest.mark.anyio
async def test_no_thread_is_left_over():
    def watching():
        return "loop watchdog" in [thread.name for thread in threading.enumerate()]

    async def fail_while_watched():
        async with watch_loop(LOG, limit=60):
            assert watching()
            raise ValueError

    with pytest.raises(ExceptionGroup):
        await fail_while_watched()
    assert not watching()


def test_a_process_whose_loop_stays_held_ends_and_shows_where_everything_was():
    """B9: the real exit."""
    with child("time.sleep(30)") as process:
        _, errors = process.communicate(timeout=60)
    assert process.returncode == exits.OVERRUN == 70
    assert "the event loop is held since" in errors
    assert "dragoman: the event loop was held for" in errors
    assert "most recent call first" in errors
    assert 'File "<string>", line 11 in main' in errors


def test_a_loop_held_by_a_log_that_nobody_reads_is_ended_all_the_same():
    """B9: the pipe is full, the log's lock is held, and the dump can go nowhere."""
    body = "[sys.stderr.write('x' * 4096) for _ in range(100)]"
    with child(body) as process:
        assert process.wait(60) == exits.OVERRUN


def test_a_stopped_process_does_not_count_as_held():
    """B9: SIGSTOP for longer than the limit; neither lag nor report nor end."""
    body = """
        print("go", flush=True)
        await anyio.to_thread.run_sync(sys.stdin.readline)
        await anyio.sleep(0.6)
        print(watch.blocked, watch.lag, flush=True)
    """
    with child(body.strip()) as process:
        assert process.stdout.readline() == "go\n"
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        time.sleep(1.8)
        process.send_signal(signal.SIGCONT)
        output, errors = process.communicate("\n", timeout=60)
    blocked, lag = output.split()
    assert (process.returncode, errors) == (0, "")
    assert int(blocked) == 0
    assert float(lag) < 2 * TICK


def test_code_that_holds_the_whole_interpreter_counts_as_held():
    """Invariant 13: the watching thread did not run either, but the process worked."""
    body = """
        before = time.perf_counter()
        sum(range(3_000_000))
        speed = 3_000_000 / (time.perf_counter() - before)
        seconds = 1.6
        while not watch.blocked:
            sum(range(int(seconds * speed)))
            seconds *= 1.3
            await anyio.sleep(0.6)
        print(watch.lag, flush=True)
    """
    with child(body.strip()) as process:
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    assert float(output) > 1.0
    assert re.fullmatch(r"the event loop was held for \d\.\d s\n", errors)
