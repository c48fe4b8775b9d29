"""P1: what the bot may do where."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

BITS: Final[Mapping[str, int]] = {
    "MANAGE_CHANNELS": 1 << 4,
    "ADD_REACTIONS": 1 << 6,
    "VIEW_CHANNEL": 1 << 10,
    "SEND_MESSAGES": 1 << 11,
    "MANAGE_MESSAGES": 1 << 13,
    "EMBED_LINKS": 1 << 14,
    "ATTACH_FILES": 1 << 15,
    "READ_MESSAGE_HISTORY": 1 << 16,
    "MENTION_EVERYONE": 1 << 17,
    "USE_EXTERNAL_EMOJIS": 1 << 18,
    "USE_APPLICATION_COMMANDS": 1 << 31,
    "MANAGE_THREADS": 1 << 34,
    "CREATE_PUBLIC_THREADS": 1 << 35,
    "CREATE_PRIVATE_THREADS": 1 << 36,
    "SEND_MESSAGES_IN_THREADS": 1 << 38,
    "SEND_POLLS": 1 << 49,
}
_MANAGING: Final = ("MANAGE_CHANNELS", "MANAGE_MESSAGES", "MENTION_EVERYONE", "MANAGE_THREADS")


def bits(names: Iterable[str]) -> int:
    """Return the sum of some permissions."""
    found = 0
    for name in names:
        found |= BITS[name]
    return found


EVERYBODY: Final = bits(name for name in BITS if name not in _MANAGING)
"""What a bot may that was invited without any right to manage."""
