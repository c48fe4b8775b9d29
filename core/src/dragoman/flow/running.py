"""A turn at work, as those see it who may want it to end."""

from __future__ import annotations

import anyio
import attrs

from dragoman.render.answer import Answer
from dragoman.render.endings import REPLACED_MARK, STOPPED_MARK


@attrs.define(eq=False)
class Running:
    """The handle of one turn. Cancelling ends its runtime; the turn then ends in order.

    ``newest`` is the latest of its inputs. ``reason`` says why it was cancelled, ``mark`` is what people see of that; it is empty where
    they are told in another way. ``follows`` says that the turn took its session over from
    another one.
    """

    turn_id: str
    newest: int = 0
    follows: bool = False
    reason: str = ""
    mark: str = STOPPED_MARK
    told: bool = False
    scope: anyio.CancelScope = attrs.field(factory=anyio.CancelScope)
    ended: anyio.Event = attrs.field(factory=anyio.Event)
    answer: Answer | None = None
    _wanted: str = ""

    def cancel(self, reason: str, *, mark: str = STOPPED_MARK, told: bool = False) -> None:
        """End the turn now; the first reason stays. ``told`` people get an answer from elsewhere."""
        if not self.reason:
            self.reason, self.mark, self.told = reason, mark, told
        self.scope.cancel()

    def make_room(self, reason: str, *, now: bool = False) -> bool:
        """End the turn for a newer message, as soon as no tool is running.

        Returns whether nobody has to see to it: it ends, or was asked to before.
        """
        if self.answer and self.answer.in_tool and not now:
            asked, self._wanted = bool(self._wanted), reason
            return asked
        self.cancel(reason, mark=REPLACED_MARK)
        return True

    def between(self) -> None:
        """Say that an event was taken in: what waited for the end of a tool may happen now."""
        if self._wanted:
            self.make_room(self._wanted)
