"""Where each part of a text ends, and how a part that begins or ends inside a block reads."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Final

import attrs

from dragoman.render.blocks import Block
from dragoman.render.breaks import code_breaks, hard_breaks, text_breaks
from dragoman.render.fences import Fence
from dragoman.render.graphemes import separable
from dragoman.render.indents import excess, outdent
from dragoman.render.search import WINDOW, longest_fit
from dragoman.render.tables import Table
from dragoman.render.text import SPACE, is_blank

_SPACES: Final = re.compile(rf"[{SPACE}]*")
_SEEN: Final = re.compile(r"\S")


@attrs.define
class Piece:
    """A part, or nothing where none could be seen, and where the next one begins.

    Only text before ``seen``, and a little after it, made the part what it is.
    """

    part: str
    next: int
    seen: int
    place: int = 0
    """The line from which `scan` finds the blocks from the next part on."""


@attrs.define(eq=False)
class Cutter:
    """One text that is being split. Positions count characters of it."""

    _text: str
    _limit: int
    _length: Callable[[str], int]
    _blocks: Sequence[Block]
    _starts: Sequence[int] = attrs.field(init=False)
    _measured: dict[tuple[int, int], int] = attrs.field(init=False, factory=dict)
    _columns: dict[int, int] = attrs.field(init=False, factory=dict)
    """By how much a message that begins there is indented too far."""
    _heads: dict[str, bool] = attrs.field(init=False, factory=dict)
    """Whether a table's header leaves room for rows."""
    _seen: int = attrs.field(init=False, default=0)
    """How far the part that is being made has looked."""
    _visible: int = attrs.field(init=False, default=-1)
    """The first visible character after a cut inside a block, as found for the latest ones."""

    def __attrs_post_init__(self) -> None:
        self._starts = [block.start for block in self._blocks]

    def pieces(self, start: int) -> Iterator[Piece]:
        """Yield the pieces from ``start`` on in order."""
        start = start or self._skip(0)
        while start < len(self._text):
            self._measured.clear()
            self._columns.clear()
            self._seen = start
            end = self._end(start)
            part = self._render(start, end)
            if not self._size(start, end) or is_blank(part, self._limit):
                part = ""
            start = self._next(end)
            yield Piece(part, start, max(self._seen, start))

    def _end(self, start: int) -> int:
        """Return where the part that begins at ``start`` ends."""
        most = longest_fit(
            lambda end: self._size(start, end), start, len(self._text), limit=self._limit
        )
        if most == len(self._text):
            return most
        block = self._around(most)
        if block is None:
            return self._best(start, most, self._breaks(start, most))
        if block.start > start and self._begins_anew(start, block, most):
            return block.start
        return self._end_inside(start, block, most)

    def _breaks(self, start: int, most: int) -> Iterator[int]:
        """Yield positions outside blocks, best first."""
        for at in self._text_breaks(start, start, most):
            if self._around(at) is None:
                yield at
        yield from hard_breaks(self._text, start, most)

    def _text_breaks(self, start: int, low: int, most: int) -> Iterator[int]:
        reach = min(self._limit, most - start) * 3 // 4
        self._seen = max(self._seen, most + reach)
        return text_breaks(self._text, low, most, reach)

    def _begins_anew(self, start: int, block: Block, most: int) -> bool:
        """Whether a block that does not fit here begins the next part: it is cut there or fits."""
        if self._size(start, block.start) > self._limit:
            return False  # only a length that shrinks as its text grows
        if (block.start - start) * 2 >= most - start:
            return True
        if block.end - block.start > self._limit * WINDOW:
            self._seen = max(self._seen, block.start + self._limit * WINDOW)
            return False
        return self._size(block.start, block.end) <= self._limit

    def _end_inside(self, start: int, block: Block, most: int) -> int:
        body, top = max(start, block.body), min(most, block.body_end)
        end = most
        if isinstance(block, Table):
            row = self._text.rfind("\n", body, top) + 1
            if row > body and self._size(start, row) <= self._limit:
                return row
            if block.start <= start and top > body:
                inside = self._text_breaks(start, body, top)
                rests = chain(inside, hard_breaks(self._text, body, top))
                return self._best(start, top, rests, least=self._limit // 8)
        elif top > body:
            end = self._best(start, top, code_breaks(self._text, body, top))
        if block.start > start and not (
            isinstance(block, Fence) and _SEEN.search(self._text, block.body, end)
        ):
            # Rather than an empty block at the end of the part.
            return block.start if self._size(start, block.start) <= self._limit else end
        return end

    def _best(self, start: int, most: int, breaks: Iterator[int], least: int = 0) -> int:
        """Return the first break whose part is within the limit and holds a quarter of it."""
        least = least or self._limit // 4
        for end in breaks:
            size = self._size(start, end)
            if size <= self._limit and size - self._added(start, end) >= least:
                return end
        return most

    def _added(self, start: int, end: int) -> int:
        opened, closing = self._inside(start), self._inside(end)
        head = opened.reopener(self._text, start) if opened else ""
        return len(head) + (len(closing.closer(0)) if isinstance(closing, Fence) else 0)

    def _size(self, start: int, end: int) -> int:
        key = (start, end)
        if key not in self._measured:
            self._seen = max(self._seen, end)
            self._measured[key] = self._length(self._render(start, end))
        return self._measured[key]

    def _render(self, start: int, end: int) -> str:
        """Return ``text[start:end]`` as a message of its own."""
        opened, closing = self._inside(start), self._inside(end)
        if closing is not None:
            end = min(end, closing.body_end)
        body = self._text[start:end]
        if isinstance(closing, Fence) and closing.too_long and closing is not opened:
            body = f"{self._text[start : closing.body]}\n{self._text[closing.body : end]}"
        columns = self._excess(start)
        if columns:
            body, columns = outdent(body, columns, inside=self._text[start - 1] != "\n")
        if opened is not None:
            body = opened.reopener(self._text, start) + body
        if not isinstance(closing, Fence):
            return body.rstrip(SPACE)
        return f"{body}{'' if body.endswith(chr(10)) else chr(10)}{closing.closer(columns)}"

    def _excess(self, start: int) -> int:
        if start not in self._columns:
            block = self._block(start)
            if block is not None and block is self._inside(start):
                self._columns[start] = block.excess
            else:
                begins = block is not None and block.start <= start < block.body
                self._columns[start] = excess(self._text, start, begins)
        return self._columns[start]

    def _next(self, end: int) -> int:
        """Return where the part after a cut at ``end`` begins."""
        block = self._inside(end)
        if block is not None and end < len(self._text):
            if self._visible < end:
                seen = _SEEN.search(self._text, end)
                self._visible = seen.start() if seen else len(self._text)
            self._seen = max(self._seen, self._visible)
            if self._visible < block.body_end:
                return end
            end = block.end
        return self._skip(end)

    def _skip(self, at: int) -> int:
        """Leave out white space, but not the indentation of a line that is shown whole."""
        text = self._text
        end = _SPACES.match(text, at).end()  # type: ignore[union-attr]  # it matches anything
        if end > at and not separable(text, end, end):
            end -= 1  # a combining mark stands on this space
        line = text.rfind("\n", at, end) + 1
        if line == 0:
            return end if at > 0 and text[at - 1] != "\n" else at
        return line

    def _around(self, at: int) -> Block | None:
        """Return the block that a cut at ``at`` would tear, if any."""
        block = self._block(at)
        return block if block is not None and block.start < at < block.end else None

    def _inside(self, at: int) -> Block | None:
        """Return the block that is open at ``at``, if any."""
        block = self._block(at)
        if block is None or at < block.body or at > block.end:
            return None
        return None if block.closed and at == block.end else block

    def _block(self, at: int) -> Block | None:
        """Return the last block that begins at ``at`` or before."""
        index = bisect_right(self._starts, at) - 1
        block = self._blocks[index] if index >= 0 else None
        if isinstance(block, Table):
            if block.head not in self._heads:
                self._heads[block.head] = self._length(block.head) * 2 <= self._limit
            return block if self._heads[block.head] else None
        return block
