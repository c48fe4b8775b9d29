"""Messages that belong together wait for each other here: albums, and long texts cut by a client.

What waits is *held* in the store, so a crash loses nothing: the next process gathers the same
groups again. Groups never cross a lane, a sender or an album, nor do they join what is passed on
with words of the sender's own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias

import anyio
import attrs
from anyio.abc import TaskGroup

from dragoman.clock import Clock
from dragoman.errors import StoreUnavailable
from dragoman.messages import Inbound, Kind, Lane
from dragoman.store.operations import Merge, StoredEvent
from dragoman.store.protocol import Store

ALBUM_GAP: Final = 1.0
PASTE_GAP: Final = 1.5
LONGEST: Final = 5.0
"""Seconds from a group's first message to its end, however much more may come."""
LARGEST: Final = 100
"""Messages of one group."""
MOST: Final = 1000
"""Groups of one platform: beyond them nothing waits for more. So many are known after their end."""
RETRY: Final = 2.0
FIRST_READ: Final = 30.0
"""How long what an earlier process held waits for the platform to say anything at all, seconds."""

Key: TypeAlias = tuple[Lane, str, str, str]


def waits(event: Inbound) -> bool:
    """Whether an event may be part of something larger."""
    return event.kind is Kind.MESSAGE and bool(event.album or event.continues)


@attrs.define(eq=False)
class Group:
    """What has come of a group so far. ``replayed`` ones were held by an earlier process.

    ``first`` is the message that opened it, marked if it came late, ``last`` the newest.
    """

    opened: float
    due: float
    replayed: bool
    first: Inbound
    last: Inbound
    ids: list[int] = attrs.field(factory=list)
    closing: bool = False
    done: anyio.Event = attrs.field(factory=anyio.Event)


