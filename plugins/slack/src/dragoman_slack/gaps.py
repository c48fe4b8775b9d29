"""What was said while nothing was heard: read from the history, as far as Slack allows.

Slack sends an event again for some minutes. After a longer silence the places where somebody spoke
lately are read from their last known message on; what is known already is taken once all the same.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from typing import Any, Final

import anyio
import attrs

from dragoman import Host, Inbound, Kind, PlatformError, StoreError
from dragoman_slack.api import WebApi
from dragoman_slack.fields import Json, as_list, as_map, as_text
from dragoman_slack.translate import Reader, said

PLACES: Final = 200
"""Channels and threads of which the last message is remembered."""
SILENCE: Final = 60.0
"""Seconds without a connection from which on the history is read."""
NOTED: Final = 30.0
"""How often what is remembered is written down, seconds."""
PAGES: Final = 3
PAGE: Final = 200
_LAST: Final = "last:"
_HEARD: Final = "heard"


@attrs.frozen
class Place:
    """A channel, or a thread in it."""

    channel: str
    thread: str = ""

    @property
    def key(self) -> str:
        """The name of what is remembered of it."""
        return f"{_LAST}{self.channel}:{self.thread}"

    @classmethod
    def of(cls, key: str) -> Place:
        """Return the place that a name stands for."""
        return cls(*key.removeprefix(_LAST).partition(":")[::2])


@attrs.define(eq=False)
class Gaps:
    """Remembers where somebody spoke last, and when anything was heard at all."""

    _host: Host
    _api: WebApi
    _last: dict[Place, str] = attrs.field(factory=dict)
    _unwritten: set[Place] = attrs.field(factory=set)
    _loaded: bool = False

    def note(self, event: Inbound) -> None:
        """Remember a message that was handed over."""
        if event.kind is not Kind.MESSAGE or not event.message_id:
            return
        ts, channel, thread = event.message_id, event.address.channel, event.address.thread
        places = [Place(channel, thread)] if thread else []
        if thread in {"", ts}:  # it is in the channel itself, and perhaps opened a thread
            places.append(Place(channel))
        for place in places:
            self._last[place] = max(ts, self._last.pop(place, ""))
            self._unwritten.add(place)

    async def keep(self) -> None:
        """Write down what is remembered, again and again, and at the end."""
        try:
            while True:
                await self._host.clock.sleep(NOTED)
                await self.write()
        finally:
            with anyio.CancelScope(shield=True), anyio.move_on_after(1.0), suppress(StoreError):
                await self.write()

    async def write(self) -> None:
        """Write down what is new, and that something could be heard until now."""
        records = self._host.records
        while len(self._last) > PLACES:
            oldest = next(iter(self._last))
            del self._last[oldest]
            self._unwritten.discard(oldest)
            await records.delete(oldest.key)
        for place in list(self._unwritten):
            self._unwritten.discard(place)
            await records.put(place.key, self._last[place])
        await records.put(_HEARD, f"{self._host.clock.now().timestamp():.3f}")

    async def close(self, deliver: Callable[[Inbound], Awaitable[None]], reader: Reader) -> None:
        """Read what was said since anything was heard, if that is long ago."""
        await self._load()
        heard = float(await self._host.records.get(_HEARD) or 0)
        now = self._host.clock.now().timestamp()
        if not heard or now - heard < SILENCE:
            return
        missed = list(self._last.items())
        for number, (place, last) in enumerate(missed):
            try:
                for event in await self._said(place, last, reader):
                    await deliver(event)
                    self.note(event)
            except PlatformError as error:
                self._tell(len(missed) - number, heard, now, error)
                return
            self._host.alive()

    async def _load(self) -> None:
        if not self._loaded:
            kept = await self._host.records.scan(_LAST)
            known = {Place.of(key): ts for key, ts in sorted(kept, key=lambda one: one[1])}
            self._last = known | self._last
            self._loaded = True

    async def _said(self, place: Place, last: str, reader: Reader) -> list[Inbound]:
        """Return what was said in a place after a message, in order."""
        found: list[Json] = []
        async with aclosing(self._pages(place, last)) as pages:
            async for page in pages:
                found += page
        found.sort(key=lambda one: as_text(one.get("ts")))
        return list(_events(found, place, last, reader))

    async def _pages(self, place: Place, last: str) -> AsyncGenerator[list[Json]]:
        params: dict[str, Any] = {"channel": place.channel, "oldest": last, "limit": PAGE}
        method = "conversations.history"
        if place.thread:
            method = "conversations.replies"
            params["ts"] = place.thread
        for _ in range(PAGES):
            answer = await self._api.call(method, **params)
            yield list(map(as_map, as_list(answer.get("messages"))))
            cursor = as_text(as_map(answer.get("response_metadata")).get("next_cursor"))
            if not cursor:
                return
            params["cursor"] = cursor

    def _tell(self, places: int, since: float, until: float, error: PlatformError) -> None:
        begin, end = (datetime.fromtimestamp(at, UTC) for at in (since, until))
        self._host.log.warning(
            "what was said in %d places from %s to %s may be missing: %s",
            places,
            begin.isoformat(timespec="seconds"),
            end.isoformat(timespec="seconds"),
            error,
        )


def _events(messages: list[Json], place: Place, last: str, reader: Reader) -> Iterator[Inbound]:
    for one in messages:
        if as_text(one.get("ts")) <= last or reader.me.wrote(one):
            continue
        if as_text(one.get("subtype")) in {"", "file_share", "me_message", "thread_broadcast"}:
            event = said(one, place.channel, reader)
            if event is not None:
                yield event
