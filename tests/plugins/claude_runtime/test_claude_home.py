"""What a program calls its own: directories, variables, and how it is started."""

import os
import select
import signal
import stat
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from dragoman_claude import launcher
from dragoman_claude.home import Homes, bundled_program

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc"),
]
POISON = {
    "TELEGRAM_TOKEN": "canary",
    "ANTHROPIC_API_KEY": "canary",
    "ANTHROPIC_BASE_URL": "http://canary.example",
    "CLAUDECODE": "1",
    "CLAUDE_CODE_OAUTH_TOKEN": "canary",
    "CLAUDE_CODE_ENTRYPOINT": "canary",
    "HTTPS_PROXY": "http://canary.example",
    "XDG_RUNTIME_DIR": "/run/user/canary",
    "SHELL": "/bin/canary",
    "LC_ALL": "C.UTF-8",
    "HOME": "/canary",
}


@pytest.fixture(params=[True, False], ids=["guarded", "become"])
def guarded(request):
    return request.param


def homes(tmp_path, program="/usr/bin/env", *, guarded=True):
    return Homes(tmp_path / "claude", Path(program), guarded=guarded)


def start(home, *arguments, wanted=None, **more):
    """Start the program as the SDK does: with the gateway's variables and, above them, the home's."""
    environment = {**os.environ, **home.environment(wanted or {})}
    environment |= {"CLAUDE_AGENT_SDK_VERSION": "9", "CLAUDE_CODE_ENTRYPOINT": "sdk-py"}
    return subprocess.Popen([home.cli, *arguments], env=environment, stdout=subprocess.PIPE, **more)


def output(home, *arguments, **more):
    process = start(home, *arguments, stderr=subprocess.PIPE, **more)
    out, err = process.communicate(timeout=30)
    return process.returncode, out.decode(), err.decode()


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_workspace_is_the_same_in_every_run(tmp_path):
    """D11: one real directory for a session, for its owner alone, whatever link leads to it."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "data").symlink_to(tmp_path / "elsewhere")
    first = Homes(tmp_path / "data" / "claude", Path("/bin/true"))
    workspace = first.workspace("ses_1")
    (workspace / "kept").touch()
    workspace.chmod(0o755)
    again = Homes(tmp_path / "elsewhere" / "claude", Path("/bin/true"))
    assert again.workspace("ses_1") == workspace == workspace.resolve()
    assert (workspace / "kept").exists()
    assert mode(workspace) == 0o700
    assert again.workspace("ses_2") != workspace


@pytest.mark.parametrize("name", ["", ".", "..", "../up", "a/b", "/etc", "a\0b", "a b", "-x", "é"])
def test_only_a_plain_id_names_a_workspace(tmp_path, name):
    """D11: no words of people lead out of the directory."""
    with pytest.raises(ValueError, match="no plain id"):
        homes(tmp_path).home(name)
    assert not (tmp_path / "claude" / "runs").exists()


def test_a_workspace_that_became_a_link_is_refused(tmp_path):
    """D11: an agent may not move into another's directory by replacing its own."""
    theirs, ours = homes(tmp_path).workspace("theirs"), homes(tmp_path).workspace("ours")
    ours.rmdir()
    ours.symlink_to(theirs)
    with pytest.raises(NotADirectoryError, match="is a link"):
        homes(tmp_path).home("ours")


def test_each_program_has_directories_of_its_own(tmp_path):
    """D11: also two that serve one session, one after the other."""
    places = homes(tmp_path)
    one, two = places.home("ses_1"), places.home("ses_1")
    assert one.workspace == two.workspace
    for name in ("config", "temp", "cli", "run"):
        assert getattr(one, name) != getattr(two, name)
    for path in (one.run, one.config, one.temp, one.cli, one.started.home, one.workspace):
        assert mode(path) == 0o700
    assert mode(one.started.notes) == 0o600


def test_a_lasting_configuration_is_the_sessions(tmp_path):
    """D11: where the program's own transcripts are to stay."""
    places = homes(tmp_path)
    one, two = places.home("ses_1", lasting=True), places.home("ses_1", lasting=True)
    assert one.config == two.config
    assert one.config not in (places.home("ses_2", lasting=True).config, one.workspace)


def test_the_program_sees_what_is_listed_and_no_more(tmp_path, monkeypatch, guarded):
    """D11: nothing of the gateway's secrets, keys, proxies or place."""
    for name, value in POISON.items():
        monkeypatch.setenv(name, value)
    home = homes(tmp_path, guarded=guarded).home("ses_1")
    code, told, _ = output(home, wanted={"ANTHROPIC_BASE_URL": "ours", "ODD": "a=b\nc"})
    assert code == 0
    assert "canary" not in told
    assert "ODD=a=b\nc\n" in told
    seen = dict(line.split("=", 1) for line in told.splitlines() if "=" in line)
    assert seen["ANTHROPIC_BASE_URL"] == "ours"
    assert seen["LC_ALL"] == "C.UTF-8"
    assert seen["HOME"] == str(home.started.home)
    assert seen["CLAUDE_CONFIG_DIR"] == str(home.config)
    assert seen["CLAUDE_CODE_TMPDIR"] == seen["TMPDIR"] == str(home.temp)
    assert seen["CLAUDE_AGENT_SDK_VERSION"] == "9"
    assert seen["CLAUDE_CODE_ENTRYPOINT"] == "sdk-py"
    assert seen["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"] == "1"
    assert seen["PATH"] == os.environ["PATH"]
    assert set(seen) <= {*home.environment({}), "ANTHROPIC_BASE_URL", "ODD", *launcher.OF_THE_SDK}


