"""A turn at work, as those see it who may want it to end."""

from __future__ import annotations

import anyio
import attrs

from dragoman.render.answer import Answer
from dragoman.render.endings import REPLACED_MARK, STOPPED_MARK


@attrs.define(eq=False)
class Running:
    """The handle of one turn. Cancelling ends its runtime; the turn then ends in order.

    ``reason`` says why it was cancelled, ``mark`` is what people see of that; it is empty where
    they are told in another way. ``follows`` says that the turn took its session over from
    another one.
    """

    turn_id: str
    follows: bool = False
    reason: str = ""
    mark: str = STOPPED_MARK
    told: bool = False
    scope: anyio.CancelScope = attrs.field(factory=anyio.CancelScope)
    answer: Answer | None = None
    _wanted: str = ""

    def cancel(self, reason: str, *, mark: str = STOPPED_MARK, told: bool = False) -> None:
        """End the turn now; the first reason stays. ``told`` people get an answer from elsewhere."""
        if not self.reason:
            self.reason, self.mark, self.told = reason, mark, told
        self.scope.cancel()

    def make_room(self, reason: str, *, now: bool = False) -> bool:
        """End the turn for a newer message, as soon as no tool is running; return whether it ends."""
        if self.answer and self.answer.tools and not now:
            self._wanted = reason
            return False
        self.cancel(reason, mark=REPLACED_MARK)
        return True

    def between(self) -> None:
        """Say that an event was taken in: what waited for the end of a tool may happen now."""
        if self._wanted:
            self.make_room(self._wanted)
