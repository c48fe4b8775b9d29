"""What people chose for a place where they talk: its profile, and the model of a profile there."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import attrs

from dragoman.keys import Scope, ScopeRule
from dragoman.messages import Address, Place
from dragoman.store.operations import DeleteValue, PutValue
from dragoman.store.protocol import Store

COMPONENT: Final = "choices"
PROFILE: Final = "profile"
MODEL: Final = "model"


def place_of(address: Address, scope: ScopeRule) -> Address:
    """Return the place whose choices count for a session of this scope at an address."""
    rule = scope.dm if address.place is Place.DM else scope.group
    return attrs.evolve(address, thread="") if rule is Scope.CHANNEL else address


@attrs.define(eq=False)
class Choices:
    """All that was ever chosen and still counts, in memory: few ever choose.

    A thread without a choice of its own has that of its channel.
    """

    _store: Store
    _names: Callable[[Address], Sequence[str]]
    """All ids of a channel: those that it had before it moved, too."""
    _made: dict[str, str] = attrs.field(factory=dict)

    async def load(self) -> None:
        """Read what earlier processes were told."""
        self._made = dict(await self._store.read.values(COMPONENT, ""))

    def own(self, address: Address, *what: str) -> str | None:
        """Return what was chosen at this very place, or ``None``."""
        found = (self._made.get(key) for key in self._keys(address, *what))
        return next((value for value in found if value is not None), None)

    def of(self, address: Address, *what: str) -> str | None:
        """Return what was chosen at a place or, as it has nothing of its own, for its channel."""
        own = self.own(address, *what)
        return own if own is not None else self.own(attrs.evolve(address, thread=""), *what)

    async def choose(self, address: Address, value: str, default: str, *what: str) -> None:
        """Write down what counts at a place from now on; a default that counts anyway is no choice.

        Raises only what the store raises.
        """
        await self.forget(address, *what)
        if value != (self.of(address, *what) or default):
            name = _key(address, address.channel, what)
            await self._store.apply(PutValue(component=COMPONENT, name=name, value=value))
            self._made[name] = value

    async def forget(self, address: Address, *what: str) -> None:
        """Let what was chosen at this very place count no more. Raises only what the store raises."""
        for name in self._keys(address, *what):
            if name in self._made:
                await self._store.apply(DeleteValue(component=COMPONENT, name=name))
                self._made.pop(name, None)

    async def stale(self, counts: Callable[[str, str], bool]) -> list[str]:
        """Forget what does not count any more, given its name and value; return the names."""
        names = [name for name, value in self._made.items() if not counts(name, value)]
        for name in names:
            await self._store.apply(DeleteValue(component=COMPONENT, name=name))
            del self._made[name]
        return names

    def _keys(self, address: Address, *what: str) -> Iterator[str]:
        return (_key(address, channel, what) for channel in self._names(address))


def _key(address: Address, channel: str, what: Sequence[str]) -> str:
    lane = attrs.evolve(address, channel=channel).lane
    return json.dumps([*lane, *what], ensure_ascii=False)
