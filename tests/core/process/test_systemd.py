"""The notification protocol of systemd, over real sockets and a real gateway."""

import os
import re
import shutil
import signal
import socket
import subprocess
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace

import anyio
import attrs
import pytest

from dragoman.process.systemd import Notifier

ROOT = Path(__file__).resolve().parents[3]
UNIT = "examples/systemd/dragoman.service"


@attrs.define(eq=False)
class Manager:
    """The service manager's end: what it was told."""

    channel: socket.socket
    told: list = attrs.field(factory=list)

    def hear(self, limit=0.0):
        """Take in what has been said."""
        self.channel.settimeout(limit or 0.001)
        with suppress(TimeoutError):
            while True:
                self.told.append(self.channel.recv(4096).decode())
        return self.told

    def until_told(self, words, limit=60):
        ends = time.monotonic() + limit
        while not any(words in one for one in self.hear(0.02)):
            assert time.monotonic() < ends, self.told

    def signs(self):
        return self.told.count("WATCHDOG=1")


@contextmanager
def manager(address):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.bind(address.replace("@", "\0"))
        yield Manager(channel)


@pytest.mark.parametrize("kind", ["path", "abstract"])
def test_fields_arrive_over_both_kinds_of_address(tmp_path, kind):
    address = str(tmp_path / "notify") if kind == "path" else f"@dragoman-{os.getpid()}"
    with manager(address) as systemd:
        Notifier.of({"NOTIFY_SOCKET": address}).tell("READY=1", "STATUS=running")
        assert systemd.hear(0.1) == ["READY=1\nSTATUS=running"]


@pytest.mark.parametrize("address", ["", "vsock:2:1234", "/nowhere/at/all"])
def test_without_a_manager_nothing_happens(address):
    Notifier(address, 0.0).tell("READY=1")


def test_a_manager_that_does_not_read_is_not_waited_for(tmp_path):
    """A call that waited would wait for ever."""
    with manager(str(tmp_path / "notify")):
        for _ in range(2000):
            Notifier(str(tmp_path / "notify")).tell("WATCHDOG=1")


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({"WATCHDOG_USEC": "3000000"}, 3.0),
        ({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": str(os.getpid())}, 3.0),
        ({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "1"}, 0.0),
        ({"WATCHDOG_USEC": "soon"}, 0.0),
        ({}, 0.0),
    ],
)
def test_signs_of_life_are_given_where_this_process_is_meant(environment, wanted):
    assert Notifier.of(environment).watchdog == wanted


@pytest.mark.anyio
async def test_signs_of_life_come_at_half_of_the_limit(tmp_path, monkeypatch):
    slept = []

    async def sleep(seconds):
        slept.append(seconds)
        if len(slept) == 5:
            await anyio.sleep_forever()

    monkeypatch.setattr("dragoman.process.systemd.anyio", SimpleNamespace(sleep=sleep))
    with manager(str(tmp_path / "notify")) as systemd:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(Notifier(str(tmp_path / "notify"), 0.4).give_signs_of_life)
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
        assert systemd.hear() == ["WATCHDOG=1"] * 5
    assert slept == [0.2] * 5


def test_a_gateway_tells_when_it_is_ready_alive_held_and_stopping(deployment):
    """B9: a loop that is held gives no sign of life."""
    deployment.write()
    with manager(str(deployment.folder / "notify")) as systemd:
        life = deployment.start(
            NOTIFY_SOCKET=str(deployment.folder / "notify"), WATCHDOG_USEC="200000"
        )
        systemd.until_told("READY=1\nSTATUS=running")
        began = time.monotonic()
        life.tell("hold 1.5")
        life.until_said("told hold")
        systemd.hear()
        before = systemd.signs()
        life.until_said("done: hold 1.5")
        systemd.hear()
        after = time.monotonic() - began - 1.5
        assert before > 0
        assert systemd.signs() - before <= after / 0.1 + 1
        assert "STOPPING=1" not in systemd.hear()
        assert life.end(signal.SIGTERM)[0] == 0
        (end,) = [words for words in systemd.hear() if "STOPPING=1" in words]
        (extended,) = re.findall(r"EXTEND_TIMEOUT_USEC=(\d+)", end)
        assert int(extended) > (0.2 + 20) * 1e6


def test_a_gateway_that_stands_by_is_ready_and_says_for_whom(deployment):
    deployment.write()
    first = deployment.start()
    first.until_works()
    with manager(str(deployment.folder / "notify")) as systemd:
        second = deployment.start("--standby", NOTIFY_SOCKET=str(deployment.folder / "notify"))
        systemd.until_told(f"READY=1\nSTATUS=standing by for process {first.process.pid}")
        first.end(signal.SIGTERM)
        systemd.until_told("READY=1\nSTATUS=running")
        assert second.end(signal.SIGTERM)[0] == 0


def test_the_example_unit_is_one_that_systemd_takes(tmp_path):
    """B9: checked by systemd's own tool, where there is one."""
    text = (ROOT / UNIT).read_text()
    assert "Type=notify" in text
    assert "RestartPreventExitStatus=2" in text
    tool = shutil.which("systemd-analyze")
    if not tool:
        pytest.skip("systemd-analyze is not installed")
    unit = tmp_path / "dragoman.service"
    unit.write_text(re.sub(r"/opt/\S+/dragoman", shutil.which("true"), text))
    done = subprocess.run([tool, "verify", unit], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
