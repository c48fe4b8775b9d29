"""The end of the process, in each phase of its life: real processes and real signals."""

import re
import shutil
import signal
import subprocess
import sys
import tomllib
from contextlib import suppress
from pathlib import Path

import pytest

from dragoman.cli.main import EXIT_CODES
from dragoman.process import exits

DRAGOMAN = str(Path(sys.executable).parent / "dragoman")
ROOT = Path(__file__).resolve().parents[3]

SHORT_MARGIN = """
import functools, sys
from dragoman.cli import main, serving
serving.serve = functools.partial(serving.serve, margin=0.5)
sys.exit(main.main(["run"]))
"""

both = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
old_and_new = pytest.mark.parametrize(
    "deployment", [pytest.param("oldest", marks=pytest.mark.proof), "installed"], indirect=True
)


@both
def test_fc_rst_08_a_signal_while_plugins_are_imported_ends_at_once(deployment, number):
    """B9: before the event loop exists there is nothing to put in order."""
    deployment.write()
    mark = deployment.folder / "importing"
    life = deployment.start(TROUBLE_IMPORT=str(mark))
    life.until(mark.exists)
    code, seconds = life.end(number)
    assert (code, life.errors) == (0, "")
    assert seconds < 10


def test_fc_rst_08_a_signal_as_soon_as_it_is_heard_ends_at_once(deployment):
    """B9: the handler is there before anything else is imported."""
    deployment.write()
    life = deployment.start()
    life.until(life.hears_signals)
    code, seconds = life.end(signal.SIGTERM)
    assert (code, life.errors) == (0, "")
    assert seconds < 10
    assert life.said == ""


def test_fc_rst_08_a_signal_to_the_shell_in_front_reaches_the_program(deployment):
    """B9: ``sh -c`` with one command."""
    deployment.write()
    mark = deployment.folder / "importing"
    life = deployment.start(
        command=("/bin/sh", "-c", f"exec '{DRAGOMAN}' run"), TROUBLE_IMPORT=str(mark)
    )
    life.until(mark.exists)
    code, seconds = life.end(signal.SIGTERM)
    assert (code, life.errors) == (0, "")
    assert seconds < 10


def first_process(*arguments):
    return ("unshare", "--fork", "--pid", "--kill-child", *arguments)


def can_be_first():
    if not shutil.which("unshare"):
        return False
    return subprocess.run(first_process("true"), check=False, capture_output=True).returncode == 0


@pytest.mark.parametrize("phase", ["importing", "idle"])
def test_fc_rst_08_the_first_process_of_a_container_hears_signals(deployment, phase):
    """B9: the kernel drops signals to process 1 that it has no handler for."""
    if not can_be_first():
        pytest.skip("this user may not make a process namespace")
    deployment.write()
    mark = deployment.folder / "importing"
    more = {"TROUBLE_IMPORT": str(mark)} if phase == "importing" else {}
    life = deployment.start(command=first_process(DRAGOMAN, "run"), **more)
    if phase == "importing":
        life.until(mark.exists)
    else:
        life.until_works()
    children = Path(f"/proc/{life.process.pid}/task/{life.process.pid}/children").read_text()
    (child,) = children.split()
    before = life.errors
    subprocess.run(["kill", "-TERM", child], check=True)
    assert life.process.wait(60) == 0
    assert before == life.errors == ""


@old_and_new
def test_fc_rst_08_a_signal_while_a_component_opens_ends_the_start(deployment):
    """B9, FC-STO-02: nobody waits for the rest of a start that is not wanted any more."""
    deployment.write(trouble='opening = "slow"')
    life = deployment.start()
    life.until_said("opening")
    code, seconds = life.end(signal.SIGTERM)
    assert (code, life.errors) == (0, "")
    assert seconds < 10
    assert life.intact()


@old_and_new
@both
def test_fc_rst_08_an_idle_gateway_ends_in_order(deployment, number):
    """B9, FC-STO-02."""
    deployment.write()
    life = deployment.start()
    life.until_works()
    code, seconds = life.end(number)
    assert (code, life.errors) == (0, "")
    assert seconds < 10
    assert life.intact()
    assert life.rows("SELECT DISTINCT state FROM deliveries") == [("delivered",)]


@old_and_new
def test_fc_rst_08_a_run_with_a_long_tool_is_cut_and_says_so(deployment):
    """B9, FC-STO-02: with the grace that is the default."""
    deployment.write(tail="")
    life = deployment.start()
    life.tell("tool")
    life.until_said("told tool")
    code, seconds = life.end(signal.SIGTERM)
    assert code == 0
    assert seconds < 20
    assert "Traceback" not in life.errors
    assert life.intact()
    assert life.rows("SELECT state FROM agent_runs") == [("interrupted",)]
    assert life.rows("SELECT count(*) FROM deliveries WHERE state IN ('pending','sending')") == [
        (0,)
    ]


@pytest.mark.parametrize(
    ("wait", "state", "event"), [("60", "interrupted", "refused"), ("0", "waiting", "adopted")]
)
def test_fc_rst_08_an_approval_that_nobody_decided_leaves_nothing_open(
    deployment, wait, state, event
):
    """B9: while it is asked for; and asked, it waits for the next process."""
    deployment.write()
    life = deployment.start()
    life.tell(f"ask {wait}")
    life.until_said("asked")
    code, seconds = life.end(signal.SIGTERM)
    assert code == 0
    assert seconds < 20
    assert "Traceback" not in life.errors
    assert life.intact()
    assert life.rows("SELECT state FROM agent_runs") == [(state,)]
    assert set(life.rows("SELECT state FROM deliveries")) <= {("delivered",), ("abandoned",)}
    assert life.rows("SELECT state FROM inbound_events") == [(event,)]


