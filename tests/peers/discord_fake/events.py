"""Which events a session is sent, and what it may read of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from peers.discord_fake.errors import Json

GUILDS, MEMBERS, PRESENCES, CONTENT = 1 << 0, 1 << 1, 1 << 8, 1 << 15
KNOWN: Final = (1 << 17) - 1 | 1 << 20 | 1 << 21 | 1 << 24 | 1 << 25
"""W5: every intent that there is."""
PRIVILEGED: Final[Mapping[str, int]] = {
    "members": MEMBERS,
    "presences": PRESENCES,
    "message_content": CONTENT,
}
FLAGS: Final[Mapping[str, int]] = {
    "presences": 1 << 13,
    "members": 1 << 15,
    "message_content": 1 << 19,
}
"""The application's flags, of an application in few guilds, for each privileged intent."""

_MESSAGES: Final = (1 << 9, 1 << 12)
_REACTIONS: Final = (1 << 10, 1 << 13)
_NEEDED: Final[Mapping[str, tuple[int, int]]] = {
    "MESSAGE_CREATE": _MESSAGES,
    "MESSAGE_UPDATE": _MESSAGES,
    "MESSAGE_DELETE": _MESSAGES,
    "MESSAGE_DELETE_BULK": (1 << 9, 0),
    "MESSAGE_REACTION_ADD": _REACTIONS,
    "MESSAGE_REACTION_REMOVE": _REACTIONS,
    "MESSAGE_REACTION_REMOVE_ALL": _REACTIONS,
    "TYPING_START": (1 << 11, 1 << 14),
    "GUILD_MEMBER_ADD": (MEMBERS, 0),
    "GUILD_MEMBER_REMOVE": (MEMBERS, 0),
    "GUILD_CREATE": (GUILDS, 0),
    "GUILD_UPDATE": (GUILDS, 0),
    "GUILD_DELETE": (GUILDS, 0),
    "CHANNEL_CREATE": (GUILDS, 0),
    "CHANNEL_UPDATE": (GUILDS, 0),
    "CHANNEL_DELETE": (GUILDS, 0),
    "THREAD_CREATE": (GUILDS, 0),
    "THREAD_UPDATE": (GUILDS, 0),
    "THREAD_DELETE": (GUILDS, 0),
    "THREAD_MEMBERS_UPDATE": (GUILDS, 0),
    "THREAD_MEMBER_UPDATE": (GUILDS, 0),
}
"""The intents for guilds and for direct conversations; an event that is not here needs none."""


def wanted(event: str, intents: int, *, in_guild: bool) -> bool:
    """W6: return whether a session with these intents is sent an event."""
    needed = _NEEDED.get(event)
    return needed is None or bool(intents & needed[0 if in_guild else 1])


def readable(data: Json, bot: int) -> bool:
    """W7: return whether a message of a guild can be read without the intent for content."""
    named = any(user["id"] == str(bot) for user in data.get("mentions", ()))
    return named or data.get("author", {}).get("id") == str(bot)


def without_content(data: Json, bot: int) -> Json:
    """W7: return a message as one without the intent for content gets it, nested ones too."""
    found = dict(data)
    if not readable(data, bot):
        found |= {"content": "", "embeds": [], "attachments": [], "components": []}
        found.pop("poll", None)
        if "message_snapshots" in data:
            found["message_snapshots"] = [_blank(one) for one in data["message_snapshots"]]
    if data.get("referenced_message"):
        found["referenced_message"] = without_content(data["referenced_message"], bot)
    return found


def _blank(snapshot: Json) -> Json:
    emptied = {"content": "", "embeds": [], "attachments": [], "components": []}
    return {"message": snapshot["message"] | emptied}
