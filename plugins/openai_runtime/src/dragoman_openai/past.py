"""What a run knows of what was said before, and who keeps it.

A `Past` gives a run its input. There is one way to go on with a conversation at a time: a session
in dragoman's own store, a session outside, or the model service's own memory (`server_past`).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import attrs

from dragoman import Records, TurnRequest
from dragoman_openai import errors, history
from dragoman_openai.backends.records import OutsideRecords
from dragoman_openai.compaction import Compactor
from dragoman_openai.session import RecordsSession
from dragoman_openai.writes import Writes

if TYPE_CHECKING:
    from agents import RunResultStreaming


class Past(Protocol):
    """One turn's way to its history."""

    @property
    def session(self) -> RecordsSession:
        """Where the turn's own items are counted, and what was shown is written in the end."""
        ...

    async def start(self) -> dict[str, Any]:
        """Return how a run is called, as keyword arguments of ``Runner.run_streamed``."""
        ...

    def again(self) -> dict[str, Any]:
        """Return the same for a run that goes on from its state; its input is there already."""
        ...

    async def ended(self, result: RunResultStreaming, *, finished: bool) -> None:
        """Write down what a run has added that is not written yet."""
        ...

    async def mended(self, error: Exception) -> bool:
        """Go on with less of the past where ``error`` says it is refused; whether that was so."""
        ...

    async def take_back(self) -> None:
        """Undo what core does not: it is about to take all back that the turn has written."""
        ...

    async def close(self) -> None:
        """Let go of what the turn has open."""
        ...


@attrs.define(eq=False)
class SessionPast:
    """A session in dragoman's own store: core has put the turn's messages there already."""

    session: RecordsSession
    _log: logging.Logger
    _compactor: Compactor | None = None

    async def start(self) -> dict[str, Any]:
        """Return no input: the session has it all. A history that is too long is compacted."""
        if self._compactor is not None:
            stored = await self.session.stored()
            shorter = await self._compactor.shortened(self.session.session_id, stored)
            if shorter is not None:
                await self.session.replace(shorter)
        return {"input": [], "session": self.session}

    def again(self) -> dict[str, Any]:
        """Return the session that the state belongs to."""
        return {"session": self.session}

    async def ended(self, result: RunResultStreaming, *, finished: bool) -> None:
        """Do nothing: the SDK writes as it goes."""

    async def mended(self, error: Exception) -> bool:
        """Go on from the last turn where an item lacks its other half."""
        if not errors.is_broken_history(error):
            return False
        self._log.warning(
            "session %s: the model service refuses the history; it goes on from its last turn",
            self.session.session_id,
        )
        self.session.keep_last_turn()
        return True

    async def take_back(self) -> None:
        """Do nothing: all is core's."""

    async def close(self) -> None:
        """Do nothing: there is nothing open."""


@attrs.define(eq=False)
class OutsidePast(SessionPast):
    """A session in a back end. Core's records hold what has not been brought there yet.

    What is brought in leaves the records' generation afterwards, so a crash between the two shows
    as messages that are in both; each is known by its event and brought in once.
    """

    outside: OutsideRecords = attrs.field(kw_only=True)
    _inbox: Records = attrs.field(kw_only=True)
    _request: TurnRequest = attrs.field(kw_only=True)
    _writes: Writes = attrs.field(kw_only=True)
    _window: int = attrs.field(kw_only=True)
    """Items that are searched for a message that may be there already."""
    _mine: set[object] = attrs.field(factory=set, init=False)
    """The names of the turn's messages."""

    async def start(self) -> dict[str, Any]:
        """Bring in what people said, then as in our own store."""
        items = await self._inbox.read()
        self._mine |= {_name(item) for item in items[-len(self._request.inputs) :]}
        if self._request.attempt > 1:
            await self._leave_the_rest()
        if self._request.attempt > 1 or len(items) != len(self._request.inputs):
            await self.bring_in(items)
        else:
            await self._move(items)
        return await SessionPast.start(self)

    async def bring_in(self, items: Sequence[str]) -> None:
        """Bring in what the back end has not got yet."""
        if items:
            newest = self._searched(await self.outside.read(self._window))
            there = {_name(item) for item in newest} - {None}
            await self._move([item for item in items if _name(item) not in there])

    async def take_back(self) -> None:
        """Delete what the turn has added outside."""
        await self._writes(lambda: self.outside.take_back(self._of_this_turn))

    async def ended(self, result: RunResultStreaming, *, finished: bool) -> None:
        """Let a session count that counts what its turns use."""
        if finished:
            await self._writes(lambda: self.outside.ran(result))

    async def close(self) -> None:
        """Close the turn's session."""
        await self.outside.close()

    async def _move(self, items: Sequence[str]) -> None:
        """Add items outside, then take all off the records."""
        await self._writes(lambda: self.outside.append(items))
        await self._writes(lambda: self._inbox.new_generation(()))

    async def _leave_the_rest(self) -> None:
        """Leave behind what an attempt that was cut off has added behind the turn's messages.

        In our own store that is core's work. Here the turn goes on with a copy that ends there.
        """
        whole = await self.outside.read()
        places = self._places(whole)
        if places and places[-1] + 1 < len(whole):
            await self._writes(lambda: self.outside.new_generation(whole[: places[-1] + 1]))

    def _of_this_turn(self, items: Sequence[str]) -> int:
        """Return how many of the newest items the turn has added: all from its first message on."""
        places = self._places(items)
        return len(items) - places[0] if places else 0

    def _places(self, items: Sequence[str]) -> list[int]:
        newest = self._searched(items)
        first = len(items) - len(newest)
        return [first + place for place, item in enumerate(newest) if _name(item) in self._mine]

    def _searched(self, items: Sequence[str]) -> Sequence[str]:
        """Return what may be of this turn: where names are only texts, the newest turn."""
        if self.outside.opaque:
            return items
        starts = history.turn_starts(history.decode(items))
        return items[starts[-1] :] if starts else ()


def _name(item: str) -> object:
    """Return what a person's message is known by: its event, or else its text."""
    made = json.loads(item)
    if history.TAG in made:
        return made[history.TAG]
    if not history.is_user(made):
        return None
    content = made.get("content")
    if isinstance(content, list):
        content = "".join(part.get("text", "") for part in content if isinstance(part, dict))
    return content
