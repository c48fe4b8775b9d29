"""What a start does with the work of a process that died."""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

import attrs

from dragoman.clock import Clock
from dragoman.errors import ManifestError, StoreUnavailable
from dragoman.flow.leases import Leases
from dragoman.manifest.model import Manifest
from dragoman.protocols import Platform, Runtime
from dragoman.render.endings import INTERRUPTED_MARK, INTERRUPTED_NOTICE
from dragoman.states import TurnState
from dragoman.store.operations import (
    DeleteValue,
    Finish,
    PutValue,
    Recover,
    Recovered,
    TurnGrant,
)
from dragoman.store.protocol import Store

WITHIN: Final = 300.0
"""Seconds in which starts after crashes are counted: `Limits.restarts` of them end resumption."""

_COMPONENT: Final = "core:gateway"
_STARTS: Final = "starts"


def refuse_steering(manifest: Manifest, runtimes: Mapping[str, Runtime]) -> None:
    """Raise `dragoman.ManifestError` for profiles that want of a runtime what it does not do."""
    problems = []
    for name, profile in manifest.profiles.items():
        runtime = runtimes.get(profile.runtime)
        if runtime is None:
            continue
        can = runtime.capabilities
        wants = f"profiles.{name}: runtime {profile.runtime!r}"
        if profile.busy == "steer" and not can.steer:
            problems.append(f"{wants} cannot be steered; choose another value of busy")
        if profile.recovery == "retry" and not can.journal:
            problems.append(
                f"{wants} keeps no journal of its tools, so a turn cannot be run again safely; "
                'choose recovery = "notify"'
            )
        if profile.models and not can.models:
            problems.append(f"{wants} has one model only; remove models")
    if problems:
        raise ManifestError(problems)


class Opened(Protocol):
    """What is open of a deployment."""

    @property
    def platforms(self) -> Mapping[str, Platform]:
        """By the id of the table."""
        ...

    @property
    def runtimes(self) -> Mapping[str, Runtime]:
        """By the id of the table."""
        ...


@attrs.frozen
class Starts:
    """Counts starts that followed a crash: a turn that brings the process down must not loop."""

    _store: Store
    _clock: Clock
    _often: int

    async def begin(self, log: logging.Logger) -> bool:
        """Note a start; return whether turns may be resumed."""
        now = self._clock.now().timestamp()
        recent = [at for at in await self._read() if 0 <= now - at < WITHIN]
        await self._write([*recent[-self._often :], now])
        if len(recent) >= self._often:
            log.error(
                "%d starts after crashes within %g s: no turn is run again", len(recent), WITHIN
            )
        return len(recent) < self._often

    async def end(self) -> None:
        """Note an orderly end: what comes next is no crash."""
        with contextlib.suppress(StoreUnavailable):
            await self._store.apply(DeleteValue(component=_COMPONENT, name=_STARTS))

    async def _read(self) -> list[float]:
        """Return the starts so far; what is damaged says nothing of any."""
        try:
            found = json.loads(await self._store.read.value(_COMPONENT, _STARTS) or "[]")
        except ValueError:
            return []
        return [at for at in found if isinstance(at, float)] if isinstance(found, list) else []

    async def _write(self, starts: Sequence[float]) -> None:
        value = json.dumps(starts)
        await self._store.apply(PutValue(component=_COMPONENT, name=_STARTS, value=value))


@attrs.frozen
class Recovery:
    """Settles what was left behind, by each profile's rule."""

    _manifest: Manifest
    _open: Opened
    _store: Store
    _clock: Clock
    _log: logging.Logger

    async def settle(self, leases: Leases, *, resume: bool) -> Sequence[TurnGrant]:
        """Settle everything; return the turns that go on here."""
        now = self._clock.now().timestamp()
        profiles = self._manifest.profiles
        retry = [
            name
            for name, profile in profiles.items()
            if profile.recovery == "retry" and profile.runtime in self._open.runtimes
        ]
        found = await self._store.apply(
            Recover(
                owner=leases.owner,
                everyone=True,  # the lock on the store says that no other owner is alive
                boot=self._clock.boot(),
                now=now,
                oldest=now - self._manifest.limits.freshness,
                mark=INTERRUPTED_MARK,
                notice=INTERRUPTED_NOTICE,
                retry=tuple(retry) if resume else (),
                lease_until=leases.fresh(),
            )
        )
        if found != Recovered():
            self._log.warning(
                "recovered: %d turns interrupted, %d run again, %d parts uncertain, %d expired",
                len(found.interrupted),
                len(found.again),
                found.uncertain,
                found.expired,
            )
        return [grant for grant in found.again if await self._has_way_out(grant)]

    async def _has_way_out(self, grant: TurnGrant) -> bool:
        """End a turn whose platform the manifest no longer names: nobody could be shown its answer."""
        if grant.inputs[0].inbound.address.platform in self._open.platforms:
            return True
        reason = "its platform is not part of the deployment any more"
        now = self._clock.now().timestamp()
        await self._store.apply(
            Finish(lease=grant.lease, state=TurnState.INTERRUPTED, detail=reason, now=now)
        )
        return False
