"""Texts of the gateway cut into messages: everything that people are shown passes here."""

from __future__ import annotations

from typing import Final

import anyio.to_thread
import attrs

from dragoman.capabilities import Capabilities
from dragoman.causes import describe
from dragoman.logs import Log
from dragoman.render.split import GrowingSplit, split

RESERVE: Final = 48
"""Room that every part leaves for a mark that may have to be added to it."""
LARGE_TEXT: Final = 8 * 1024
"""Characters from which on what is new of a text is cut in a worker thread."""


@attrs.define(eq=False)
class Parting:
    """One text that grows, as the parts that a platform can show; asked once at a time."""

    _can: Capabilities
    _log: Log
    _split: GrowingSplit = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._split = GrowingSplit(_limit(self._can), self._can.dialect.length)

    async def parts(self, text: str) -> list[str]:
        """Return the text as it is now in parts."""
        try:
            if self._split.fresh(text) < LARGE_TEXT:
                return self._split.parts(text)
            return await anyio.to_thread.run_sync(self._split.parts, text)
        except Exception as error:  # noqa: BLE001 - an adapter's dialect must not cost the text
            self._log.error("an adapter's dialect failed: %s", describe(error))
            return split(text, _limit(self._can) // 2, len)


async def parts_of(text: str, can: Capabilities, log: Log) -> list[str]:
    """Return a text that does not grow as the parts that a platform can show."""
    return await Parting(can, log).parts(text)


def _limit(can: Capabilities) -> int:
    return max(can.max_text - RESERVE, 64)
