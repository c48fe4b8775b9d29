"""Runs a peer as a process of its own, on a free port of the loopback interface."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

PEERS = Path(__file__).resolve().parents[2] / ".venv-peers"


def free_port() -> int:
    """Return a port that nobody else is given within the next minute.

    The listening side closes its one connection first. The kernel remembers that for a while, in
    which it hands the port out to no other test; a server that asks for it by number gets it, with
    SO_REUSEADDR, as servers do.
    """
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client:
            probe.accept()[0].close()
            client.recv(1)
        return port


def request(url: str, body: object = None, *, method: str | None = None) -> Any:
    """Call a peer's control interface and return the decoded answer."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"content-type": "application/json"}
    call = urllib.request.Request(url, data=data, headers=headers, method=method)
    with urllib.request.urlopen(call, timeout=60) as answer:
        text = answer.read()
    return json.loads(text) if text else None


class PeerProcess:
    """A server process: started with `start`, ended with `stop` by its own process id."""

    def __init__(self, name: str, log: Path, environment: Mapping[str, str] = {}) -> None:
        self.name = name
        self.port = 0
        self._log = log
        self._more = environment
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def root(self) -> str:
        """The server's URL, without a path."""
        return f"http://127.0.0.1:{self.port}"

    def start(self, command: Callable[[int], Sequence[str]], health: str) -> None:
        """Start ``command(port)`` and wait until ``health`` answers; another port if one is lost."""
        for attempt in range(3):
            self.port = free_port()
            with self._log.open("ab") as log:
                self._process = subprocess.Popen(
                    command(self.port),
                    stdout=log,
                    stderr=log,
                    env={**_environment(self._log.parent), **self._more},
                )
            if self._healthy(self.root + health):
                return
            self.stop()
            if attempt == 2:
                msg = f"{self.name} did not start:\n{self.log()}"
                raise RuntimeError(msg)

    def stop(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def log(self) -> str:
        """Return what the process has printed."""
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def _healthy(self, url: str, limit: float = 60.0) -> bool:
        assert self._process is not None
        deadline = time.monotonic() + limit
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                with urllib.request.urlopen(url, timeout=1):
                    return True
            except (urllib.error.URLError, OSError):
                time.sleep(0.05)
        return False


def _environment(home: Path) -> dict[str, str]:
    """A bare environment: no proxy, no key, no home of a person."""
    return {"PATH": os.defpath, "HOME": str(home), "NO_PROXY": "*", "LANG": "C.UTF-8"}
