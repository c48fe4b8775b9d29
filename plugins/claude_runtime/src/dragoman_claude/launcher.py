"""Starts the program: with listed variables only, noted down, and bound to the gateway's life.

A script, run by the interpreter with ``-I -S``: `guard` or `become`, the file of notes, the process
id of the gateway, the program and its arguments. It imports nothing of the package: that is slow.

`guard` (Linux) stays as a small parent of the program. It takes in whatever the program's tools
leave without a parent, ends all of it when the gateway or the program is gone, and then ends as
the program did. SIGTERM asks the program to end, SIGHUP ends everything at once; the kernel sends
the latter when the gateway dies. `become` is for other systems: the notes are all there is.
"""

from __future__ import annotations

import os
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn  # importing it costs a start some ms

LISTED = "DRAGOMAN_CLAUDE_VARIABLES"
"""The variable with the names of those that the program is to see; a name holds no ``=``."""
OF_THE_SDK = ("CLAUDE_AGENT_SDK_VERSION", "CLAUDE_CODE_ENTRYPOINT", "PWD")
"""What the SDK itself sets at each start."""
_KEY, _KEY_PIPE = "ANTHROPIC_API_KEY", "CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR"
GATEWAY, GUARDIAN, PROGRAM = "gateway", "guardian", "program"
"""Who is who in the notes: lines of one of these words, a process id and a mark."""
_GRACE = 3.0
"""Seconds that a program has after SIGTERM; the SDK kills the guardian itself after five."""
_PDEATHSIG, _SUBREAPER = 1, 36
"""What prctl is to set."""
_HEARD = {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP}


def mark_by_proc(pid: int) -> str | None:
    """Return what no other process ever had together with this id, as /proc tells; None if gone.

    It is the boot and the clock tick of the process's start. One that waits to be reaped is gone.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - pathlib costs a start 5 ms
            fields = file.read().rpartition(b")")[2].split()
        with open("/proc/sys/kernel/random/boot_id") as file:  # noqa: PTH123
            boot = file.read().strip()
    except OSError:
        return None
    return None if fields[0] in {b"Z", b"X"} else f"{boot}:{fields[19].decode()}"


def mark_by_ps(pid: int) -> str | None:
    """Return the second in which the process was started, as ps tells; None if it is gone."""
    import subprocess

    told = subprocess.run(  # noqa: S603 - a fixed command
        ["/bin/ps", "-o", "stat=", "-o", "lstart=", "-p", str(pid)],
        env={"LC_ALL": "C", "TZ": "UTC0"},
        capture_output=True,
        check=False,
    ).stdout.decode()
    state, _, start = told.strip().partition(" ")
    return None if not state or state.startswith("Z") else "-".join(start.split())


def note(path: str, role: str, mark: str | None) -> None:
    """Add this process to the notes."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(file, f"{role} {os.getpid()} {mark}\n".encode())
    os.close(file)


def main() -> None:
    """Do what the arguments say."""
    way, notes, gateway, *program = sys.argv[1:]
    names = {*os.environ.get(LISTED, "").split("="), *OF_THE_SDK}
    environment = {name: value for name, value in os.environ.items() if name in names}
    _hand_over_key(environment)
    if way == "guard":
        _guard(notes, int(gateway), program, environment)
    os.setsid()
    note(notes, PROGRAM, mark_by_ps(os.getpid()))
    _become(program, environment)


def _hand_over_key(environment: dict[str, str]) -> None:
    """Give the key through a pipe that the program reads once: its tools inherit variables."""
    key = environment.pop(_KEY, None)
    if key is None:
        return
    reading, writing = os.pipe()
    os.write(writing, key.encode())
    os.close(writing)
    os.set_inheritable(reading, True)
    environment[_KEY_PIPE] = str(reading)


def _become(program: list[str], environment: dict[str, str]) -> NoReturn:
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and exec would keep that
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    try:
        os.execve(program[0], program, environment)  # noqa: S606 - what the operator installed
    except OSError as error:
        os.write(2, f"{program[0]} cannot be run: {error.strerror}\n".encode())
        os._exit(127)


def _guard(notes: str, gateway: int, program: list[str], environment: dict[str, str]) -> NoReturn:
    import ctypes

    libc = ctypes.CDLL(None)
    usual = signal.pthread_sigmask(signal.SIG_BLOCK, _HEARD)
    libc.prctl(_PDEATHSIG, signal.SIGHUP)
    if os.getppid() != gateway:
        os._exit(1)  # it died before the kernel was asked to tell
    libc.prctl(_SUBREAPER, 1)
    os.setsid()
    _forget_environment()
    guardian = os.getpid()
    note(notes, GUARDIAN, mark_by_proc(guardian))
    child = os.fork()
    if child == 0:
        libc.prctl(_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != guardian:
            os._exit(1)
        os.setsid()
        note(notes, PROGRAM, mark_by_proc(os.getpid()))
        signal.pthread_sigmask(signal.SIG_SETMASK, usual)
        _become(program, environment)
    _let_go_of_streams()
    status = _watch(child)
    _end_as(_end_all(child, status))


def _forget_environment() -> None:
    """Overwrite the gateway's variables: /proc would show them to the program's tools."""
    import ctypes

    block = ctypes.POINTER(ctypes.c_void_p).in_dll(ctypes.CDLL(None), "environ")
    position = 0
    while address := block[position]:
        ctypes.memset(address, 0, len(ctypes.string_at(address)))
        position += 1


def _let_go_of_streams() -> None:
    """Leave what is open to the program: what it closes must show, and its key is its own."""
    os.closerange(3, 256)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nothing, stream)
    os.close(nothing)
    os.chdir("/")


def _watch(program: int) -> int | None:
    """Wait until the program has ended, and return its status; None if all is to end at once."""
    deadline: float | None = None
    while True:
        limit = 3600.0 if deadline is None else max(0.0, deadline - time.monotonic())
        heard = signal.sigtimedwait(_HEARD, limit)
        status = _reap(program)
        if status is not None:
            return status
        if heard is None and deadline is not None:
            return None
        if heard is not None and heard.si_signo == signal.SIGHUP:
            return None
        if heard is not None and heard.si_signo != signal.SIGCHLD and deadline is None:
            os.kill(program, signal.SIGTERM)
            deadline = time.monotonic() + _GRACE


def _reap(program: int) -> int | None:
    """Take in all who have ended, and return the program's status if it is one of them."""
    found = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        if pid == program:
            found = status


def _end_all(program: int, status: int | None) -> int | None:
    """Kill children until there are none: those of a killed one become children of this process."""
    spared: set[int] = set()
    while children := _children() - spared:
        for child in children:
            try:
                os.kill(child, signal.SIGKILL)
            except OSError:  # of another user by now: not ours to end
                spared.add(child)
        signal.sigtimedwait({signal.SIGCHLD}, 0.05)
        ended = _reap(program)
        status = ended if status is None else status
    return status


def _children() -> set[int]:
    """Return the ids of this process's children."""
    own, found = str(os.getpid()).encode(), set()
    for name in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208 - see above
        try:
            with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                parent = file.read().rpartition(b")")[2].split()[1]
        except OSError:
            continue
        if parent == own:
            found.add(int(name))
    return found


def _end_as(status: int | None) -> NoReturn:
    """End with the program's exit code; if it was killed, be killed."""
    if status is None or (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL):
        os.kill(os.getpid(), signal.SIGKILL)
    code = os.waitstatus_to_exitcode(status or 0)
    os._exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main()
