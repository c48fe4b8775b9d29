"""The text of a turn, block by block: what is provisional, what is said, what was lost.

Stream events bring deltas, and an assistant message brings the same text whole, just before the
stream says that it is over. Where a connection breaks in between, no such message comes: the
program asks the model again, and what was shown of the lost message is taken back as soon as there
is other text. Until then it stays: it may be all that people get.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from dragoman import RunEvent, TextBlock, TextDelta


@attrs.define(eq=False)
class _Block:
    name: str
    final: list[str] = attrs.field(factory=list)
    parts: list[str] = attrs.field(factory=list)
    """What is shown, and no message has brought yet."""


@attrs.define(eq=False)
class Blocks:
    """A block of the answer is what a model says with nothing in between: services cut it up."""

    count: int = 0
    _open: _Block | None = None
    _lost: list[_Block] = attrs.field(factory=list)

    @property
    def lost(self) -> str:
        """What people see and the program does not know: the messages it was in were cut off."""
        shown = [*self._lost, *([self._open] if self._open is not None else [])]
        return "\n\n".join(text for block in shown if (text := "".join(block.parts)))

    def delta(self, text: str) -> Iterator[RunEvent]:
        """Add provisional text."""
        yield from self.withdraw()
        block = self._current()
        block.parts.append(text)
        yield TextDelta(block.name, text)

    def said(self, text: str) -> Iterator[RunEvent]:
        """Add what a message says; it stands for the deltas since the one before."""
        yield from self.withdraw()
        block = self._current()
        block.final.append(text)
        block.parts.clear()

    def close(self) -> Iterator[RunEvent]:
        """End the block, because something else comes."""
        block, self._open = self._open, None
        if block is None:
            return
        if block.parts:
            self._lost.append(block)
        else:
            yield TextBlock(block.name, "".join(block.final))

    def withdraw(self) -> Iterator[RunEvent]:
        """Take back what is shown of lost messages."""
        lost, self._lost = self._lost, []
        for block in lost:
            yield TextBlock(block.name, "".join(block.final))

    def _current(self) -> _Block:
        if self._open is None:
            self.count += 1
            self._open = _Block(str(self.count))
        return self._open
