"""One stream of the SDK: read to its end, or ended by whoever stops the turn.

A streamed run belongs to no scope of ours, and a reader that is cancelled takes the run's tools down
with it. So the reader is shielded, and a second task is cancelled in its place: it decides how the
run ends.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import anyio
import anyio.lowlevel
import attrs

from dragoman import Clock
from dragoman_openai.journal import Journal

if TYPE_CHECKING:
    from agents import RunResultStreaming, StreamEvent

DRAIN: Final = 2.0
"""Seconds that tools get to end when a turn is stopped, and that a cancelled run gets."""


@attrs.frozen(eq=False)
class Reader:
    """Reads the streams of one turn."""

    _journal: Journal
    _clock: Clock
    _log: logging.Logger
    _turn_id: str

    async def read(self, result: RunResultStreaming, take: Callable[[StreamEvent], object]) -> None:
        """Hand each event to ``take``; the run is down when this returns or raises.

        Raises what the run or ``take`` raised. When cancelled it ends the run: at once while a
        model is asked, and while tools act when they have ended, at the latest after `DRAIN`.
        """
        failure: Exception | None = None
        shielded, ended = anyio.CancelScope(shield=True), anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._end_when_cancelled, result, shielded, ended)
            with shielded:
                try:
                    await self._events(result, take)
                except Exception as error:  # noqa: BLE001 - raised again below, outside the group
                    failure = error
            ended.set()
            tasks.cancel_scope.cancel()
        await anyio.lowlevel.checkpoint_if_cancelled()
        if failure is not None:
            raise failure

    async def _end_when_cancelled(
        self, result: RunResultStreaming, shielded: anyio.CancelScope, ended: anyio.Event
    ) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            if not ended.is_set():
                self._journal.stopped = True
                if self._journal.may_end():
                    await self._let_tools_end(result, ended)
                shielded.cancel()

    async def _let_tools_end(self, result: RunResultStreaming, ended: anyio.Event) -> None:
        """Give tools a moment, so that what came of them is stored and the model knows it."""
        result.cancel(mode="after_turn")
        with anyio.CancelScope(shield=True), self._clock.move_on_after(DRAIN):
            await ended.wait()

    async def _events(
        self, result: RunResultStreaming, take: Callable[[StreamEvent], object]
    ) -> None:
        events = result.stream_events()
        try:
            async for event in events:
                take(event)
        finally:
            await self._settle(result, events)

    async def _settle(self, result: RunResultStreaming, events: object) -> None:
        """End the SDK's own tasks, which no scope of ours holds."""
        task = result.run_loop_task
        if task is None or not task.done():
            result.cancel()
        with (
            anyio.CancelScope(shield=True),
            self._clock.move_on_after(DRAIN) as scope,
            suppress(Exception),  # what the run raised has been seen, or does not matter now
        ):
            if isinstance(events, AsyncGenerator):
                await events.aclose()
            async for _ in result.stream_events():
                pass
        if scope.cancelled_caught:
            self._log.error("turn %s: the run did not end within %g s", self._turn_id, DRAIN)
