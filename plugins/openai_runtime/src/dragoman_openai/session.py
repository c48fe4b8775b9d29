"""The SDK's `Session` over the records of a dragoman session."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import attrs
from anyio import to_thread

from dragoman import Records
from dragoman_openai import history
from dragoman_openai.history import Item, Limits
from dragoman_openai.writes import Writes

if TYPE_CHECKING:
    from agents import RunContextWrapper, SessionSettings, TResponseInputItem

NAMESPACE: Final = "openai"
_LOOP_SIZE: Final = 32 * 1024
"""Characters of records above which decoding goes to a worker thread."""

MethodT = TypeVar("MethodT", bound=Callable[..., Any])


def _known(method: MethodT) -> MethodT:
    """Keep a method's signature with it: the SDK asks for all four before each read and write."""
    method.__signature__ = inspect.signature(method)  # type: ignore[attr-defined]
    return method


@attrs.define(eq=False)
class RecordsSession:
    """One session's items, for one run.

    Reading is bounded and gives a history that a model service accepts; nothing that is stored is
    ever changed. All four methods take the SDK's ``wrapper``, as it asks of sessions that may serve
    several runs; this one knows its turn already.
    """

    session_id: str
    _records: Records
    _limits: Limits
    _writes: Writes
    session_settings: SessionSettings | None = None
    stored_messages: int = attrs.field(default=0, init=False)
    """How many messages of the assistant this run has stored."""

    names_files: bool = attrs.field(default=False, init=False)
    """Whether the history that the model was given last tells of files."""

    stored_calls: set[str] = attrs.field(factory=set, init=False)
    """The ids of the calls and outputs that this run has stored."""

    _newest_only: bool = attrs.field(default=False, init=False)

    @_known
    async def get_items(
        self, limit: int | None = None, *, wrapper: RunContextWrapper[Any] | None = None
    ) -> list[TResponseInputItem]:
        """Return the history for a model; with ``limit``, exactly the newest items as stored.

        The SDK names a limit only to see what it stored last.
        """
        del wrapper
        if limit is None:
            stored = await self._records.read(self._limits.items)
            items = _newest(stored) if self._newest_only else await self._shaped(stored)
            self.names_files = history.names_files(items)
            return _typed(items)
        newest = await self._records.read(min(limit, self._limits.items))
        return _typed(history.decode(newest))

    @_known
    async def add_items(
        self,
        items: list[TResponseInputItem],
        *,
        wrapper: RunContextWrapper[Any] | None = None,
    ) -> None:
        """Store items, all or none; durable on return."""
        del wrapper
        if items:
            await self._add([cast("Item", item) for item in items])

    @_known
    async def pop_item(
        self, *, wrapper: RunContextWrapper[Any] | None = None
    ) -> TResponseInputItem | None:
        """Take the newest item out of the history. What was stored is kept by the records."""
        del wrapper
        stored = await self._records.read()
        if not stored:
            return None
        await self._begin_anew(stored[:-1])
        newest = history.decode(stored[-1:])
        return _typed(newest)[0] if newest else None

    @_known
    async def clear_session(self, *, wrapper: RunContextWrapper[Any] | None = None) -> None:
        """Begin an empty history. What was stored is kept by the records."""
        del wrapper
        await self._begin_anew(())

    def keep_last_turn(self) -> None:
        """Give the newest turn only, for a service that refuses what is before it.

        A new generation begins with it when the run stores something: then the service has taken
        it. As long as it has not, the history stays what it was.
        """
        self._newest_only = True

    async def stored(self) -> list[Item]:
        """Return the newest items as they are stored, as many as a model may be sent."""
        return history.decode(await self._records.read(self._limits.items))

    async def replace(self, items: Sequence[Item]) -> None:
        """Begin a history of these items, in one write."""
        await self._begin_anew([history.encode(item) for item in items])

    async def _shaped(self, stored: Sequence[str]) -> list[Item]:
        if sum(map(len, stored)) <= _LOOP_SIZE:
            return history.shape(stored, self._limits)
        return await to_thread.run_sync(history.shape, stored, self._limits)

    async def _add(self, items: Sequence[Item]) -> None:
        encoded = [history.encode(item) for item in items]

        async def append() -> None:
            if self._newest_only:
                kept = _newest(await self._records.read(self._limits.items))
                await self._records.new_generation([*map(history.encode, kept), *encoded])
                self._newest_only = False
            else:
                await self._records.append(encoded)
            self.stored_messages += sum(map(history.is_assistant, items))
            self.stored_calls.update(filter(None, map(history.call_id, items)))

        await self._writes(append)

    async def _begin_anew(self, stored: Sequence[str]) -> None:
        await self._writes(lambda: self._records.new_generation(stored))


def _newest(stored: Sequence[str]) -> list[Item]:
    return history.repair(history.last_turn(history.decode(stored)))


def _typed(items: list[Item]) -> list[TResponseInputItem]:
    return cast("list[TResponseInputItem]", items)
