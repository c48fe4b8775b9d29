"""Channels and threads as far as they are known, and where our addresses lie among them.

What is said in a thread names the thread alone; the channel around it is looked up here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

import attrs

from dragoman import Address, Forbidden, Gone, Place
from dragoman_discord.fields import Json, as_id, as_int, as_list, as_map, as_text, one_line

THREADS: Final = frozenset({10, 11, 12})
FORUMS: Final = frozenset({15, 16})
DIRECT: Final = 1
"""Between the bot and one person; the group messages of several people (3) are a group."""
KINDS: Final = frozenset({*range(6), *range(10, 17)})
"""What Discord has told of so far; anything else counts as a group."""
TALK: Final = frozenset({0, 5})
"""Text and announcement channels: a thread can begin at each of their messages."""
CATEGORY: Final = 4
KEPT: Final = 20_000
"""How many channels are remembered; what was forgotten is asked for again."""


@attrs.frozen
class Channel:
    """A channel, thread or category. ``parent`` of a thread is its channel, of a channel its
    category; ``owner`` is who began a thread; ``last`` is the id of its last message."""

    id: str
    kind: int = 0
    guild: str = ""
    parent: str = ""
    owner: str = ""
    name: str = attrs.field(default="", repr=False)
    last: str = ""

    @property
    def is_thread(self) -> bool:
        """Whether it lies in another channel."""
        return self.kind in THREADS and bool(self.parent)


def read_channel(data: Json, guild: str = "") -> Channel | None:
    """Read a channel of the API; ``guild`` is for those that do not name theirs."""
    identity, kind = as_id(data.get("id")), as_int(data.get("type"))
    if not identity or kind is None:
        return None
    return Channel(
        identity,
        kind,
        as_id(data.get("guild_id")) or guild,
        as_id(data.get("parent_id")),
        as_id(data.get("owner_id")),
        one_line(as_text(data.get("name")), 100),
        as_id(data.get("last_message_id")),
    )


@attrs.define(eq=False)
class Places:
    """The channels of one bot. ``fetch`` asks the API for one."""

    _platform: str
    _fetch: Callable[[str], Awaitable[Any]]
    _rows: dict[str, Channel] = attrs.field(factory=dict)

    def learn(self, name: str, data: Json) -> None:
        """Take note of what an event says of channels."""
        if name in {"GUILD_CREATE", "THREAD_LIST_SYNC"}:
            guild = as_id(data.get("id")) or as_id(data.get("guild_id"))
            for each in (*as_list(data.get("channels")), *as_list(data.get("threads"))):
                self.add(read_channel(as_map(each), guild))
        elif name in {"CHANNEL_CREATE", "CHANNEL_UPDATE", "THREAD_CREATE", "THREAD_UPDATE"}:
            self.add(read_channel(data))

    def forget(self, identity: str) -> Channel | None:
        """Drop a channel that is gone, and return what was known of it."""
        return self._rows.pop(identity, None)

    def add(self, channel: Channel | None) -> None:
        """Remember a channel."""
        if channel is None:
            return
        self._rows.pop(channel.id, None)
        self._rows[channel.id] = channel
        if len(self._rows) > KEPT:
            del self._rows[next(iter(self._rows))]

    def get(self, identity: str) -> Channel | None:
        """Return what is known of a channel."""
        return self._rows.get(identity)

    async def settle(self, identity: str, guild: str) -> Channel:
        """Return a channel, and see to it that what lies around it is known as well.

        What the API does not show counts as a plain channel. Raises what a call raises.
        """
        channel = await self._known(identity, guild)
        for _ in range(2):  # a thread's channel, and its category
            if not channel.parent or channel.kind == CATEGORY:
                break
            channel = await self._known(channel.parent, guild)
        return self._rows.get(identity) or channel

    async def _known(self, identity: str, guild: str) -> Channel:
        found = self._rows.get(identity)
        if found is None:
            try:
                found = read_channel(as_map(await self._fetch(identity)), guild)
            except (Forbidden, Gone):
                found = None
            found = found or Channel(identity, 0 if guild else 1, guild)
            self.add(found)
        return found

    def address(self, channel: Channel) -> Address:
        """Return where a channel or thread is."""
        if channel.kind == DIRECT:
            return Address(self._platform, channel.id)
        thread = channel.id if channel.is_thread else ""
        return Address(
            self._platform,
            channel.parent if thread else channel.id,
            thread,
            channel.guild,
            Place.GROUP,
        )

    def within(self, channel: Channel) -> tuple[str, ...]:
        """Return the category that a channel, or the channel of a thread, lies in."""
        around = self._rows.get(channel.parent) if channel.is_thread else channel
        return (around.parent,) if around is not None and around.parent else ()
