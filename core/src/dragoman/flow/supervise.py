"""Keeps one platform connected: runs it, and runs it again when the connection is lost or silent."""

from __future__ import annotations

import math
import random
import socket
from collections.abc import Callable
from typing import Final

import anyio
import anyio.lowlevel
import attrs

from dragoman.causes import describe, find, leaves
from dragoman.clock import Clock
from dragoman.errors import AccountMismatch, DragomanError, Unauthorized
from dragoman.hookspecs import PlatformStatus
from dragoman.logs import Log
from dragoman.messages import Deliver
from dragoman.protocols import Platform

FIRST: Final = 1.0
CAP: Final = 30.0
"""The longest wait: what is said after a network is back waits no longer than this."""
STEADY: Final = 60.0
"""A connection that held this long was a good one: the next wait starts over."""
STUCK: Final = 10.0
"""How long an adapter may take to end once it is cancelled, before that is reported."""
STILL_STUCK: Final = 60.0
"""How often an adapter that goes on not ending is reported."""


@attrs.define(eq=False)
class Backoff:
    """Waits that double up to a cap, each shortened at random by up to a half.

    The jitter keeps instances that lost the same network from coming back in the same moment.
    """

    _random: random.Random = attrs.field(factory=random.Random)
    _next: float = FIRST

    def wait(self) -> float:
        """Return the seconds to wait now, and double the next wait."""
        seconds = self._next * (0.5 + self._random.random() / 2)
        self._next = min(self._next * 2, CAP)
        return seconds

    def reset(self) -> None:
        """Start over."""
        self._next = FIRST


@attrs.define(eq=False, kw_only=True)
class Supervisor:
    """One platform's connection.

    ``worked_at`` tells the boot time of the platform's last completed work, ``observe`` is told of
    every change. Whatever the platform raises ends its connection only; no other notices.
    """

    name: str
    platform: Platform
    deliver: Deliver
    clock: Clock
    log: Log
    observe: Callable[[PlatformStatus], None]
    worked_at: Callable[[], float | None]

    async def run(self) -> None:
        """Keep the platform connected until cancelled, or until its account is refused."""
        backoff = Backoff()
        while True:
            self.observe(PlatformStatus(self.name, "running"))
            started = self.clock.boot()
            try:
                reason = await self._connection()
            except (Unauthorized, AccountMismatch) as final:
                self.log.error("platform %s stopped: %s", self.name, final)
                self.observe(PlatformStatus(self.name, "stopped", str(final)))
                return
            if self.clock.boot() - started >= STEADY:
                backoff.reset()
            seconds = backoff.wait()
            self.log.warning("platform %s reconnects in %.1f s: %s", self.name, seconds, reason)
            self.observe(PlatformStatus(self.name, "waiting", reason))
            await self.clock.sleep(seconds)

    async def _connection(self) -> str:
        """Be connected once; return why that ended. Raises where it makes no sense to try again."""
        silence = self.platform.capabilities.silence
        ended = anyio.Event()
        outcome: str | DragomanError = f"no sign of work for {silence} s"
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch, silence, ended, tasks.cancel_scope)
            try:
                outcome = await self._attempt()
            finally:
                ended.set()
            tasks.cancel_scope.cancel()
        await anyio.lowlevel.checkpoint_if_cancelled()
        if isinstance(outcome, str):
            return outcome
        raise outcome

    async def _attempt(self) -> str | DragomanError:
        try:
            await self.platform.run(self.deliver)
        except Exception as error:  # noqa: BLE001 - an adapter's failure is its connection's end
            return find(error, Unauthorized, AccountMismatch) or reason_of(error)
        except anyio.get_cancelled_exc_class():
            if anyio.current_effective_deadline() == -math.inf:
                raise
            return "the adapter cancelled itself"
        return "the connection ended"

    async def _watch(
        self, silence: float | None, ended: anyio.Event, connection: anyio.CancelScope
    ) -> None:
        """Cancel a connection that says nothing, and report one that does not end when cancelled."""
        try:
            if silence is None:
                await anyio.sleep_forever()
            else:
                await self._until_silent(silence)
                self.log.warning("platform %s: no sign of work for %g s", self.name, silence)
                connection.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await self._until_ended(ended)

    async def _until_silent(self, silence: float) -> None:
        """Return when the platform has completed nothing for so long: nothing at all counts, too."""
        begin = self.clock.boot()
        while True:
            heard = max(begin, self.worked_at() or begin)
            rest = heard + silence - self.clock.boot()
            if rest <= 0:
                return
            await self.clock.sleep(rest)

    async def _until_ended(self, ended: anyio.Event) -> None:
        cancelled = self.clock.boot()
        wait = STUCK
        while not ended.is_set():
            with self.clock.move_on_after(wait):
                await ended.wait()
            if not ended.is_set():
                seconds = self.clock.boot() - cancelled
                reason = f"stuck adapter: not ended {seconds:.0f} s after it was cancelled"
                self.log.error("platform %s: %s", self.name, reason)
                self.observe(PlatformStatus(self.name, "waiting", reason))
            wait = STILL_STUCK


def reason_of(error: BaseException) -> str:
    """Say why a connection was lost, and name the failure of a name's resolution as such."""
    text = describe(error)
    cause: BaseException | None = next(leaves(error))
    for _ in range(10):  # a chain of causes may lead back to its begin
        if isinstance(cause, socket.gaierror):
            return f"DNS: a name could not be resolved ({text})"
        if cause is None:
            break
        cause = cause.__cause__ or cause.__context__
    return text
