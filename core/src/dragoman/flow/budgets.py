"""What each profile may use in a day: counted as its runtimes tell it, and where it ends.

The counts are kept in memory, since one process runs all turns of a store, and read at its start.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import attrs

from dragoman.clock import Clock
from dragoman.manifest.model import Profile
from dragoman.protocols import TurnInfo
from dragoman.runevents import Cancelled, Failed, Finished, Paused, RunEvent, Usage
from dragoman.store.protocol import Store

SPENT_NOTICE: Final = "What may be used here in a day is used up. It begins anew at midnight, UTC."


@attrs.frozen
class Used:
    """Tokens, in and out, and US dollars, where the provider says them."""

    tokens: int = 0
    cost: float = 0.0

    def __add__(self, other: Used) -> Used:
        return Used(self.tokens + other.tokens, self.cost + other.cost)

    @classmethod
    def of(cls, usage: Iterable[Usage]) -> Used:
        """Return what a turn has used of all models."""
        models = list(usage)
        tokens = sum(one.input_tokens + one.output_tokens for one in models)
        return cls(tokens, sum(one.cost or 0.0 for one in models))


@attrs.define(eq=False)
class Budgets:
    """What the profiles that have a budget have used today, turns that run included."""

    _store: Store
    _clock: Clock
    _profiles: Mapping[str, Profile]
    _day: str = attrs.field(init=False, default="")
    _used: dict[str, Used] = attrs.field(init=False, factory=dict)
    _running: dict[str, tuple[str, Used]] = attrs.field(init=False, factory=dict)
    """Profile and use of each turn that runs."""

    async def load(self) -> None:
        """Take over what earlier processes have used today."""
        if any(profile.budget.limits for profile in self._profiles.values()):
            today = self._today()
            spent = await self._store.read.spent(datetime.fromisoformat(today).timestamp())
            self._used = {name: Used(tokens, cost) for name, tokens, cost in spent}

    def over(self, profile: str) -> bool:
        """Whether a profile has used what it may."""
        known = self._profiles.get(profile)
        if known is None or not known.budget.limits:
            return False
        self._today()
        own = (used for name, used in self._running.values() if name == profile)
        all_ = sum(own, self._used.get(profile, Used()))
        budget = known.budget
        return (budget.tokens is not None and all_.tokens >= budget.tokens) or (
            budget.cost is not None and all_.cost >= budget.cost
        )

    def count(self, info: TurnInfo, event: RunEvent, usage: Sequence[Usage]) -> None:
        """Take note of what a running turn has used so far, where an event says so."""
        if isinstance(event, Usage) and self._profiles[info.profile].budget.limits:
            self._running[info.turn_id] = (info.profile, Used.of(usage))

    def stops(self, info: TurnInfo, event: RunEvent) -> bool:
        """Return whether a turn goes on, by this event, beyond its budget.

        What ends it, and what is told of it, comes through: an answer that is there is not lost.
        """
        told = isinstance(event, Usage | Finished | Paused | Failed | Cancelled)
        return not told and self.over(info.profile)

    def ended(self, info: TurnInfo) -> None:
        """Take note that a turn runs no more."""
        profile, used = self._running.pop(info.turn_id, (info.profile, Used()))
        self._today()
        self._used[profile] = self._used.get(profile, Used()) + used

    def _today(self) -> str:
        """Return the day, in UTC; with a new one all counts begin anew."""
        today = self._clock.now().astimezone(UTC).strftime("%Y-%m-%dT00:00:00+00:00")
        if today != self._day:
            self._day, self._used = today, {}
        return today
