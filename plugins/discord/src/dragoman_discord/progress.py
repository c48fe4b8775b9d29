"""How far the bot has got, kept in its records: the session, and each channel's last message."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any, Final

import anyio
import attrs

from dragoman import Clock, ComponentRecords, StoreError
from dragoman_discord.fields import as_id, as_int, as_list, as_map, as_text
from dragoman_discord.gateway import Session

CHANNELS: Final = 200
"""How many channels are kept: those in which something was said last."""
PACE: Final = 1.0
"""Seconds between two writes; what a crash loses of them comes again, and is known by its id."""
LAST_WRITE: Final = 2.0
"""Seconds that the write at the end may take."""
_KEY: Final = "progress"


@attrs.frozen
class Seen:
    """The last message of a channel that was taken; ``guild`` is empty for direct messages."""

    guild: str
    last: str


@attrs.define(eq=False)
class Progress:
    """What the next connection needs, in this process or in the next one.

    ``behind`` are the servers (``""``: direct messages) whose messages are still to be read, since
    the session that would have told them is lost.
    """

    _records: ComponentRecords
    _clock: Clock
    _intents: int
    session: Session | None = None
    channels: dict[str, Seen] = attrs.field(factory=dict)
    behind: set[str] = attrs.field(factory=set)
    _changed: anyio.Event = attrs.field(factory=anyio.Event)
    _loaded: bool = False
    _kept: str = attrs.field(default="", repr=False)

    async def load(self) -> None:
        """Read what was kept, once."""
        if self._loaded:
            return
        self._kept = await self._records.get(_KEY) or "{}"
        kept = as_map(json.loads(self._kept))
        session = as_map(kept.get("session"))
        seq = as_int(session.get("seq"))
        if seq is not None and as_int(kept.get("intents")) == self._intents:
            self.session = Session(as_text(session.get("id")), as_text(session.get("url")), seq)
        for identity, row in as_map(kept.get("channels")).items():
            guild, last = (*map(as_text, as_list(row)), "", "")[:2]
            if as_id(last):
                self.channels[identity] = Seen(guild, last)
        self.behind = {as_text(guild) for guild in as_list(kept.get("behind"))}
        self._loaded = True

    def advance(self, session: Session | None) -> None:
        """Take note of how far the session is."""
        if session != self.session:
            self.session = session
            self._changed.set()

    def begin(self) -> None:
        """Say that a new session has begun: what was said before it is still to be read."""
        self.behind |= {seen.guild for seen in self.channels.values()}
        self._changed.set()

    def seen(self, channel: str, guild: str, message: str) -> None:
        """Take note of a message that is durable now."""
        known = self.channels.pop(channel, None)
        last = max(message, known.last, key=int) if known else message
        self.channels[channel] = Seen(guild, last)
        while len(self.channels) > CHANNELS:
            del self.channels[next(iter(self.channels))]
        self._changed.set()

    def caught_up(self, guild: str) -> None:
        """Say that a server's messages were read."""
        self.behind.discard(guild)
        self._changed.set()

    def forget(self, channel: str) -> None:
        """Drop a channel that is gone."""
        self.channels.pop(channel, None)

    async def keep(self) -> None:
        """Write what changes, until cancelled; then once more."""
        try:
            while True:
                await self._changed.wait()
                self._changed = anyio.Event()
                await self._save()
                await self._clock.sleep(PACE)
        finally:
            with (
                anyio.CancelScope(shield=True),
                self._clock.move_on_after(LAST_WRITE),
                suppress(StoreError),  # what is not kept comes again
            ):
                await self._save()

    async def _save(self) -> None:
        text = json.dumps(self._state())
        if text != self._kept:
            await self._records.put(_KEY, text)
            self._kept = text

    def _state(self) -> dict[str, Any]:
        session = self.session
        return {
            "intents": self._intents,
            "session": session and {"id": session.id, "url": session.url, "seq": session.seq},
            "channels": {name: [seen.guild, seen.last] for name, seen in self.channels.items()},
            "behind": sorted(self.behind),
        }
