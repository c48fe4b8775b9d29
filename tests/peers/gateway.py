"""``dragoman run`` as a process of its own, over a manifest that a test writes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import attrs

DRAGOMAN = Path(sys.executable).parent / "dragoman"


@attrs.define(eq=False)
class Gateway:
    """A gateway in ``folder``: started by entering, ended by SIGTERM on leaving."""

    folder: Path
    manifest: str
    environment: Mapping[str, str] = attrs.field(factory=dict)
    _process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> str:
        """What the gateway has said so far, over all its lives."""
        path = self.folder / "gateway.log"
        return path.read_text(errors="replace") if path.exists() else ""

    @property
    def pid(self) -> int:
        """The process id of the present life."""
        assert self._process
        return self._process.pid

    def start(self) -> None:
        """Begin a life of the process."""
        self.folder.mkdir(exist_ok=True)
        (self.folder / "home").mkdir(exist_ok=True)
        (self.folder / "dragoman.toml").write_text(self.manifest)
        with (self.folder / "gateway.log").open("ab") as log:
            self._process = subprocess.Popen(
                [DRAGOMAN, "run", "-m", self.folder / "dragoman.toml"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env={
                    "PATH": os.environ["PATH"],
                    "HOME": str(self.folder / "home"),
                    **self.environment,
                },
            )

    def kill(self) -> None:
        """End the process as a power cut would."""
        assert self._process
        self._process.send_signal(signal.SIGKILL)
        self._process.wait(60)
        self._process = None

    def stop(self, limit: float = 60.0) -> int:
        """Ask for an orderly end; return the exit code."""
        assert self._process
        self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(limit)
        finally:
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait(60)
            self._process = None

    def wait(self, limit: float = 60.0) -> int:
        """Wait for the process to end by itself; return the exit code."""
        assert self._process
        code = self._process.wait(limit)
        self._process = None
        return code

    def until_logged(self, text: str, limit: float = 60.0) -> None:
        """Wait until the log contains a text."""
        deadline = time.monotonic() + limit
        while text not in self.log:
            if time.monotonic() > deadline or (self._process and self._process.poll() is not None):
                raise TimeoutError(f"{text!r} is not in the log:\n{self.log}")
            time.sleep(0.02)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process:
            self.stop()
        if error:
            print(f"--- gateway ---\n{self.log}")
