"""How the process ends: its exit codes, and the ways to end when the orderly one is not enough.

Imported before everything else of ``dragoman run``: it must stay light.
"""

from __future__ import annotations

import _thread
import contextlib
import faulthandler
import os
import signal
import threading
from collections.abc import Callable
from typing import Final, NoReturn

ORDERED: Final = 0
"""Asked to end, and ended in order; also when asked during start-up."""
FAILED: Final = 1
"""An unexpected error; starting again may help."""
NOT_USABLE: Final = 2
"""The manifest, a plugin or the store's version cannot be used: starting again does not help."""
OVERRUN: Final = 70
"""The event loop was held too long, or the orderly end took too long."""
HELD: Final = 75
"""Another process holds the store."""

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
"""What asks for the end. Asked again, the process ends at once with 128 and the number."""

DUMP_SECONDS: Final = 1.0
"""How long a dump may take: whoever reads standard error may have stopped reading."""


def end_quietly_on_signals() -> None:
    """Let a signal end the process at once in order, while there is nothing to put in order yet."""
    for number in SIGNALS:
        signal.signal(number, lambda *_: os._exit(ORDERED))


def end_now(code: int, words: str, *, stacks: bool = True) -> NoReturn:
    """Say why and where every thread is, and end without any clean-up.

    May be called in any thread, and in a signal handler: it takes no lock of anybody and waits for
    standard error only a little. What is durable by now is what the next start goes on from.
    """
    text = f"dragoman: {words}\n".encode() + (_stacks() if stacks else b"")
    written = _thread.allocate_lock()
    written.acquire()

    def write() -> None:
        with contextlib.suppress(OSError):
            rest = text
            while rest:
                rest = rest[os.write(2, rest) :]
        written.release()

    _thread.start_new_thread(write, ())
    written.acquire(timeout=DUMP_SECONDS)
    os._exit(code)


def _stacks() -> bytes:
    """Return files, lines and functions of all threads.

    A dump straight to standard error would hold every thread until it is read; a pipe that never
    blocks cuts it off at its capacity instead.
    """
    reading, writing = os.pipe()
    try:
        os.set_blocking(writing, False)
        faulthandler.dump_traceback(writing)
    finally:
        os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        return pipe.read()


def lingering(wait: float = 0.0) -> list[str]:
    """Return the names of threads that keep the interpreter from ending, each waited for a little.

    ``wait`` is in seconds.
    """
    threads = [thread for thread in threading.enumerate() if not thread.daemon]
    others = [thread for thread in threads if thread is not threading.main_thread()]
    for thread in others:
        thread.join(wait)
    return [thread.name for thread in others if thread.is_alive()]


def end_beside_threads(code: int) -> NoReturn:
    """End although threads go on that are not ours."""
    names = ", ".join(lingering())
    end_now(code, f"all is closed; ended beside threads that go on: {names}", stacks=False)


def end_after(seconds: float, end: Callable[[], object]) -> threading.Timer:
    """Return a started timer that ends the process, unless it is cancelled before."""
    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.name = "end of the process"
    timer.start()
    return timer
