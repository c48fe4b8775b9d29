"""The model service's own memory: conversations, and chains of responses.

The records have every item all the same. A mark beside them says what the service calls the past,
and how many of the records it knows: the rest is what a run is given as input. So a turn that
failed, or that a crash cut off, is told with the next one, and a service that has lost the past is
given all of it again.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any, Final

import attrs
import openai
from agents import ToolApprovalItem

from dragoman import Records, TurnRequest
from dragoman_openai import errors, history
from dragoman_openai.graph import Graph
from dragoman_openai.history import Limits
from dragoman_openai.session import NAMESPACE, RecordsSession
from dragoman_openai.session_table import Continuation
from dragoman_openai.writes import Writes

if TYPE_CHECKING:
    from agents import RunResultStreaming
    from openai import AsyncOpenAI

MARKS: Final = f"{NAMESPACE}.continuation"

_UNGUARDED: Final = (
    "what the model service keeps would hold answers that an output guardrail refuses; "
    'set continuation = "session", or remove the output guardrails'
)


def unfit(graph: Graph, continuation: Continuation) -> str:
    """Return why agents cannot go on in this way; empty where they can."""
    if continuation == "session":
        return ""
    if graph.guarded:
        return _UNGUARDED
    if graph.asking:
        return (
            f"{', '.join(sorted(graph.asking))} ask a person first, and only a session can wait "
            'for the answer; set continuation = "session", or remove their approval rules'
        )
    return ""


@attrs.frozen
class Mark:
    """What the service calls the past, how many records it knows, and its newest item there.

    ``way`` is the continuation that it belongs to; ``newest`` is of conversations only.
    """

    way: str
    id: str | None = None
    known: int = 0
    newest: str | None = None


@attrs.define(eq=False, kw_only=True)
class ServerPast:
    """A past that the model service keeps, for one turn."""

    session: RecordsSession
    _way: Continuation
    _client: AsyncOpenAI
    _records: Records
    _marks: Records
    _limits: Limits
    _request: TurnRequest
    _writes: Writes
    _log: logging.Logger
    _mark: Mark = attrs.field(init=False)

    async def start(self) -> dict[str, Any]:
        """Return what the service does not know yet as input, and what it calls the rest."""
        self._mark = await self._newest_mark()
        records = await self._records.read()
        if self._way == "conversation":
            await self._begin_conversation(len(records))
        self.session.names_files = history.names_files(history.decode(records))
        unknown = records[self._mark.known :][-self._limits.items :]
        return {"input": history.shape(unknown, self._limits), **self._named()}

    def again(self) -> dict[str, Any]:
        """Return nothing: the state says how it goes on."""
        return {}

    async def ended(self, result: RunResultStreaming, *, finished: bool) -> None:
        """Write down the run's items; after a whole turn, that the service knows them."""
        made = (item for item in result.new_items if not isinstance(item, ToolApprovalItem))
        await self.session.add_items([item.to_input_item() for item in made])
        if not finished:
            return
        known = len(await self._records.read())
        if self._way == "conversation":
            mark = Mark(self._way, self._mark.id, known, await self._newest_item(self._mark.id))
        else:
            mark = Mark(self._way, result.last_response_id, known)
        await self._write(mark)

    async def mended(self, error: Exception) -> bool:
        """Give the service the past anew where it has lost it; the last turn where it refuses it."""
        broken = errors.is_broken_history(error)
        if not broken and not (self._mark.id is not None and errors.is_lost(error)):
            return False
        what = "refuses the history" if broken else "has lost the conversation"
        self._log.warning(
            "session %s: the model service %s; it is given %s anew",
            self._request.session_id,
            what,
            "the last turn" if broken else "the history",
        )
        await self._write(Mark(self._way))
        if broken:
            stored = await self.session.stored()
            await self.session.replace(history.repair(history.last_turn(stored)))
        return True

    async def take_back(self) -> None:
        """Take out of a conversation what the turn has put there; chains just fork."""
        if self._way == "conversation" and self._mark.id is not None:
            await self._rolled_back()

    async def close(self) -> None:
        """Do nothing: there is nothing open."""

    def _named(self) -> dict[str, Any]:
        if self._way == "conversation":
            return {"conversation_id": self._mark.id}
        auto = {"auto_previous_response_id": True} if self._way != "previous_response" else {}
        return {"previous_response_id": self._mark.id, **auto}

    async def _newest_mark(self) -> Mark:
        for record in await self._marks.read(1):
            mark = Mark(**json.loads(record))
            if mark.way == self._way:
                return mark
        return Mark(self._way)

    async def _write(self, mark: Mark) -> None:
        text = json.dumps(attrs.asdict(mark))
        await self._writes(lambda: self._marks.append([text]))
        self._mark = mark

    async def _begin_conversation(self, records: int) -> None:
        """Begin the conversation, or take out of it what no whole turn has put there.

        A turn that did not end as it should may have left calls without their outputs, or the
        message that is now sent again.
        """
        unknown = records - self._mark.known
        whole = self._request.attempt == 1 and unknown == len(self._request.inputs)
        if self._mark.id is not None and not whole and not await self._rolled_back():
            self._mark = Mark(self._way)
        if self._mark.id is None:
            begun = await self._client.conversations.create()
            await self._write(Mark(self._way, begun.id))

    async def _rolled_back(self) -> bool:
        """Delete what is newer than the last whole turn; whether that turn was found."""
        assert self._mark.id is not None
        newer: list[str] = []
        try:
            async for item in self._client.conversations.items.list(self._mark.id, order="desc"):
                if item.id == self._mark.newest:
                    break
                newer.append(str(item.id))
            else:
                if self._mark.known:
                    return False
            for identity in newer:
                await self._client.conversations.items.delete(
                    identity, conversation_id=self._mark.id
                )
        except openai.NotFoundError:
            return False
        return True

    async def _newest_item(self, conversation: str | None) -> str | None:
        """Return the conversation's newest item; ``None`` if it cannot be had now."""
        if conversation is None:
            return None
        try:
            page = await self._client.conversations.items.list(conversation, order="desc", limit=1)
        except openai.OpenAIError:
            return None
        return str(page.data[0].id) if page.data else None
