"""Calls that show an answer while it grows: one at a time in its lane, within all limits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import anyio
import attrs

from dragoman import errors
from dragoman.clock import Clock
from dragoman.messages import Address, Receipt
from dragoman.outbox.attempt import Exit, refusal
from dragoman.outbox.lane import Lane
from dragoman.outbox.limits import Priority
from dragoman.outbox.outbox import Outbox

CALL_SECONDS: Final = 10.0
"""How long one preview may take; the final text has its own patience."""


@attrs.define(eq=False)
class PreviewCalls:
    """The right of one answer to call its platform; all it shows before its end can be dropped."""

    address: Address
    _outbox: Outbox
    _clock: Clock
    plain: bool = attrs.field(init=False, default=False)
    """Whether the platform refused formatting."""
    not_before: float | None = attrs.field(init=False, default=None)
    """When the next call may be made, as far as known."""
    _cuttable: anyio.CancelScope | None = attrs.field(init=False, default=None)
    """What may be cut short when the answer is whole: waiting for the lane, or an edit."""

    @property
    def exit(self) -> Exit:
        """The platform."""
        return self._outbox.exit(self.address)

    @property
    def lane(self) -> Lane:
        """The lane."""
        return self._outbox.lane(self.address)

    def wait(self, seconds: float) -> None:
        """Make no call for so long."""
        self.not_before = self._clock.boot() + seconds

    def cut(self) -> None:
        """Cut short what may be."""
        if self._cuttable:
            self._cuttable.cancel()

    async def make(
        self, call: Callable[[], Awaitable[Receipt | None]], method: str
    ) -> Receipt | None:
        """Make a call; return ``None`` where it may be made again.

        Raises the platform's error where that would be in vain.
        """
        lane, begun = self.lane, False
        before = lane.changed_at
        receipt: Receipt | None = None
        try:
            with self._clock.move_on_after(CALL_SECONDS) as scope:
                self._cuttable = scope
                async with lane.calls:
                    begun = self._may_begin(lane, method, before)
                    if begun:
                        self._cuttable = scope if method != "send" else None
                        receipt = await self._timed(call, lane)
            if begun and receipt is None:
                raise errors.Unknown(f"no answer in {CALL_SECONDS:g} s")
            return receipt
        except errors.RateLimited as error:
            self.exit.limits.close(self.address, method, error.scope, error.retry_after)
        except errors.NotSent:
            pass
        except errors.Unknown:
            if method == "send" and not self.exit.platform.capabilities.idempotent_send:
                raise
        except errors.Refused:
            if self.plain:
                raise
            self.plain = True
        except errors.PlatformError as error:
            lane.refused = refusal(error)
            raise
        finally:
            self._cuttable = None
        return None

    def _may_begin(self, lane: Lane, method: str, before: float | None) -> bool:
        """Whether a call may be made that was meant when the chat had last changed ``before``."""
        # Meanwhile another answer may have changed the chat, which sets the pace, or older
        # content come to be owed, which a new message follows.
        if lane.changed_at != before or (method == "send" and not lane.idle):
            return False
        wait = self.exit.limits.claim(self.address, method, Priority.PREVIEW)
        if wait:
            self.wait(wait)
        return not wait

    async def _timed(
        self, call: Callable[[], Awaitable[Receipt | None]], lane: Lane
    ) -> Receipt | None:
        try:
            return await call()
        finally:
            lane.changed_at = self._clock.boot()
