"""The directories and the environment of programs: each its own, none of the gateway's."""

from __future__ import annotations

import functools
import os
import re
import secrets
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final, TypeVar

import anyio
import attrs

from dragoman_claude import launcher
from dragoman_claude.processes import ProcessTable, ProcTable, PsTable, Started

_T = TypeVar("_T")
_PLAIN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_FROM_THE_GATEWAY: Final = (
    "PATH",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
)
"""What a program may know of the machine."""
_ALWAYS: Final = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
    "CLAUDE_CODE_SDK_READS_SESSION_STATE": "1",
    "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS": "1",
}
"""It talks to the model's server only, remembers nothing by itself, ends when its turn does, and
tells when it is at work and when it rests."""


@attrs.frozen
class Swept:
    """What was left by gateways that are gone: processes that were ended, and that would not."""

    ended: tuple[int, ...]
    stuck: tuple[int, ...]


@attrs.define(eq=False)
class Homes:
    """Where the programs of one runtime live; ``root`` is its directory, and made when needed.

    ``sessions/<session>`` stays from run to run, ``runs/<id>`` is one program's and goes with it.
    ``guarded`` says whether a guardian holds each program's processes together, which is Linux'
    way; without it they are known by ps and parentage alone.
    """

    root: Path
    program: Path
    guarded: bool = sys.platform == "linux"
    _limiter: anyio.CapacityLimiter = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._limiter = anyio.CapacityLimiter(8)  # an end must not queue behind tools in threads

    async def sweep(self) -> Swept:
        """End what earlier gateways left and remove their runs; before any session is resumed.

        A gateway that is alive keeps what is its own. What could not be ended keeps its run.
        """
        return await anyio.to_thread.run_sync(self._sweep, limiter=self._limiter)

    def workspace(self, session_id: str) -> Path:
        """Return the session's working directory: always the same, and no link to another.

        Raises `ValueError` for what is no plain id, `NotADirectoryError` if something else is there.
        """
        return self._kept(session_id, "workspace")

    def home(self, session_id: str, *, lasting: bool = False) -> Home:
        """Make the home of one program that is to serve the session.

        ``lasting`` keeps its configuration, where transcripts are, from run to run.
        """
        workspace = self.workspace(session_id)
        run = self._runs / secrets.token_hex(4)
        run.mkdir(mode=0o700)
        launcher.note(str(run / "notes"), launcher.GATEWAY, self._table.mark(os.getpid()))
        home = Home(
            workspace=workspace,
            config=self._kept(session_id, "config") if lasting else _directory(run / "config"),
            temp=_directory(run / "temp"),
            cli=run / "claude",
            started=self._started(run),
            run=run,
            limiter=self._limiter,
        )
        _directory(home.started.home)
        home.cli.write_text(self._script(home.started.notes))
        home.cli.chmod(0o700)
        if not os.access(home.cli, os.X_OK):
            msg = f"{run} is on a file system that runs no programs (noexec): use another data_dir"
            raise OSError(msg)
        return home

    @property
    def _resolved(self) -> Path:
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self.root.resolve()

    @property
    def _runs(self) -> Path:
        return _directory(self._resolved / "runs")

    @property
    def _table(self) -> ProcessTable:
        return ProcTable() if self.guarded else PsTable()

    def _kept(self, session_id: str, name: str) -> Path:
        if not _PLAIN.fullmatch(session_id):
            msg = f"{session_id!r} cannot name a directory: it is no plain id"
            raise ValueError(msg)
        sessions = _directory(self._resolved / "sessions")
        return _directory(_directory(sessions / session_id) / name)

    def _started(self, run: Path) -> Started:
        return Started(notes=run / "notes", home=run / "home", table=self._table)

    def _script(self, notes: Path) -> str:
        way = "guard" if self.guarded else "become"
        words = (sys.executable, "-I", "-S", launcher.__file__, way, notes, os.getpid())
        said = shlex.join(str(word) for word in (*words, self.program))
        return f'#!/bin/sh\nexec {said} "$@"\n'

    def _sweep(self) -> Swept:
        ended: list[int] = []
        stuck: list[int] = []
        for run in self._runs.iterdir():
            started = self._started(run)
            if started.noted(launcher.GATEWAY):
                continue
            left = started.alive()
            if started.end(0):
                ended.extend(left)
                _remove(run)
            else:
                stuck.extend(started.alive())
        return Swept(tuple(ended), tuple(stuck))


@attrs.define(eq=False)
class Home:
    """What one program calls its own; ``cli`` is what the SDK is to start in its place."""

    workspace: Path
    config: Path
    temp: Path
    cli: Path
    started: Started
    run: Path
    _limiter: anyio.CapacityLimiter

    def environment(self, wanted: Mapping[str, str]) -> dict[str, str]:
        """Return the variables for the SDK: the program sees these and what the SDK adds.

        What keeps programs apart cannot be overridden by ``wanted``. A key in ``wanted`` is given
        to the program in another way, by which its tools do not come to see it.
        """
        given = {
            **{name: os.environ[name] for name in _FROM_THE_GATEWAY if name in os.environ},
            **wanted,
            **_ALWAYS,
            "HOME": str(self.started.home),
            "CLAUDE_CONFIG_DIR": str(self.config),
            "CLAUDE_CODE_TMPDIR": str(self.temp),
            "TMPDIR": str(self.temp),
        }
        return {**given, launcher.LISTED: "=".join(given)}

    def keep(self, name: str, text: str) -> Path:
        """Write a file for the program alone, which goes with its run; return where it is."""
        path = self.run / name
        path.touch(mode=0o600)
        path.write_text(text, encoding="utf-8")
        return path

    async def end(self, grace: float) -> bool:
        """End the program and what it started: asked first, killed after ``grace`` seconds.

        Returns whether nothing of it is left. A cancellation waits until that is known.
        """
        return await self._whole(functools.partial(self.started.end, grace))

    @property
    def pid(self) -> int | None:
        """The program's process id, once it runs."""
        return next((each.pid for each in self.started.noted(launcher.PROGRAM)), None)

    async def remove(self) -> None:
        """Remove what was this program's only; for when it has ended."""
        await self._whole(functools.partial(_remove, self.run))

    async def _whole(self, work: Callable[[], _T]) -> _T:
        """Do what blocks in a thread, all of it, also for one who is cancelled already."""
        with anyio.CancelScope(shield=True):
            done = await anyio.to_thread.run_sync(work, limiter=self._limiter)
        return done  # noqa: RET504 - to mypy a scope may swallow what is raised


def bundled_program() -> Path | None:
    """Return the program that the SDK brings along; None where its distribution has none."""
    spec = find_spec("claude_agent_sdk")
    places = (spec.submodule_search_locations if spec else None) or ()
    found = (Path(place) / "_bundled" / "claude" for place in places)
    return next((path for path in found if os.access(path, os.X_OK)), None)


def _directory(path: Path) -> Path:
    """Make the directory, for this user alone, if it is not there; a link is none."""
    path.mkdir(mode=0o700, exist_ok=True)
    if path.is_symlink():
        msg = f"{path} is a link, and must be a directory of its own"
        raise NotADirectoryError(msg)
    path.chmod(0o700)
    return path


def _remove(run: Path) -> None:
    """Remove the directory, also where tools made parts of it read-only."""
    shutil.rmtree(run, ignore_errors=True)
    if run.exists():
        for folder, inner, _ in os.walk(run):
            for name in inner:
                path = Path(folder, name)
                if not path.is_symlink():
                    path.chmod(0o700)
        shutil.rmtree(run, ignore_errors=True)
