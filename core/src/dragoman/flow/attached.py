"""The files that a turn's tools hand over, until they are rows of the ledger behind its answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import attrs

from dragoman.capabilities import Capabilities
from dragoman.flow.parts import RESERVE, parts_of
from dragoman.hookspecs import Drop
from dragoman.keys import new_id
from dragoman.logs import Log
from dragoman.outbox.files import Files
from dragoman.render.text import is_blank, sanitise
from dragoman.states import DeliveryState
from dragoman.store.operations import Delivery, Part, StoredFile, TurnGrant

MOST: Final = 20
"""Files that one turn may attach."""


@attrs.define(eq=False)
class Attached:
    """The files of one turn with their captions, in the order in which they were made."""

    _files: Files
    _grant: TurnGrant
    _can: Capabilities
    _allow: Callable[[str], Awaitable[str | Drop]]
    """Lets plugins change what people are shown."""
    _log: Log
    _made: list[tuple[StoredFile, str]] = attrs.field(factory=list)

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._made)

    async def add(self, name: str, data: bytes, mime: str, kind: str, caption: str) -> None:
        """Keep a copy of a file. Raises `ValueError` for one that cannot be sent, or is too much."""
        if len(self._made) >= MOST:
            msg = f"no more than {MOST} files are sent in one turn; put several into an archive"
            raise ValueError(msg)
        words = "" if is_blank(caption) else await self.allowed(caption)
        self._made.append((await self._files.keep(name, data, mime, kind), words))

    async def allowed(self, text: str) -> str:
        """Return words beside an answer as plugins let them be; `ValueError` where one objects."""
        words = await self._allow(text)
        if isinstance(words, Drop):
            turn_id = self._grant.lease.turn_id
            self._log.warning("turn %s: words withheld: %s", turn_id, words.reason)
            msg = "a rule of the deployment withholds this"
            raise ValueError(msg)  # noqa: TRY004 - the plugin's word, no wrong type
        return sanitise(words)

    async def withhold(self) -> None:
        """Send none of them."""
        while self._made:
            await self._files.drop(self._made.pop()[0])

    async def rows(self, first: int, *, alone: bool) -> tuple[list[Part], list[Delivery]]:
        """Return the parts from number ``first`` on, and the same as what is to be sent.

        Without a text before it the first answers the message, where others may write, too.
        """
        event, owed = self._grant.inputs[0].inbound, list[Delivery]()
        for file, caption in self._made:
            *before, last = await self._captions(caption)
            for text, shown in [*((text, None) for text in before), (last, file)]:
                owed.append(
                    Delivery(
                        id=new_id("msg"),
                        address=event.address,
                        text=text,
                        state=DeliveryState.PENDING,
                        reply_to=event.reply_to if alone and not owed else "",
                        turn_id=self._grant.lease.turn_id,
                        file=shown,
                    )
                )
        return [
            Part(delivery_id=one.id, number=number, text=one.text, file=one.file)
            for number, one in enumerate(owed, first)
        ], owed

    async def _captions(self, caption: str) -> list[str]:
        """Return a caption as texts before its file, and what there is room for with it."""
        room = self._can.files.caption if self._can.files else 0
        if room >= 64 + RESERVE:
            texts = await parts_of(caption, attrs.evolve(self._can, max_text=room), self._log)
            if len(texts) == 1:
                return texts
        return [*await parts_of(caption, self._can, self._log), ""]