@attrs.define(eq=False)
class Holds:
    """The groups of one platform instance.

    ``decide`` is given each group as one event. ``heard`` tells whether the platform has completed
    any work: until then nothing that an earlier process held is complete.
    """

    _store: Store
    _clock: Clock
    _decide: Callable[[StoredEvent], Awaitable[None]]
    _is_command: Callable[[Inbound], bool]
    _heard: Callable[[], bool]
    _began: float = attrs.field(init=False)
    _groups: dict[Key, Group] = attrs.field(init=False, factory=dict)
    _ended: dict[Key, Inbound] = attrs.field(init=False, factory=dict)
    """The last message of groups that may go on, speaking to the bot if its group did."""

    def __attrs_post_init__(self) -> None:
        self._began = self._clock.now().timestamp()

    async def take(self, event: StoredEvent, tasks: TaskGroup) -> StoredEvent | None:
        """Hold an event if it is part of a group, else return it to be decided on.

        What its sender's earlier groups hold goes first.
        """
        inbound = event.inbound
        place = (inbound.address.lane, inbound.sender.id)
        own = (*place, inbound.album, inbound.forwarded)
        if inbound.kind is not Kind.MESSAGE or self._is_command(inbound):
            # Neither waits for a group, but both have to find where one goes that is on its way.
            whose = place if inbound.sender.id else place[:1]
            for key in [key for key in self._groups if key[: len(whose)] == whose]:
                if self._groups[key].closing:
                    await self._release(key)
            return event
        for key in [key for key in self._groups if key[:2] == place and key != own]:
            await self._release(key)
        group = self._groups.get(own)
        if group and group.closing:
            await group.done.wait()
            group = None
        if group is None:
            event = attrs.evolve(event, inbound=self._marked(own, inbound))
            if not waits(inbound) or len(self._groups) >= MOST:
                return event
            group = self._open(own, event, tasks)
        self._add(group, event)
        if not waits(inbound) or len(group.ids) >= LARGEST:
            await self._release(own)  # a text below the client's limit is the last piece
        return None

    def _marked(self, key: Key, event: Inbound) -> Inbound:
        """Return a message, marked as late if it belongs to a group that has ended."""
        last = self._ended.pop(key, None)
        if last is None:
            return event
        if not event.album and abs((event.sent_at - last.sent_at).total_seconds()) > PASTE_GAP:
            return event  # nobody's client sent it together with the rest
        return attrs.evolve(event, late=True, addressed=event.addressed or last.addressed)

    def _open(self, key: Key, event: StoredEvent, tasks: TaskGroup) -> Group:
        now = self._clock.boot()
        replayed = event.received_at < self._began
        group = Group(now, now, replayed, event.inbound, event.inbound)
        self._groups[key] = group
        tasks.start_soon(self._wait, key, group)
        return group

    def _add(self, group: Group, event: StoredEvent) -> None:
        gap = ALBUM_GAP if event.inbound.album else PASTE_GAP
        group.ids.append(event.id)
        group.last = event.inbound
        group.due = min(self._clock.boot() + gap, group.opened + LONGEST)

    async def _wait(self, key: Key, group: Group) -> None:
        while group.replayed and not self._heard():
            if self._clock.boot() - group.opened > FIRST_READ:
                break
            await self._clock.sleep(PASTE_GAP)
            group.due = self._clock.boot() + PASTE_GAP
        while (rest := group.due - self._clock.boot()) > 0 and not group.closing:
            await self._clock.sleep(rest)
        await self._release(key, group)

    async def _release(self, key: Key, group: Group | None = None) -> None:
        """Decide on a group, once; return when that is done."""
        current = self._groups.get(key)
        if current is None or (group and group is not current):
            return
        if current.closing:
            await current.done.wait()
            return
        current.closing = True
        try:
            if (whole := await self._gathered(current)) is not None:
                await self._decide(whole)
                self._remember(key, current.last, whole.inbound)
        finally:
            del self._groups[key]
            current.done.set()

    def _remember(self, key: Key, last: Inbound, whole: Inbound) -> None:
        """Keep the end of a group, if more may come of it."""
        if waits(last):
            self._ended[key] = attrs.evolve(last, text="", addressed=whole.addressed)
        if len(self._ended) > MOST:
            del self._ended[next(iter(self._ended))]

    async def _gathered(self, group: Group) -> StoredEvent | None:
        """Return a group as one event, however long the store takes."""
        while True:
            try:
                # What a stop has ended meanwhile is not among them any more.
                events = await self._store.read.undecided(group.ids)
                return await self._as_one(group, events) if events else None
            except StoreUnavailable:
                await self._clock.sleep(RETRY)

    async def _as_one(self, group: Group, events: Sequence[StoredEvent]) -> StoredEvent:
        lead, *rest = events
        whole = joined([event.inbound for event in events]) if rest else lead.inbound
        if group.first.late:
            spoken_to = whole.addressed or group.first.addressed
            whole = attrs.evolve(whole, late=True, addressed=spoken_to)
        if rest:
            parts = tuple(event.id for event in rest)
            await self._store.apply(Merge(event_id=lead.id, inbound=whole, parts=parts))
        return attrs.evolve(lead, inbound=whole)


def joined(events: Sequence[Inbound]) -> Inbound:
    """Return several messages as one: an album by message ids, a text in order of receipt.

    One that came twice is in it once.
    """
    first = events[0]
    named = {one.message_id if one.twin else one.native_id: one for one in reversed(events)}
    once = list(named.values())[::-1]
    ordered = sorted(once, key=_message_number) if first.album else once
    texts = [event.text for event in ordered if event.text]
    return attrs.evolve(
        first,
        text="\n".join(texts) if first.album else "".join(texts),
        attachments=tuple(one for event in ordered for one in event.attachments),
        addressed=any(event.addressed for event in events),
        continues=False,
        joined=len(once) > 1,
    )


def _message_number(event: Inbound) -> tuple[int, str]:
    return (int(event.message_id) if event.message_id.isdecimal() else 0, event.message_id)
