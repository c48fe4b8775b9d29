"""How much one person, one conversation and one bot may say: beyond it nothing begins."""

from __future__ import annotations

import logging
from collections.abc import Hashable
from typing import Final, TypeAlias

import attrs

from dragoman.clock import Clock
from dragoman.components import CommandCall
from dragoman.flow.people import People
from dragoman.manifest.model import Access, Limits
from dragoman.messages import Address, Inbound, Kind
from dragoman.states import EventState
from dragoman.store.operations import StoredEvent

MINUTE: Final = 60.0
BOT_SECONDS: Final = 600.0

TOO_MANY: Final = "too many messages"
BOT_TOO_MANY: Final = "too many messages of a bot"
TOO_MANY_NOTICE: Final = "That was a lot at once. Please wait a moment, then send it again."

_FREE: Final = frozenset({"stop", "approve", "deny"})
"""Commands that a person in trouble needs."""

_Key: TypeAlias = tuple[Hashable, ...]


@attrs.frozen
class Excess:
    """How an event ends that is too much; without a notice nobody is told."""

    state: EventState
    reason: str
    notice: str = ""


@attrs.define(eq=False)
class Window:
    """What each of many has said within the last ``seconds``; who said nothing is forgotten.

    Times are those of `Clock.boot`. ``most`` 0 is no limit. What has the same mark counts once: an
    event that is decided on again, or a part of the same whole.
    """

    most: int
    seconds: float
    _said: dict[_Key, dict[Hashable, float]] = attrs.field(factory=dict)
    """When each said what, by marks; who spoke last comes last."""

    def full(self, key: _Key, mark: Hashable, now: float) -> bool:
        """Whether there is no room for one more."""
        self._forget(now)
        said = self._said.get(key, {})
        while said and said[oldest := next(iter(said))] <= now - self.seconds:
            del said[oldest]
        return 0 < self.most <= len(said) and mark not in said

    def add(self, key: _Key, mark: Hashable, now: float) -> None:
        """Count one more."""
        if self.most:
            said = self._said.pop(key, {})
            said.setdefault(mark, now)
            self._said[key] = said

    def clear(self, key: _Key) -> None:
        """Begin anew."""
        self._said.pop(key, None)

    def _forget(self, now: float) -> None:
        while self._said:
            key, said = next(iter(self._said.items()))
            if said and next(reversed(said.values())) > now - self.seconds:
                return
            del self._said[key]


@attrs.define(eq=False)
class Throttle:
    """The limits of a deployment. What is counted is kept in memory, and no longer than it counts."""

    _clock: Clock
    _log: logging.Logger
    _people: People
    _access: Access
    _limits: Limits
    _persons: Window = attrs.field(init=False)
    _conversations: Window = attrs.field(init=False)
    _bots: Window = attrs.field(init=False)
    _told: Window = attrs.field(init=False)
    _logged: Window = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._persons = Window(self._limits.person_rate, MINUTE)
        self._conversations = Window(self._limits.conversation_rate, MINUTE)
        self._bots = Window(self._limits.bot_messages, BOT_SECONDS)
        self._told = Window(1, MINUTE)
        self._logged = Window(1, BOT_SECONDS)

    def shuts_out(self, event: Inbound) -> bool:
        """Whether an event is one of a bot that nobody listed, or that decides something.

        What a person says lets the bots of the channel speak again; a stop does not (`excess`).
        """
        if event.sender.bot:
            listed = self._people.identity(event) in self._access.bots
            return not listed or event.kind is Kind.PRESS
        if event.kind is Kind.MESSAGE:
            for bot in self._access.bots:
                self._bots.clear(_by(bot, event.address))
                self._logged.clear(_by(bot, event.address))
        return False

    def excess(self, stored: StoredEvent, call: CommandCall | None) -> Excess | None:
        """Return how a message ends that is beyond a limit; count any other. What stops an agent
        ends its talk with bots as well."""
        event, mark, now = stored.inbound, _mark(stored), self._clock.boot()
        if event.sender.bot:
            return self._of_bot(stored, mark, now)
        if call is not None and call.name in _FREE:
            if call.name == "stop":
                self._hush(event.address, now)
            return None
        person: _Key = (self._people.identity(event),) if event.sender.id else ()
        counted: list[tuple[Window, _Key]] = [(self._conversations, event.address.lane)]
        if person:  # posts of a channel have no author
            counted.append((self._persons, person))
        if any(window.full(key, mark, now) for window, key in counted):
            return self._too_many(stored, person or event.address.lane, mark, now)
        for window, key in counted:
            window.add(key, mark, now)
        return None

    def _hush(self, address: Address, now: float) -> None:
        """Let no bot be answered in a channel until a person says something else there."""
        for bot in self._access.bots:
            for number in range(self._limits.bot_messages):
                self._bots.add(_by(bot, address), f"hushed {number}", now)

    def _too_many(self, stored: StoredEvent, whom: _Key, mark: Hashable, now: float) -> Excess:
        """Tell somebody once in a minute."""
        silent = self._told.full(whom, mark, now)
        if not silent:
            self._told.add(whom, mark, now)
            self._log.info("event %d refused: %s", stored.id, TOO_MANY, extra=_ids(stored))
        return Excess(EventState.REFUSED, TOO_MANY, "" if silent else TOO_MANY_NOTICE)

    def _of_bot(self, stored: StoredEvent, mark: Hashable, now: float) -> Excess | None:
        key = _by(self._people.identity(stored.inbound), stored.inbound.address)
        if not self._bots.full(key, mark, now):
            self._bots.add(key, mark, now)
            return None
        if not self._logged.full(key, mark, now):
            self._logged.add(key, mark, now)
            self._log.warning(
                "event %d: a bot says too much; it is not answered for a while, or until somebody "
                "else speaks there",
                stored.id,
                extra=_ids(stored),
            )
        return Excess(EventState.IGNORED, BOT_TOO_MANY)


def _by(bot: str, address: Address) -> _Key:
    return (bot, *address.lane[:3])


def _mark(stored: StoredEvent) -> Hashable:
    """Return what counts once: an album, whose late members come as events of their own."""
    return stored.inbound.album or stored.id


def _ids(stored: StoredEvent) -> dict[str, str]:
    return {"event": str(stored.id), "platform": stored.inbound.address.platform}
