"""A model in memory with one tool: what a reference runtime speaks to."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import contextmanager

import anyio
import anyio.lowlevel
import attrs

from dragoman import FailureKind
from dragoman.testing.runtime_suite import Act, Book, Count, Fail, Hold, Line, Say, Think, outcome

KEY = "reference-key"


class ModelError(Exception):
    """What the model's client raises, in the model's own words."""

    def __init__(self, kind: FailureKind, words: str) -> None:
        super().__init__(f"{kind.value}: {words} ({KEY})")
        self.kind = kind


class ToolError(Exception):
    """What the tool raises."""


@attrs.frozen
class Chunk:
    """A part of an answer: ``text``, ``thought``, ``call`` (what the tool is to do) or ``usage``."""

    kind: str
    text: str = ""
    tokens: tuple[int, int] = (0, 0)


@attrs.define(eq=False)
class Model:
    """Answers by a book of scripts; a call waits for `release` where the script says so."""

    book: Book = attrs.field(factory=Book)
    asked: list[list[Line]] = attrs.field(factory=list)
    models: list[str] = attrs.field(factory=list)
    """Which model was asked, each time."""
    effects: list[str] = attrs.field(factory=list)
    busy: int = 0
    down: bool = False
    _released: anyio.Event = attrs.field(factory=anyio.Event)

    def release(self) -> None:
        """Let everything go on that holds, or comes to hold from now on."""
        self._released.set()

    async def answer(self, lines: Sequence[Line], model: str = "") -> AsyncGenerator[Chunk]:
        """Answer what was said, in pieces."""
        await anyio.lowlevel.checkpoint()
        if self.down:
            raise ModelError(FailureKind.TRANSPORT, "nobody is there")
        self.asked.append(list(lines))
        self.models.append(model)
        with self._at_work():
            for step in self.book.next(lines):
                await anyio.lowlevel.checkpoint()
                match step:
                    case Say(pieces):
                        for piece in pieces:
                            yield Chunk("text", piece)
                    case Think(text):
                        yield Chunk("thought", text)
                    case Act(what):
                        yield Chunk("call", what)
                    case Count(given, said):
                        yield Chunk("usage", tokens=(given, said))
                    case Hold():
                        await self._released.wait()
                    case Fail(kind, words):
                        raise ModelError(kind, words)

    def asks(self, what: str) -> bool:
        """Whether somebody has to decide on this."""
        return self.book.act(what).asks

    async def act(self, what: str) -> str:
        """Do something outside."""
        act = self.book.act(what)
        with self._at_work():
            self.effects.append(what)
            await anyio.lowlevel.checkpoint()
            if act.holds:
                await self._released.wait()
            if act.fails:
                raise ToolError(f"{what} is broken ({KEY})")
        return outcome(what)

    @contextmanager
    def _at_work(self):
        self.busy += 1
        try:
            yield
        finally:
            self.busy -= 1
