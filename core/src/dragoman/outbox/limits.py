"""When a platform may be called again: what a channel bears, and what the platform asked for."""

from __future__ import annotations

import enum
from collections import deque
from typing import Final, Literal, TypeAlias

import attrs

from dragoman.capabilities import Capabilities, Rate
from dragoman.clock import Clock
from dragoman.messages import Address, Lane, Place

SHORTEST: Final = 0.25
"""Seconds that a closed scope stays closed at least: "again in no time" would be a hot loop."""
MARGIN: Final = 0.25
"""Seconds by which a call may reach its platform sooner than an earlier one did: there the calls
are counted as they arrive."""
LATE: Final = 1.0
"""How long a place among those that wait outlives the moment for which it was given, seconds."""
COSMETIC_SECONDS: Final = 1.0
"""Seconds between two cosmetic calls in a channel: the first one's refusal saves the others."""

Scope: TypeAlias = Literal["instance", "channel", "method"]


class Priority(enum.Enum):
    """What goes first where calls are scarce, as the share of a channel's rate that it may use."""

    FINAL = 1.0
    """What a turn owes."""
    NOTICE = 0.9
    """Answers to commands, and what the gateway itself has to say."""
    PREVIEW = 0.75
    """An answer that is not whole yet."""
    COSMETIC = 0.5
    """Neither a send nor an edit, and so not counted: it only finds out whether there is room."""


@attrs.define(eq=False)
class _Window:
    """The latest calls in one channel, and who waits there: until when, by lane and share.

    Whoever waits keeps its place from the first refusal to the call, if it asks again in time.
    """

    rate: Rate
    calls: deque[float]
    waiting: dict[tuple[Lane, float], float] = attrs.field(factory=dict)

    def wait(self, lane: Lane, share: float, now: float) -> float:
        """Return the seconds until a lane may call: after whoever has a better share or place."""
        self._forget_late(now)
        ahead, before = 0, True
        for place in self.waiting:
            before = before and place != (lane, share)
            ahead += place[1] > share or (before and place[1] == share)
        room = max(1, int(self.rate.calls * share))
        wait = self._opens(room, self.rate.seconds + MARGIN, ahead, now)
        if share == Priority.PREVIEW.value:  # spread, so that no burst is followed by a long pause
            wait = max(wait, self._opens(max(1, room // 3), self.rate.seconds / 3, ahead, now))
        return wait

    def _opens(self, room: int, seconds: float, ahead: int, now: float) -> float:
        """Return the seconds until a window with so much room has some for who comes after others.

        Whoever is more than a window away is told less than that, and asks again.
        """
        full, ahead = divmod(ahead, room)
        free = room - ahead
        opens = self.calls[-free] + seconds - now if len(self.calls) >= free else 0.0
        return max(0.0, opens) + (seconds if full else 0.0)

    def idle(self, now: float) -> bool:
        """Whether forgetting the window changes nothing any more."""
        self._forget_late(now)
        counts = self.calls and self.calls[-1] + self.rate.seconds + MARGIN > now
        return not (counts or self.waiting)

    def _forget_late(self, now: float) -> None:
        self.waiting = {k: until for k, until in self.waiting.items() if until + LATE > now}


@attrs.define(eq=False)
class Limits:
    """The limits of one platform instance: instance over channel over method.

    A scope that was closed and is open again is forgotten, and so is a channel whose latest calls
    do not count any more: the maps are bounded by what is limited right now.
    """

    _clock: Clock
    _can: Capabilities
    _until: dict[tuple[str, ...], float] = attrs.field(factory=dict)
    _windows: dict[tuple[str, str], _Window] = attrs.field(factory=dict)
    """The one that was used last is the last."""

    def close(self, address: Address, method: str, scope: Scope, seconds: float) -> None:
        """Obey "not before": calls that the scope covers wait for ``seconds``."""
        self._forget_open()
        key = _scopes(address, method)[("instance", "channel", "method").index(scope)]
        until = self._clock.boot() + max(seconds, SHORTEST)
        self._until[key] = max(until, self._until.get(key, until))

    def wait(self, address: Address, method: str, priority: Priority = Priority.FINAL) -> float:
        """Return the seconds until a call may be made; zero when it may be made now."""
        window = self._windows.get(_channel(address))
        room = window.wait(address.lane, priority.value, self._clock.boot()) if window else 0.0
        return max(room, self.closed(address, method))

    def closed(self, address: Address, method: str) -> float:
        """Return the seconds for which a call is not wanted, however much room there is."""
        if not self._until:
            return 0.0
        now = self._clock.boot()
        return max(0.0, *(self._until.get(key, now) - now for key in _scopes(address, method)))

    def claim(self, address: Address, method: str, priority: Priority = Priority.FINAL) -> float:
        """Count a call that begins now, and return zero; or return the seconds to wait first.

        Nothing but the ledger comes between the answer and the call. Whoever has to wait asks again
        then, and keeps its place before those of its priority that come later.
        """
        wait = self.wait(address, method, priority)
        if priority is Priority.COSMETIC:
            if not wait:
                self.close(address, method, "method", COSMETIC_SECONDS)
        elif rate := self._rate(address):
            self._note(address, rate, priority.value, wait)
        return wait

    def _note(self, address: Address, rate: Rate, share: float, wait: float) -> None:
        now = self._clock.boot()
        key = _channel(address)
        window = self._windows.pop(key, None) or _Window(rate, deque(maxlen=rate.calls))
        while self._windows and (oldest := next(iter(self._windows.items())))[1].idle(now):
            del self._windows[oldest[0]]
        self._windows[key] = window
        if wait:
            window.waiting[address.lane, share] = now + wait
        else:
            window.waiting.pop((address.lane, share), None)
            window.calls.append(now)

    def _rate(self, address: Address) -> Rate | None:
        group_rate = None if address.place is Place.DM else self._can.group_rate
        return group_rate or self._can.rate

    def _forget_open(self) -> None:
        now = self._clock.boot()
        self._until = {key: until for key, until in self._until.items() if until > now}


def _channel(address: Address) -> tuple[str, str]:
    return (address.workspace, address.channel)


def _scopes(address: Address, method: str) -> tuple[tuple[str, ...], ...]:
    channel = _channel(address)
    return ((), channel, (*channel, method))
