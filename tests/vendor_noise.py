"""What vendors say and lose, and tests let pass: each with the version it was seen in, and why."""

import asyncio
from typing import Any, NamedTuple


class Noise(NamedTuple):
    filter: str
    """As pytest's ``filterwarnings`` takes it."""
    seen_in: str
    reason: str


class LostError(NamedTuple):
    """An error of a vendor's own task that nobody waits for."""

    words: str
    """What its ``str`` has in it."""
    seen_in: str
    reason: str


VENDOR_NOISE: tuple[Noise, ...] = (
    Noise(
        r"ignore:'audioop' is deprecated:DeprecationWarning:discord\.player",
        "discord.py 2.7.1",
        "it reads the module for voice when it is imported; Python 3.13 has a package for it",
    ),
)

VENDOR_LOST_ERRORS: tuple[LostError, ...] = (
    LostError(
        "Failed to connect to server: 'Socket has closed'",
        "hikari 2.7.0",
        "it cancels what reads a connection that is dead, and does not look at how that ended",
    ),
    LostError(
        "ProcessTransport is not ready for writing",
        "claude-agent-sdk 0.2.189",
        "it answers a program that is gone when a tool of that ends, in a task of its own",
    ),
)


def pass_over_lost_errors() -> None:
    """Let the running loop not report the errors that `VENDOR_LOST_ERRORS` lists."""
    loop = asyncio.get_running_loop()
    report = loop.get_exception_handler()

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        said = str(context.get("exception"))
        if report is not None and not any(known.words in said for known in VENDOR_LOST_ERRORS):
            report(loop, context)

    loop.set_exception_handler(handle)
