"""What goes into the history of a turn that was cut off: what people saw, and what had begun.

The SDK stores a response with its tools' outputs, once they have ended. People have seen its text
by then, and tools have begun; a model that does not know that would contradict both.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs

from dragoman import Failed, FailureKind, Finished, Paused, RunEnd, RuntimeFailed, StoreError
from dragoman_openai import refused
from dragoman_openai.past import Past
from dragoman_openai.stream import Translator
from dragoman_openai.writes import Writes

if TYPE_CHECKING:
    from agents import RunResultStreaming


@attrs.define(eq=False, kw_only=True)
class CutOff:
    """Completes one turn's history. ``messages`` is how many the turn was to answer."""

    past: Past
    shown: Translator
    veiled: bool
    """Whether text was held back from people, and so from the history."""
    messages: int
    writes: Writes
    log: logging.Logger
    turn_id: str
    runs: list[RunResultStreaming] = attrs.field(factory=list, init=False)
    """Runs that have not ended as they should, and of which the past was not told."""
    refused: bool = attrs.field(default=False, init=False)
    """Whether an input guardrail refused what the turn was asked."""

    async def store(self, end: RunEnd) -> None:
        """Leave in the history what people saw and the SDK has not stored, and mark it."""
        await self.writes.settled()
        if isinstance(end, Finished | Paused):
            return
        if isinstance(end, Failed) and end.kind is FailureKind.CONTEXT_OVERFLOW:
            await self._as_far_as_possible(self.past.take_back)
            return
        await self.store_runs()
        if self.refused:
            tools = dict.fromkeys(self.shown.calls().values())
            await self._add(refused.mark(self.messages, tools))
        elif text := self._text(end):
            await self._add({"role": "assistant", "content": text})

    async def store_runs(self) -> None:
        """Let the past have what runs did that did not end as they should."""
        while self.runs:
            result = self.runs.pop(0)
            await self._as_far_as_possible(partial(self.past.ended, result, finished=False))

    def _text(self, end: RunEnd) -> str:
        """Return what was shown and is not stored, with its mark; empty where all is stored."""
        session = self.past.session
        shown = [] if self.veiled else self.shown.texts(skip=session.stored_messages)
        calls = self.shown.calls()
        cut = [calls[each] for each in calls if each not in session.stored_calls]
        mark = f"[interrupted while running {', '.join(cut)}]" if cut else "[interrupted]"
        too_long = isinstance(end, Failed) and end.kind is FailureKind.TURN_LIMIT
        if too_long:
            mark = "[stopped: this took more steps than allowed]"
        text = "\n\n".join(part for part in shown if part.strip())
        return f"{text}\n{mark}".lstrip() if text or cut or too_long else ""

    async def _add(self, item: Any) -> None:
        await self._as_far_as_possible(lambda: self.past.session.add_items([item]))

    async def _as_far_as_possible(self, write: Callable[[], Awaitable[None]]) -> None:
        try:
            await write()
        except (StoreError, RuntimeFailed) as error:
            self.log.warning(
                "turn %s: what was shown could not be stored (%s)",
                self.turn_id,
                type(error).__name__,
            )