@old_and_new
@both
def test_fc_rst_08_the_second_signal_ends_at_once_and_shows_where_everything_was(
    deployment, number
):
    """B9, FC-STO-02: forced, and the store is intact."""
    deployment.write(tail="[limits]\ngrace = 30\n")
    life = deployment.start()
    life.tell("tool")
    life.until_said("told tool")
    life.signal(number)
    with suppress(subprocess.TimeoutExpired):
        life.process.wait(0.3)  # two equal signals at the same moment are one
    code, seconds = life.end(number)
    assert code == 128 + number
    assert seconds < 10
    assert "asked again to end" in life.errors
    assert "most recent call first" in life.errors
    assert life.intact()


def test_the_second_signal_counts_even_if_the_loop_is_held(deployment):
    deployment.write()
    life = deployment.start()
    life.tell("hold 60")
    life.until_said("told hold")
    life.signal(signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        life.process.wait(0.3)
    code, seconds = life.end(signal.SIGTERM)
    assert code == 128 + signal.SIGTERM
    assert seconds < 10


def test_an_end_that_takes_too_long_is_cut_and_shows_where_everything_was(deployment):
    """B9: a component that never closes."""
    deployment.write(trouble='closing = "hold"')
    life = deployment.start(command=(sys.executable, "-c", SHORT_MARGIN))
    life.until_works()
    code, seconds = life.end(signal.SIGTERM)
    assert code == exits.OVERRUN == 70
    assert seconds < 10
    assert "the orderly end takes too long" in life.errors
    assert "in open_trouble" in life.errors
    assert life.intact()


@old_and_new
def test_fc_sto_02_a_thread_of_somebody_else_does_not_hold_the_process(deployment):
    """B9: all is closed by then, so that the code is that of an ordered end."""
    deployment.write()
    life = deployment.start()
    life.tell("thread")
    life.until_said("done: thread")
    code, seconds = life.end(signal.SIGTERM)
    assert code == 0
    assert seconds < 10
    assert life.errors == (
        "dragoman: all is closed; ended beside threads that go on: endless tool\n"
    )
    assert life.intact()


@old_and_new
def test_fc_sto_02_an_error_in_the_middle_of_the_start_ends_the_process(deployment):
    deployment.write(trouble='opening = "fail"')
    life = deployment.start()
    code, _ = life.end()
    assert code == exits.NOT_USABLE == 2
    (line,) = life.errors.splitlines()
    assert "runtimes.trouble cannot be opened" in line
    assert life.intact()


@old_and_new
@pytest.mark.parametrize("trouble", ['stopping = "fail"', 'closing = "fail"'])
def test_fc_sto_02_a_plugin_that_fails_to_stop_does_not_disturb_the_end(deployment, trouble):
    deployment.write(trouble=trouble)
    life = deployment.start()
    life.until_works()
    code, seconds = life.end(signal.SIGTERM)
    assert code == 0
    assert seconds < 10
    (line,) = life.errors.splitlines()  # what failed is logged, in one line
    assert "trouble" in line
    assert life.intact()


@old_and_new
def test_fc_sto_02_a_command_that_only_reads_ends_by_itself(deployment):
    """Also beside a gateway at work."""
    deployment.write()
    life = deployment.start()
    life.until_works()
    reader = subprocess.run(
        [DRAGOMAN, "check", "-m", "dragoman.toml"],
        cwd=deployment.folder,
        env=deployment.environment(),
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert (reader.returncode, reader.stderr) == (0, "")
    assert life.end(signal.SIGTERM)[0] == 0


@pytest.mark.parametrize("deployment", ["oldest"], indirect=True)
def test_fc_sto_02_the_oldest_packages_are_those_that_core_declares(deployment):
    """FC-STO-02: what the tests above call the oldest is what a process finds, and no older one."""
    core = tomllib.loads((ROOT / "core" / "pyproject.toml").read_text())
    declared = dict(
        re.match(r"([\w-]+)>=([\d.]+)", line).groups() for line in core["project"]["dependencies"]
    )
    code = "import sys; from importlib.metadata import version; print(*map(version, sys.argv[1:]))"
    found = subprocess.run(
        [sys.executable, "-c", code, *declared],
        env=deployment.environment(),
        capture_output=True,
        text=True,
        timeout=110,
        check=True,
    )
    for name, version in zip(declared, found.stdout.split(), strict=True):
        assert f"{version}.".startswith(f"{declared[name]}."), name


def test_the_store_of_another_process_is_a_code_of_its_own(deployment):
    deployment.write()
    first = deployment.start()
    first.until_works()
    second = deployment.start()
    assert second.end()[0] == exits.HELD == 75
    assert f"in use by process {first.process.pid}" in second.errors
    assert len(second.errors.splitlines()) == 1


def test_every_exit_code_is_in_the_help():
    for code in (exits.ORDERED, exits.FAILED, exits.NOT_USABLE, exits.OVERRUN, exits.HELD):
        assert f"\n  {code} " in EXIT_CODES, code
