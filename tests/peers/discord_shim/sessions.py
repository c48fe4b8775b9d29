"""A gateway session: its events in order, what its intents let through, and what is sent again."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

GUILD_MEMBERS, PRESENCES = 1 << 1, 1 << 8
MESSAGE_CONTENT: Final = 1 << 15
_KEPT: Final = 2000
_INTENTS: Final[tuple[tuple[str, int, int], ...]] = (
    ("MESSAGE_REACTION_", 1 << 10, 1 << 13),
    ("MESSAGE_", 1 << 9, 1 << 12),
    ("TYPING_START", 1 << 11, 1 << 14),
    ("PRESENCE_UPDATE", PRESENCES, PRESENCES),
    ("GUILD_MEMBER", GUILD_MEMBERS, GUILD_MEMBERS),
    ("GUILD_AUDIT_LOG", 1 << 2, 1 << 2),
    ("INTEGRATION_", 1 << 4, 1 << 4),
    ("GUILD_INTEGRATIONS", 1 << 4, 1 << 4),
    ("INVITE_", 1 << 6, 1 << 6),
    ("CHANNEL_", 1 << 0, 1 << 12),
    ("THREAD_", 1 << 0, 1 << 0),
    ("GUILD_", 1 << 0, 1 << 0),
)
"""Event names by their beginning, the intent they need in a guild, and that elsewhere."""
_HIDDEN: Final = {"content": "", "embeds": [], "attachments": [], "components": []}


def _needed(name: str, data: Mapping[str, Any]) -> int:
    for beginning, guild, elsewhere in _INTENTS:
        if name.startswith(beginning):
            return guild if data.get("guild_id") or name.startswith("GUILD_") else elsewhere
    return 0


@attrs.define(eq=False)
class Session:
    """What one IDENTIFY began; it outlives its connections."""

    token: str
    intents: int
    id: str = attrs.field(factory=lambda: secrets.token_hex(16))
    user: str = ""
    seq: int = 0
    alive: bool = True
    _forgotten: int = 0
    _events: list[dict[str, Any]] = attrs.field(factory=list)
    _more: asyncio.Event = attrs.field(factory=asyncio.Event)

    def add(self, name: str, data: Any) -> None:
        """Take in an event, if this session's intents let it through."""
        if name == "READY":
            self.user = data["user"]["id"]
        needed = _needed(name, data)
        if needed and not self.intents & needed:
            return
        if name in {"MESSAGE_CREATE", "MESSAGE_UPDATE"} and self._hides(data):
            data = {**data, **_HIDDEN}
        self.seq += 1
        self._events.append({"op": 0, "t": name, "s": self.seq, "d": data})
        if len(self._events) > _KEPT:
            self._forgotten = self._events.pop(0)["s"]
        self._more.set()

    def resume(self, seq: int) -> bool:
        """Whether everything after ``seq`` is still here; a RESUMED is then put behind it."""
        if not self._forgotten <= seq <= self.seq:
            return False
        self._events = [event for event in self._events if event["t"] != "RESUMED"]
        self.add("RESUMED", {"_trace": []})
        return True

    def after(self, seq: int) -> Iterator[dict[str, Any]]:
        """Return the events behind a sequence number, oldest first."""
        return (event for event in list(self._events) if event["s"] > seq)

    async def wait(self, seq: int) -> None:
        """Wait until there is an event behind ``seq``."""
        while self.seq <= seq:
            self._more.clear()
            await self._more.wait()

    def _hides(self, message: Mapping[str, Any]) -> bool:
        """Whether the intent for content is missing, and no exception lets it be seen."""
        if self.intents & MESSAGE_CONTENT or not message.get("guild_id"):
            return False
        own = message.get("author", {}).get("id") == self.user
        return not own and all(user["id"] != self.user for user in message.get("mentions", []))
