"""What vendors say and lose, and tests let pass: each with the version it was seen in, and why."""

from typing import NamedTuple


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
)