def test_the_key_is_for_the_program_to_read_once(tmp_path, monkeypatch, guarded):
    """D11: its tools inherit variables, and nothing else."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "canary")
    home = homes(tmp_path, "/bin/sh", guarded=guarded).home("ses_1")
    script = 'env; eval "exec 0<&$CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR"; echo; cat; echo; cat'
    code, told, _ = output(home, "-c", script, wanted={"ANTHROPIC_API_KEY": "ours"})
    variables, _, read = told.rpartition("\n\n")
    assert (code, read) == (0, "ours\n")
    assert "ours" not in variables
    assert "canary" not in variables


def test_what_keeps_programs_apart_cannot_be_wanted_otherwise(tmp_path):
    """D11: a table of variables in the manifest does not undo it."""
    home = homes(tmp_path).home("ses_1")
    plain = home.environment({})
    given = home.environment({**dict.fromkeys(plain, "0"), "MORE": "1"})
    free = {"PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR"}
    changed = {name for name in plain if given[name] != plain[name]} - {launcher.LISTED}
    assert changed <= {*free, "NODE_EXTRA_CA_CERTS"}
    assert "PATH" in changed
    assert "MORE" in given[launcher.LISTED].split("=")


@contextmanager
def running(home, *arguments):
    """A program that runs: it has said ``up``."""
    with start(home, *arguments, stdin=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"up\n"
        yield process
        process.stdin.close()


def test_the_guardian_shows_nobody_the_gateways_variables(tmp_path, monkeypatch):
    """D11: a tool may look at the parents of its program."""
    monkeypatch.setenv("TELEGRAM_TOKEN", "canary")
    home = homes(tmp_path, "/bin/sh").home("ses_1")
    with running(home, "-c", "echo up; cat") as process:
        shown = Path(f"/proc/{process.pid}/environ").read_bytes()
        assert shown.strip(b"\0") == b""


def test_a_pipeline_of_tools_ends_as_usual(tmp_path, guarded):
    """D11: Python ignores a signal that the programs it becomes must not ignore."""
    home = homes(tmp_path, "/bin/sh", guarded=guarded).home("ses_1")
    with running(home, "-c", "echo up; cat"):
        (program,) = home.started.noted(launcher.PROGRAM)
        status = Path(f"/proc/{program.pid}/status").read_text().splitlines()
    (ignored,) = (int(line.split()[1], 16) for line in status if line.startswith("SigIgn"))
    assert ignored & (1 << signal.SIGPIPE - 1) == 0


def test_a_program_has_a_session_of_its_own(tmp_path, guarded):
    """D11: what a terminal sends to the gateway, or the program to its group, stays there."""
    home = homes(tmp_path, "/bin/sh", guarded=guarded).home("ses_1")
    with running(home, "-c", "echo up; cat") as process:
        (program,) = home.started.noted(launcher.PROGRAM)
        assert os.getsid(program.pid) == os.getpgid(program.pid) == program.pid
        assert os.getsid(process.pid) == process.pid


def test_the_streams_are_the_programs_alone(tmp_path, guarded):
    """D11: what it closes is seen to be closed."""
    home = homes(tmp_path, "/bin/sh", guarded=guarded).home("ses_1")
    with running(home, "-c", "echo up; exec >&-; cat >/dev/null") as process:
        readable, _, _ = select.select([process.stdout], [], [], 20)
        assert readable
        assert process.stdout.read() == b""


@pytest.mark.parametrize(("script", "code"), [("exit 7", 7), ("kill -9 $$", -9), ("true", 0)])
def test_an_end_is_told_as_it_was(tmp_path, guarded, script, code):
    """D11, FC-LEK-01: also that the kernel killed it for want of memory."""
    home = homes(tmp_path, "/bin/sh", guarded=guarded).home("ses_1")
    assert output(home, "-c", script) == (code, "", "")


def test_a_program_that_is_not_there_says_so(tmp_path, guarded):
    """D11, D13: in one line, where the SDK's caller looks."""
    home = homes(tmp_path, tmp_path / "absent", guarded=guarded).home("ses_1")
    code, _, said = output(home)
    assert (code, said) == (127, f"{tmp_path}/absent cannot be run: No such file or directory\n")


def test_a_data_directory_that_runs_nothing_is_told(tmp_path, monkeypatch):
    """D11, D13: before the SDK fails with a bare permission error."""
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(OSError, match=r"noexec.*another data_dir"):
        homes(tmp_path).home("ses_1")


async def test_a_run_goes_with_its_program(tmp_path):
    """D11: and the session's workspace stays."""
    home = homes(tmp_path).home("ses_1")
    output(home)
    assert await home.end(1)
    await home.remove()
    assert not home.run.exists()
    assert home.workspace.is_dir()


async def test_what_tools_made_read_only_goes_too():
    """D11: as module caches are; and no link is followed on the way."""
    nobody = 65534 if os.geteuid() == 0 else os.geteuid()  # permissions do not bind root
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chown(folder, nobody, -1)
        os.seteuid(nobody)
        try:
            home = Homes(Path(folder) / "claude", Path("/bin/true")).home("ses_1")
            cache = home.temp / "cache"
            cache.mkdir()
            (cache / "module").touch()
            (home.workspace / "kept").mkdir(mode=0o750)
            (cache / "link").symlink_to(home.workspace / "kept")
            cache.chmod(0o500)
            await home.remove()
            assert not home.run.exists()
            assert mode(home.workspace / "kept") == 0o750
        finally:
            os.seteuid(os.getuid())


def test_the_sdk_brings_the_program_along():
    """D11: it is found without an import of the SDK, which takes a second."""
    program = bundled_program()
    assert program is not None
    assert program.name == "claude"
