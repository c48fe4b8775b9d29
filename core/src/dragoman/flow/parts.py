"""Texts of the gateway cut into messages: everything that people are shown passes here."""

from __future__ import annotations

from typing import Final

import anyio.to_thread

from dragoman.capabilities import Capabilities
from dragoman.causes import describe
from dragoman.logs import Log
from dragoman.render.split import split

RESERVE: Final = 48
"""Room that every part leaves for a mark that may have to be added to it."""
LARGE_TEXT: Final = 32 * 1024
"""Characters from which on a text is split in a worker thread."""


async def parts_of(text: str, can: Capabilities, log: Log) -> list[str]:
    """Return a text as the parts that a platform can show."""
    limit = max(can.max_text - RESERVE, 64)
    try:
        if len(text) < LARGE_TEXT:
            return split(text, limit, can.dialect.length)
        return await anyio.to_thread.run_sync(split, text, limit, can.dialect.length)
    except Exception as error:  # noqa: BLE001 - an adapter's dialect must not cost the text
        log.error("an adapter's dialect failed: %s", describe(error))
        return split(text, limit // 2, len)
