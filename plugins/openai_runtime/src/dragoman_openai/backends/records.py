"""The `dragoman.Records` of a session whose history is kept outside.

Which name a history has there is in dragoman's own store. To begin anew is to write under a fresh
name and then to change to it: one fenced write, before which the old history is in force and after
which the new one is. What is stored outside is not changed, and deleted only by `take_back`.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

import anyio
import attrs

from dragoman import Clock, DragomanError, FailureKind, Records, RuntimeFailed, TurnHost
from dragoman_openai.backends.backend import Backend
from dragoman_openai.history import encode

if TYPE_CHECKING:
    from agents.memory import Session

READING: Final = 10.0
"""Seconds after which a read counts as failed."""

T = TypeVar("T")


@attrs.define(eq=False)
class OutsideRecords:
    """One session's history in a back end, for one turn.

    A write asks first whether the turn still holds its session. The back end itself knows of no
    such thing, so a turn that loses its session in that very moment can still write.

    Raises `dragoman.RuntimeFailed` (``transport``) for whatever the back end raises.
    """

    _backend: Backend
    _host: TurnHost
    _names: Records
    _session_id: str
    _clock: Clock
    _session: Session | None = attrs.field(default=None, init=False)
    _name: str | None = attrs.field(default=None, init=False)
    """The name that was in force when the turn began."""
    _lock: anyio.Lock = attrs.field(factory=anyio.Lock, init=False)

    @property
    def opaque(self) -> bool:
        """Whether items come back exactly as they were given."""
        return self._backend.opaque

    async def read(self, limit: int | None = None) -> Sequence[str]:
        """Return the newest items, oldest first."""
        session = await self._present()
        items: list[Any] = await self._bounded(lambda: session.get_items(limit))
        return [encode(item) for item in self._backend.taken(items)]

    async def append(self, items: Sequence[str]) -> None:
        """Add items in order: all or none, as far as the back end can do that."""
        if items:
            await self._host.still_ours()
            await self._add(await self._present(), items)

    async def new_generation(self, items: Sequence[str] = ()) -> None:
        """Go on with ``items``; what was there is kept and no longer read."""
        await self._host.still_ours()
        name, session = await self._fresh()
        try:
            await self._add(session, items)
            await self._take(name)
        except BaseException:
            await self._release(session)
            raise
        old, self._session = self._session, session
        await self._release(old)

    async def take_back(self, added: Callable[[Sequence[str]], int]) -> None:
        """Delete the newest items, as many as ``added`` says of all: no history must have them.

        Core takes the turn's own records back, and with them each name that the turn has begun. So
        it is the history that was in force before of which items are deleted.
        """
        await self._host.still_ours()
        if self._name is None:
            return
        session = await self._made(self._name)
        try:
            items = await self._bounded(session.get_items)
            for _ in range(added([encode(item) for item in items])):
                await self._asked(session.pop_item)
        finally:
            await self._release(session)

    async def ran(self, result: Any) -> None:
        """Hand a run's result to a session that counts what its turns use."""
        count: Any = getattr(self._session, "store_run_usage", None)
        if count is not None:
            await self._asked(lambda: count(result))

    async def close(self) -> None:
        """Let go of what this turn has open."""
        session, self._session = self._session, None
        await self._release(session)

    async def _present(self) -> Session:
        """Return the session of the name in force; the first use of all makes one."""
        async with self._lock:
            if self._session is None:
                self._session = await self._known_or_first()
            return self._session

    async def _known_or_first(self) -> Session:
        self._name = await self._known()
        if self._name is not None:
            return await self._made(self._name)
        name, session = await self._fresh()
        await self._take(name)
        return session

    async def _known(self) -> str | None:
        for record in await self._names.read(1):
            known = json.loads(record)
            if known["backend"] == self._backend.kind:
                return str(known["name"])
        return None

    async def _fresh(self) -> tuple[str, Session]:
        name = await self._asked(lambda: self._backend.name(self._session_id))
        return name, await self._made(name)

    async def _made(self, name: str) -> Session:
        return await self._asked(lambda: self._backend.make(name))

    async def _take(self, name: str) -> None:
        await self._names.append([json.dumps({"backend": self._backend.kind, "name": name})])

    async def _add(self, session: Session, items: Sequence[str]) -> None:
        made: list[Any] = self._backend.given([json.loads(item) for item in items])
        if made:
            await self._asked(lambda: session.add_items(made))

    async def _release(self, session: Session | None) -> None:
        if session is not None:
            with (
                anyio.CancelScope(shield=True),
                self._clock.move_on_after(READING),
                suppress(Exception),  # what was written is written
            ):
                await self._backend.release(session)

    async def _bounded(self, operation: Callable[[], Awaitable[T]]) -> T:
        with self._clock.move_on_after(READING) as scope:
            result = await self._asked(operation)
        if not scope.cancelled_caught:
            return result
        msg = f"the session back end {self._backend.kind} did not answer within {READING:g} s"
        raise RuntimeFailed(FailureKind.TRANSPORT, msg)

    async def _asked(self, operation: Callable[[], Awaitable[T]]) -> T:
        try:
            return await operation()
        except DragomanError:
            raise
        except Exception as error:
            msg = f"the session back end {self._backend.kind} failed: {type(error).__name__}"
            raise RuntimeFailed(FailureKind.TRANSPORT, msg) from error
