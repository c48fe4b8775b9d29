"""Channels that go on under another id: what names the old one holds for the new one."""

from __future__ import annotations

import logging
from typing import TypeAlias

import attrs

from dragoman.messages import Address
from dragoman.store.operations import Move, StoredEvent, TurnGrant
from dragoman.store.protocol import Store

Channel: TypeAlias = tuple[str, str, str]


@attrs.define(eq=False)
class Moves:
    """Every move that the store knows, in memory: a channel moves once in its life, if ever."""

    _store: Store
    _log: logging.Logger
    _to: dict[Channel, str] = attrs.field(factory=dict)
    _earlier: dict[Channel, list[str]] = attrs.field(factory=dict)

    async def load(self) -> None:
        """Read what earlier processes have learned."""
        for move in await self._store.read.moves():
            self._keep(*move)

    async def learn(self, old: Address, new: str) -> None:
        """Let the channel of an address go on under another id; what is known changes nothing.

        Raises only what the store raises.
        """
        if new in {"", old.channel, self.now(old).channel}:
            return
        move = Move(platform=old.platform, workspace=old.workspace, old=old.channel, new=new)
        if await self._store.apply(move):
            self._keep(old.platform, old.workspace, old.channel, new)
            self._log.warning(
                "channel %s of %s goes on as %s: lists and routes should name the new id",
                old.channel,
                old.platform,
                new,
                extra={"platform": old.platform},
            )

    def now(self, address: Address) -> Address:
        """Return where an address leads now."""
        channel = address.channel
        while moved := self._to.get((address.platform, address.workspace, channel)):
            channel = moved
        return address if channel == address.channel else attrs.evolve(address, channel=channel)

    def names(self, address: Address) -> tuple[str, ...]:
        """Return all ids that a channel has had, the one of the address first."""
        names = [address.channel]
        for name in names:  # grows meanwhile
            names += self._earlier.get((address.platform, address.workspace, name), ())
        return tuple(names)

    def event(self, stored: StoredEvent) -> StoredEvent:
        """Return an event at the address where its channel is now."""
        address = self.now(stored.inbound.address)
        if address is stored.inbound.address:
            return stored
        return attrs.evolve(stored, inbound=attrs.evolve(stored.inbound, address=address))

    def turn(self, granted: TurnGrant) -> TurnGrant:
        """Return a turn whose inputs are where their channel is now."""
        inputs = tuple(map(self.event, granted.inputs)) if self._to else granted.inputs
        return attrs.evolve(granted, inputs=inputs)

    def _keep(self, platform: str, workspace: str, old: str, new: str) -> None:
        for one, other in ((new, ""), (old, new)):  # one that comes back has not moved any more
            if (before := self._to.pop((platform, workspace, one), None)) is not None:
                self._earlier[platform, workspace, before].remove(one)
            if other:
                self._to[platform, workspace, one] = other
                self._earlier.setdefault((platform, workspace, other), []).append(one)
