"""Nothing that was started outlives its use: not the program, and not what its tools left."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import anyio
import attrs
import pytest

from dragoman_claude.home import Homes, Swept, bundled_program
from dragoman_claude.launcher import GATEWAY, GUARDIAN, PROGRAM, note
from dragoman_claude.processes import ProcTable, PsTable, Started
from peers.aimock import AiMock

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc"),
]
HERE = Path(__file__).parent
TREE = """
quiet() { "$@" </dev/null >/dev/null 2>&1 & }
quiet sleep 1000
quiet setsid sleep 1000
$MORE
trap "$ON_TERM" TERM
echo up
while :; do wait; done
"""
LOST = "(quiet setsid sleep 1000)"
"""A process without a parent of its own, in a session of its own: as servers begin."""


def begin(command, **more):
    return subprocess.Popen(command, stdout=subprocess.PIPE, **more)


@contextmanager
def killed_at_last(process):
    with process:
        try:
            yield process
        finally:
            process.kill()


class Tree:
    """A program with tools, of a gateway that is this process or one that may be killed.

    Without a guardian a tool that nobody is the parent of cannot be known: there is none then.
    """

    def __init__(self, tmp_path, *, guarded=True, on_term="exit 0"):
        more, self.tools = (LOST, 3) if guarded else ("", 2)
        self.root = tmp_path / "claude"
        self.script = tmp_path / "tree.sh"
        self.script.write_text(f"#!/bin/sh\nON_TERM={on_term!r}\n" + TREE.replace("$MORE", more))
        self.script.chmod(0o700)
        self.guarded = guarded

    @property
    def homes(self):
        return Homes(self.root, self.script, guarded=self.guarded)

    async def start(self):
        home = self.homes.home("ses_1")
        process = begin([home.cli], env=home.environment({}), stdin=subprocess.PIPE)
        await self.grown(home.started, process)
        return home, process

    async def in_a_gateway(self):
        """Start it as the child of another process, and return the run and that process."""
        before = f"import sys; sys.path[:0] = {sys.path!r}\n"
        gateway = begin(
            [sys.executable, "-c", before + _GATEWAY, self.root, self.script, str(self.guarded)],
        )
        run = await anyio.to_thread.run_sync(gateway.stdout.readline)
        started = self.homes._started(Path(run.decode().strip()))
        await self.grown(started, gateway)
        return started, gateway

    async def grown(self, started, process):
        assert await anyio.to_thread.run_sync(process.stdout.readline) == b"up\n"
        names = ["sleep"] * self.tools + ["tree.sh"]
        await until(lambda: sorted(of_home(started.home).values()) == names)


_GATEWAY = """
import subprocess
from pathlib import Path
from dragoman_claude.home import Homes
home = Homes(Path(sys.argv[1]), Path(sys.argv[2]), guarded=sys.argv[3] == "True").home("ses_1")
print(home.run, flush=True)
process = subprocess.Popen([home.cli], env=home.environment({}), stdin=subprocess.PIPE)
process.wait()
"""


def of_home(home):
    """All that lives in a home, found without the code under test: a list of command names."""
    found = {}
    for path in Path("/proc").iterdir():
        try:
            if f"HOME={home}".encode() in (path / "environ").read_bytes().split(b"\0"):
                found[int(path.name)] = (path / "comm").read_text().strip()
        except (OSError, ValueError):
            continue
    return found


async def until(condition, seconds=20.0):
    with anyio.fail_after(seconds):
        while not condition():  # noqa: ASYNC110 - a process rings no bell
            await anyio.sleep(0.01)


@pytest.fixture(params=[True, False], ids=["guarded", "become"])
def guarded(request):
    return request.param


@pytest.fixture(autouse=True)
def nothing_outlives_a_test_that_failed(tmp_path):
    yield
    for run in tmp_path.glob("claude/runs/*"):
        for pid in of_home(run / "home"):
            os.kill(pid, signal.SIGKILL)


async def test_an_end_is_asked_for_first(tmp_path, guarded):
    """FC-LEK-01, D11: then nothing is left of program and tools."""
    home, process = await Tree(tmp_path, guarded=guarded, on_term="echo bye; exit 0").start()
    with killed_at_last(process):
        assert await home.end(20)
        assert process.stdout.read() == b"bye\n"
    assert process.returncode == 0
    assert of_home(home.started.home) == {}


async def test_who_does_not_listen_is_killed(tmp_path, guarded):
    """FC-LEK-01, D11: with all that it started, also if whoever waits is cancelled."""
    home, process = await Tree(tmp_path, guarded=guarded, on_term="").start()
    with killed_at_last(process):
        with anyio.CancelScope() as scope:
            scope.cancel()
            assert await home.end(0.1)
        assert of_home(home.started.home) == {}
    assert process.returncode == -signal.SIGKILL


async def test_a_program_that_dies_takes_its_tools_along(tmp_path):
    """FC-LEK-01, D11: as when the kernel needs its memory."""
    home, process = await Tree(tmp_path).start()
    (program,) = home.started.noted(PROGRAM)
    with killed_at_last(process):
        os.kill(program.pid, signal.SIGKILL)
        assert process.wait(20) == -signal.SIGKILL
    assert of_home(home.started.home) == {}


async def test_tools_of_a_guardian_that_was_killed_are_found(tmp_path):
    """FC-LEK-01, D11: the program goes with it, the rest is known by its home."""
    home, process = await Tree(tmp_path).start()
    with killed_at_last(process):
        process.kill()
    await until(lambda: set(of_home(home.started.home).values()) == {"sleep"})
    assert await home.end(5)
    assert of_home(home.started.home) == {}


class Blind(ProcTable):
    """A table that tells of no process but those of which it is asked."""

    def parents(self):
        return {}

    def at_home(self, home):
        return set()


async def test_a_guardian_ends_what_nobody_else_finds(tmp_path):
    """FC-LEK-01, D11: tools may start others between a look and a kill."""
    home, process = await Tree(tmp_path).start()
    with killed_at_last(process):
        started = attrs.evolve(home.started, table=Blind())
        assert await anyio.to_thread.run_sync(started.end, 0)
        assert of_home(home.started.home) == {}


async def test_a_gateway_that_is_killed_leaves_nothing(tmp_path):
    """FC-LEK-01, D11: no tool either, whatever session or parent it gave itself."""
    started, gateway = await Tree(tmp_path).in_a_gateway()
    with killed_at_last(gateway):
        gateway.kill()
    await until(lambda: of_home(started.home) == {})


async def test_what_a_killed_gateway_left_is_swept(tmp_path):
    """FC-LEK-01, D11: where no guardian is, before the next gateway resumes a session."""
    tree = Tree(tmp_path, guarded=False)
    started, gateway = await tree.in_a_gateway()
    with killed_at_last(gateway):
        gateway.kill()
    left = of_home(started.home)
    assert len(left) == 3
    swept = await tree.homes.sweep()
    assert set(swept.ended) == set(left)
    assert swept.stuck == ()
    assert of_home(started.home) == {}
    assert list((tree.root / "runs").iterdir()) == []
    assert await tree.homes.sweep() == Swept((), ())


async def test_what_a_living_gateway_has_is_left_alone(tmp_path, guarded):
    """FC-LEK-01, D11: one that stands by may look at the same directory."""
    tree = Tree(tmp_path, guarded=guarded)
    started, gateway = await tree.in_a_gateway()
    with killed_at_last(gateway):
        assert await tree.homes.sweep() == Swept((), ())
        assert len(of_home(started.home)) == tree.tools + 1
        await anyio.to_thread.run_sync(started.end, 0)
    assert of_home(started.home) == {}


@pytest.mark.parametrize("table", [ProcTable(), PsTable()], ids=["proc", "ps"])
async def test_an_id_that_others_have_by_now_is_not_signalled(tmp_path, table):
    """FC-LEK-01, D11: neither at an end nor in a sweep, and nothing that it started."""
    with killed_at_last(begin(["/bin/sleep", "1000"])) as stranger:
        for role in (GATEWAY, GUARDIAN, PROGRAM):
            note(str(tmp_path / "notes"), role, "another-start")
        notes = (tmp_path / "notes").read_text().replace(str(os.getpid()), str(stranger.pid))
        for text in (notes, notes + "program 12", notes + f"program {stranger.pid}", "", "x\n\n"):
            (tmp_path / "notes").write_text(text)
            started = Started(tmp_path / "notes", tmp_path / "home", table)
            assert started.alive() == {}
            assert started.end(0.1)
        table.send(stranger.pid, "another-start", signal.SIGKILL)
        homes = Homes(tmp_path / "claude", Path("/bin/true"), isinstance(table, ProcTable))
        run = homes.home("ses_1").run
        (run / "notes").write_text(notes)
        assert await homes.sweep() == Swept((), ())
        assert not run.exists()
        assert stranger.poll() is None
        mark = table.mark(stranger.pid)
        table.send(stranger.pid, mark, signal.SIGKILL)
        assert stranger.wait(20) == -signal.SIGKILL
        assert table.mark(stranger.pid) is None
        table.send(stranger.pid, mark, signal.SIGKILL)


async def test_one_who_waits_to_be_reaped_is_gone():
    """FC-LEK-01: a zombie cannot be killed, and holds nothing."""
    with killed_at_last(begin(["/bin/true"])) as process:
        await until(lambda: ProcTable().mark(process.pid) is None)
        assert PsTable().mark(process.pid) is None


BASH = "sleep 300 & (setsid sleep 301 &); nohup sleep 302"
FIXTURES = [
    {
        "match": {"userMessage": "work on", "hasToolResult": False},
        "response": {"toolCalls": [{"name": "Bash", "arguments": {"command": BASH}}]},
    }
]


@pytest.fixture(scope="module")
def model():
    with AiMock(FIXTURES) as server:
        yield server.base_url.removesuffix("/v1")


async def at_work(tmp_path, model):
    """Start a gateway, and return it and its run once a tool of its program works."""
    script, root = str(HERE / "gateway_to_kill.py"), tmp_path / "claude"
    before = f"import runpy, sys; sys.path[:0] = {sys.path!r}; runpy.run_path("
    gateway = begin(
        [sys.executable, "-c", f"{before}{script!r}, run_name='__main__')", root, model, "work on"],
        stderr=subprocess.DEVNULL,
        env={**os.environ, "TELEGRAM_TOKEN": "canary", "CLAUDE_CODE_MAX_RETRIES": "canary"},
    )
    assert await anyio.to_thread.run_sync(gateway.stdout.readline) == b"up\n"
    (run,) = (root / "runs").iterdir()
    await until(lambda: list(of_home(run / "home").values()).count("sleep") == 3, 60)
    return gateway, Started(run / "notes", run / "home", ProcTable())


@pytest.mark.alone
async def test_the_real_program_and_its_shell_go_with_the_gateway(tmp_path, model):
    """FC-LEK-01, D11: within a second of the gateway's kill, while a command runs."""
    gateway, started = await at_work(tmp_path, model)
    (program,) = started.noted(PROGRAM)
    is_now = anyio.Path(f"/proc/{program.pid}")
    shown = await (is_now / "environ").read_bytes()
    assert str(await (is_now / "exe").readlink()) == str(bundled_program())
    assert b"HOME=" + bytes(started.home) in shown.split(b"\0")
    assert b"canary" not in shown
    assert b"dummy" not in shown  # it has its key, or no tool would work
    with killed_at_last(gateway):
        gateway.kill()
    await until(lambda: of_home(started.home) == {}, seconds=1)


async def test_the_real_program_ends_when_it_is_asked(tmp_path, model):
    """FC-LEK-01, D11: also in the middle of a command, whose processes it does not know all."""
    gateway, started = await at_work(tmp_path, model)
    with killed_at_last(gateway):
        assert await anyio.to_thread.run_sync(started.end, 10)
        assert of_home(started.home) == {}
        gateway.kill()
