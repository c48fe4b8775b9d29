"""An answer is whole with its last event, whether or not the server then closes the stream.

Some servers and proxies leave it open. The SDK reads to the end of the stream, so that a turn whose
answer everybody has seen would run on until the silence is too long.
"""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import AsyncIterator
from typing import Final

import attrs
import httpx2

from dragoman import Clock

SECONDS: Final = 2.0
"""How long the end of a stream is waited for behind its last event."""

_LAST: Final = re.compile(
    rb"^(?:event: ?response\.(?:completed|incomplete|failed)\r?\n"
    rb'|data: ?\{"type": ?"response\.(?:completed|incomplete|failed)")',
    re.MULTILINE,
)
_BLANK: Final = re.compile(rb"\r?\n\r?\n")
_LONGEST: Final = 64
"""Bytes that the beginning of a last event can have."""


@attrs.define(eq=False)
class LastEvent:
    """Looks for the last event in the bytes of a stream. ``seen`` when all of it was there."""

    seen: bool = False
    _begun: bool = False
    _rest: bytes = b"\n"

    def feed(self, part: bytes) -> None:
        """Take the next bytes."""
        text = self._rest + part
        if not self._begun and (found := _LAST.search(text)):
            self._begun, text = True, text[found.start() :]
        self.seen = self.seen or (self._begun and _BLANK.search(text) is not None)
        self._rest = text[-_LONGEST:]


@attrs.define(eq=False)
class Bounded(httpx2.AsyncByteStream):
    """A stream that ends soon after its last event."""

    _stream: httpx2.AsyncByteStream
    _clock: Clock
    _log: logging.Logger

    async def __aiter__(self) -> AsyncIterator[bytes]:
        parts, last = aiter(self._stream), LastEvent()
        while not last.seen:
            part = await anext(parts, None)
            if part is None:
                return
            last.feed(part)
            yield part
        # What happens to the connection now does not matter to the answer.
        with (
            self._clock.move_on_after(SECONDS) as scope,
            contextlib.suppress(httpx2.TransportError),
        ):
            async for _ in parts:
                pass
        if scope.cancelled_caught:
            self._log.warning(
                "the model server left a stream open behind its end; it is not waited for"
            )

    async def aclose(self) -> None:
        """Close the connection, or give it back where it was read to its end."""
        await self._stream.aclose()


@attrs.frozen
class Bounding:
    """A hook of the client: bounds each stream of events."""

    _clock: Clock
    _log: logging.Logger

    async def __call__(self, response: httpx2.Response) -> None:
        """Bound a response before anybody reads it."""
        kind = response.headers.get("content-type", "")
        if kind.startswith("text/event-stream") and isinstance(
            response.stream, httpx2.AsyncByteStream
        ):
            response.stream = Bounded(response.stream, self._clock, self._log)
