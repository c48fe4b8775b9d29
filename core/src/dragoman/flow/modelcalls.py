"""What a turn sends to models, on its way into the store: gathered, and written beside the run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import anyio
import attrs
from anyio import to_thread
from anyio.abc import TaskGroup

from dragoman.clock import Clock
from dragoman.errors import StoreError
from dragoman.keys import new_id
from dragoman.logs import Log
from dragoman.protocols import ModelCall
from dragoman.store.operations import KeepCalls, KeptCall, KeptCalls, TurnLease
from dragoman.store.protocol import Store
from dragoman.store.requests import pieces_of

GATHERED: Final = 1.0
"""Seconds that a call waits for others: those of a short turn are written with its end."""
WAITING: Final = 16 << 20
"""Characters that may wait for a slow store; of what comes then only the rest is kept."""
CALLS: Final = 1000
"""Calls that may wait for it."""
LONGEST_WORD: Final = 200
"""Characters of a model's name, an id or an outcome."""
_LOOP_SIZE: Final = 32 * 1024
"""Characters above which a request is cut in a worker thread."""


@attrs.define(eq=False)
class ModelCalls:
    """The calls of one turn. What a store does not take is lost: nobody waits for it."""

    _store: Store
    _clock: Clock
    _lease: TurnLease
    _turns: int
    """Newest turns of a session of which is kept what was sent."""
    _redact: Callable[[str], str]
    _log: Log
    tasks: TaskGroup | None = None
    """Where what has come is written beside the run, while the turn is at work."""
    _waiting: list[tuple[ModelCall, float]] = attrs.field(factory=list)
    _writing: bool = False

    def add(self, call: ModelCall) -> None:
        """Take a call that has ended; never waits."""
        if len(self._waiting) >= CALLS:
            return
        size = len(call.sent) + sum(len(other.sent) for other, _ in self._waiting)
        if not self._turns or size > WAITING:
            call = attrs.evolve(call, sent="")
        self._waiting.append((call, self._clock.now().timestamp()))
        if self.tasks is not None and not self._writing:
            self._writing = True
            self.tasks.start_soon(self._write)

    async def _write(self) -> None:
        """Write what has come; what is left when the work ends goes with the turn's end."""
        while self._waiting:
            await self._clock.sleep(GATHERED)
            with anyio.CancelScope(shield=True):
                kept = await self.rest()
                try:
                    await self._store.apply(KeepCalls(lease=self._lease, kept=kept))
                except StoreError as error:
                    self._log.warning("calls of models are not kept (%s)", type(error).__name__)
        self._writing = False

    async def rest(self) -> KeptCalls:
        """Return what is not written yet."""
        waiting, self._waiting = self._waiting, []
        with anyio.CancelScope(shield=True):
            if sum(len(call.sent) for call, _ in waiting) > _LOOP_SIZE:
                calls = await to_thread.run_sync(self._kept, waiting)
            else:
                calls = self._kept(waiting)
        return KeptCalls(calls, self._turns)

    def _kept(self, waiting: list[tuple[ModelCall, float]]) -> tuple[KeptCall, ...]:
        return tuple(
            KeptCall(
                id=new_id("call"),
                model=call.model[:LONGEST_WORD],
                begun_at=call.begun_at.timestamp(),
                ended_at=ended_at,
                outcome=self._redact(call.outcome)[:LONGEST_WORD],
                request_id=call.request_id[:LONGEST_WORD],
                response_id=call.response_id[:LONGEST_WORD],
                pieces=pieces_of(self._redact(call.sent)),
            )
            for call, ended_at in waiting
        )
