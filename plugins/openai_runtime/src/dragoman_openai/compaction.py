"""Shortening a long history between two turns, by the model service.

It works on a copy. What comes of it begins a new generation of the history in one write, so what
was stored stays stored, and a crash at any moment leaves the one history in force or the other.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import attrs
import openai

from dragoman_openai import history
from dragoman_openai.calls import followed
from dragoman_openai.history import Item
from dragoman_openai.session_table import CompactTable

if TYPE_CHECKING:
    from agents import SessionSettings
    from openai import AsyncOpenAI


@attrs.frozen
class Compactor:
    """Compacts as a table says, by the SDK's own session for it, triggered by hand."""

    _table: CompactTable
    _client: AsyncOpenAI
    _most: int
    """Items in all from which it is due, too: before the history is cut."""
    _log: logging.Logger

    async def shortened(self, session_id: str, items: Sequence[Item]) -> list[Item] | None:
        """Return a shorter history for a turn that has begun, its messages included.

        ``None`` where none is due, or none can be had: the turn then goes on with the long one.
        """
        starts = history.turn_starts(items)
        before = history.repair(items[: starts[-1]]) if starts else []
        if sum(map(_counts, before)) < self._table.above and len(before) < self._most:
            return None
        try:
            compacted = await self._compacted(session_id, before)
        except (openai.OpenAIError, ValueError) as error:
            self._log.warning(
                "session %s: the history could not be compacted (%s)",
                session_id,
                type(error).__name__,
            )
            return None
        if not 0 < len(compacted) < len(before):
            return None
        return [*compacted, *items[starts[-1] :]]

    async def _compacted(self, session_id: str, items: list[Item]) -> list[Item]:
        from agents.memory import OpenAIResponsesCompactionSession

        copied = _Copy(session_id, items)
        session = OpenAIResponsesCompactionSession(
            session_id,
            copied,
            client=self._client,
            model=self._table.model,
            compaction_mode="input",
            should_trigger_compaction=lambda _: False,
        )
        with followed(self._table.model) as call:
            await session.run_compaction({"force": True})
            call.completed()
        return copied.items


@attrs.define(eq=False)
class _Copy:
    """A session in memory, for the length of one compaction."""

    session_id: str
    items: list[Item]
    session_settings: SessionSettings | None = None

    async def get_items(self, limit: int | None = None) -> list[Any]:
        return self.items if limit is None else self.items[max(len(self.items) - limit, 0) :]

    async def add_items(self, items: list[Any]) -> None:
        self.items = [*self.items, *(cast("Item", item) for item in items)]

    async def pop_item(self) -> Any:
        return self.items.pop() if self.items else None

    async def clear_session(self) -> None:
        self.items = []


def _counts(item: Item) -> bool:
    return not history.is_user(item) and item.get("type") != "compaction"
