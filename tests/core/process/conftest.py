"""``dragoman run`` as a process of its own, with a plugin that makes trouble when asked to."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import attrs
import pytest

DRAGOMAN = str(Path(sys.executable).parent / "dragoman")
OLDEST = Path(__file__).resolve().parents[3] / "requirements" / "oldest.txt"

MANIFEST = """
manifest = 1
{head}
[platforms.console]
[runtimes.trouble]
{trouble}
[profiles.default]
runtime = "trouble"
[access]
owners = ["console:local"]
{tail}
"""

METADATA = "Metadata-Version: 2.1\nName: trouble\nVersion: 1.0\n"

PLUGIN = '''
"""A runtime that makes trouble: by its table, or by what it is told."""

import os
import pathlib
import threading
import time
from contextlib import asynccontextmanager

import attrs

from dragoman import (
    ApprovalRequested,
    Component,
    Finished,
    Paused,
    RuntimeCapabilities,
    TextBlock,
    hookimpl,
)

if "TROUBLE_IMPORT" in os.environ:
    pathlib.Path(os.environ["TROUBLE_IMPORT"]).touch()
    time.sleep(60)


@attrs.frozen
class Config:
    opening: str = ""
    closing: str = ""
    stopping: str = ""


@attrs.define(eq=False)
class Trouble:
    config: Config
    host: object
    capabilities: RuntimeCapabilities = attrs.field(factory=RuntimeCapabilities)

    def encode_input(self, message):
        return None

    @asynccontextmanager
    async def turn(self, request, host):
        yield self.events(request.inputs[-1].text)

    async def events(self, text):
        word, _, rest = text.partition(" ")
        print("told", word, flush=True)
        if word == "tool":
            await self.host.clock.sleep(60)
        if word == "hold":
            time.sleep(float(rest))
        if word == "thread":
            threading.Thread(target=time.sleep, args=(60,), name="endless tool").start()
        if word == "ask":
            yield ApprovalRequested("call-1", "delete_everything", "{}")
            print("asked", flush=True)
            await self.host.clock.sleep(float(rest))
            yield Paused("state")
            return
        yield TextBlock("t", f"done: {text}")
        yield Finished()

    @hookimpl
    async def dragoman_stopping(self):
        if self.config.stopping == "fail":
            raise RuntimeError("the stopping hook fails")


@asynccontextmanager
async def open_trouble(config, host):
    if config.opening:
        print("opening", flush=True)
    if config.opening == "slow":
        await host.clock.sleep(25)
    if config.opening == "fail":
        raise ValueError("the token is wrong")
    yield Trouble(config, host)
    if config.closing:
        print("closing", flush=True)
    if config.closing == "hold":
        time.sleep(60)
    if config.closing == "fail":
        raise ValueError("it does not close")


@hookimpl
def dragoman_runtimes():
    yield Component("trouble", Config, open_trouble)
'''


@attrs.define(eq=False)
class Life:
    """One process of a gateway: input as a pipe, output and errors as files."""

    folder: Path
    process: subprocess.Popen
    out: Path
    err: Path

    @property
    def said(self):
        return self.out.read_text()

    @property
    def errors(self):
        return self.err.read_text(errors="replace")

    def tell(self, text):
        """Say a line at the console."""
        self.process.stdin.write(f"{text}\n".encode())
        self.process.stdin.flush()

    def until(self, condition, limit=40.0):
        """Wait until something holds."""
        deadline = time.monotonic() + limit
        while not (answer := condition()):
            if time.monotonic() > deadline:
                raise AssertionError(f"not in time.\n{self.said}\n{self.errors}")
            time.sleep(0.01)
        return answer

    def until_said(self, text):
        self.until(lambda: text in self.said)

    def until_works(self):
        """Wait until a message has been answered."""
        self.tell("hello")
        self.until_said("done: hello")

    def signal(self, number):
        self.process.send_signal(number)

    def end(self, *numbers, limit=40.0):
        """Send signals; return the exit code and how long the end took."""
        before = time.monotonic()
        for number in numbers:
            self.signal(number)
        return self.process.wait(limit), time.monotonic() - before

    def hears_signals(self):
        """Whether the kernel has a handler of this process for SIGTERM."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        (caught,) = [line for line in status.splitlines() if line.startswith("SigCgt")]
        return int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1

    def rows(self, sql):
        with closing(sqlite3.connect(self.folder / ".dragoman" / "dragoman.db")) as db:
            return db.execute(sql).fetchall()

    def intact(self):
        return self.rows("PRAGMA integrity_check") == [("ok",)]


@attrs.define(eq=False)
class Deployment:
    """A folder with a manifest; starts processes over it, and ends what a test has left.

    They find packages in ``first`` before those that are installed.
    """

    folder: Path
    first: tuple[Path, ...] = ()
    lives: list = attrs.field(factory=list)

    def write(self, *, head="", trouble="", tail="[limits]\ngrace = 0.2\n"):
        text = MANIFEST.format(head=head, trouble=trouble, tail=tail)
        (self.folder / "dragoman.toml").write_text(text)
        info = self.folder / "trouble-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(METADATA)
        (info / "entry_points.txt").write_text("[dragoman]\ntrouble = trouble\n")
        (self.folder / "trouble.py").write_text(PLUGIN)

    def start(self, *arguments, command=(DRAGOMAN, "run"), pass_fds=(), **environment):
        number = len(self.lives)
        out, err = self.folder / f"{number}.out", self.folder / f"{number}.err"
        with out.open("wb") as output, err.open("wb") as errors:
            process = subprocess.Popen(
                [*command, *arguments],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=errors,
                cwd=self.folder,
                env=self.environment(environment),
                pass_fds=pass_fds,
            )
        life = Life(self.folder, process, out, err)
        self.lives.append(life)
        return life

    def environment(self, more=()):
        path = os.pathsep.join(
            [*map(str, self.first), str(self.folder), os.environ.get("PYTHONPATH", "")]
        )
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "PYTHONPATH": path.rstrip(os.pathsep),
            **dict(more),
        }

    def close(self):
        for life in self.lives:
            if life.process.poll() is None:
                life.process.kill()
            life.process.wait(60)
            life.process.stdin.close()


@pytest.fixture(scope="session")
def oldest(tmp_path_factory):
    """A folder with the oldest release of each package that core allows."""
    target = tmp_path_factory.mktemp("oldest")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes"]
    done = subprocess.run(
        [*pip, "--target", str(target), "-r", str(OLDEST)],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return target


@pytest.fixture
def deployment(tmp_path, request):
    old = getattr(request, "param", "installed") == "oldest"
    deployment = Deployment(tmp_path, (request.getfixturevalue("oldest"),) if old else ())
    try:
        yield deployment
    finally:
        deployment.close()
