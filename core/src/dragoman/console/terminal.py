"""A terminal: lines in with editing and history, text out."""

from __future__ import annotations

import contextlib
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import anyio
import anyio.from_thread
import anyio.lowlevel
import attrs


class Terminal(Protocol):
    """What the console talks to."""

    async def line(self) -> str | None:
        """Ask for a line; ``None`` at the end of input."""
        ...

    def write(self, text: str) -> None:
        """Show text at once."""
        ...


@attrs.define(eq=False)
class StdTerminal:
    """Standard input and output of this process.

    Lines are read in a daemon thread: nothing else can be interrupted while it waits for a key.
    """

    _prompt: str
    _history: Path | None
    _interactive: bool = attrs.field(init=False, default=False)
    _saved: Any = attrs.field(init=False, default=None)

    def __enter__(self) -> Self:
        self._interactive = sys.stdin.isatty()
        if self._interactive:
            self._saved = _terminal_mode()
            self._load_history()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._interactive:
            self._save_history()
            # A line may still be being read: give the shell its own mode back.
            _restore_mode(self._saved)

    async def line(self) -> str | None:
        """Read a line without holding the event loop."""
        answers: list[str | None] = []
        ready = anyio.Event()
        token = anyio.lowlevel.current_token()

        def read() -> None:
            answers.append(self._read())
            # The application may have gone while the person was typing.
            with contextlib.suppress(RuntimeError):
                anyio.from_thread.run_sync(ready.set, token=token)

        threading.Thread(target=read, name="console input", daemon=True).start()
        await ready.wait()
        return answers[0]

    def write(self, text: str) -> None:
        """Write and flush."""
        sys.stdout.write(text)
        sys.stdout.flush()

    def _read(self) -> str | None:
        if not self._interactive:
            line = sys.stdin.readline()
            return line.rstrip("\n") if line else None
        try:
            return input(self._prompt)
        except EOFError:
            return None

    def _load_history(self) -> None:
        with contextlib.suppress(ImportError, OSError):
            import readline

            readline.set_history_length(1000)
            if self._history and self._history.exists():
                readline.read_history_file(self._history)

    def _save_history(self) -> None:
        with contextlib.suppress(ImportError, OSError):
            import readline

            if self._history:
                self._history.touch(mode=0o600)
                readline.write_history_file(self._history)


def _terminal_mode() -> Any:
    with contextlib.suppress(ImportError, OSError, ValueError):
        import termios

        return termios.tcgetattr(sys.stdin)
    return None


def _restore_mode(saved: Any) -> None:
    if saved is None:
        return
    with contextlib.suppress(ImportError, OSError, ValueError):
        import termios

        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, saved)
