"""What the model servers of the tests share: a page of scripts, and answers that are streamed.

One server serves many tests: `ScriptedModel.begin` makes a new page of everything that it was told
and saw.
"""

from __future__ import annotations

import asyncio
import json
import threading
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NoReturn, Self

import attrs
from aiohttp import web

from dragoman.testing.runtime_script import Book, Fail, Hold, Line, Step
from peers.loopback import Gone, Loopback

_LOOK: Final = 0.002


@attrs.define(eq=False)
class Page:
    """What one test tells the server, and what the server and a tool beside it saw in it."""

    book: Book = attrs.field(factory=Book)
    asked: list[list[Line]] = attrs.field(factory=list)
    bodies: list[dict[str, Any]] = attrs.field(factory=list, repr=False)
    """Every request as it came."""
    effects: list[str] = attrs.field(factory=list)
    busy: int = 0
    released: threading.Event = attrs.field(factory=threading.Event)


@attrs.frozen
class Pause:
    """Nothing, for so many seconds."""

    seconds: float


@attrs.frozen
class Beats:
    """What is sent while nothing else is, each time that so many seconds have passed."""

    event: dict[str, Any]
    seconds: float


@attrs.define(eq=False)
class ScriptedModel(Loopback):
    """The server, for the length of a ``with`` block."""

    page: Page = attrs.field(factory=Page, init=False)

    def begin(self) -> Page:
        """Begin a new page; what still runs ends on its own."""
        self.page.released.set()
        self.page = Page()
        return self.page

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        assert not self.errors, self.errors

    @abstractmethod
    def heard(self, body: dict[str, Any]) -> Iterator[Line]:
        """Return what a request's history says."""

    def next(self, page: Page, body: dict[str, Any]) -> Sequence[Step]:
        """Keep what was heard, and return what is done next."""
        lines = list(self.heard(body))
        page.asked.append(lines)
        return page.book.next(lines)

    @abstractmethod
    async def answer(
        self, request: web.Request, page: Page, body: dict[str, Any], steps: Sequence[Step]
    ) -> web.StreamResponse:
        """Do the steps of one answer."""

    async def ask(self, request: web.Request) -> web.StreamResponse:
        """Take a model call: what comes next is in the page's book."""
        page = self.page
        page.busy += 1
        try:
            body = await request.json()
            page.bodies.append(body)
            return await self.answer(request, page, body, self.next(page, body))
        except ConnectionError:
            raise Gone from None
        finally:
            page.busy -= 1


async def stream(
    request: web.Request,
    page: Page,
    events: Iterable[dict[str, Any] | Hold | Fail | Pause],
    beats: Beats | None = None,
    lag: float = 0.0,
) -> web.StreamResponse:
    """Send events as they are told, and wait where one says so; a failure cuts the connection.

    It does so ``lag`` seconds after what was sent: some readers drop what comes with the end.
    """
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    for event in events:
        if isinstance(event, Hold):
            await hold(request, page, response, beats)
        elif isinstance(event, Pause):
            await asyncio.sleep(event.seconds)
        elif isinstance(event, Fail):
            await _hang_up(request, lag)
        else:
            await _send(response, event)
    return response


async def _hang_up(request: web.Request, lag: float) -> NoReturn:
    """Close the connection behind what was sent."""
    await asyncio.sleep(lag)
    if request.transport is not None:
        request.transport.close()
        await asyncio.sleep(0)
    raise Gone


async def hold(
    request: web.Request,
    page: Page,
    response: web.StreamResponse | None = None,
    beats: Beats | None = None,
) -> None:
    """Wait until the page is released, as long as somebody is there to be answered."""
    since = asyncio.get_running_loop().time()
    while not page.released.is_set():
        if request.transport is None or request.transport.is_closing():
            raise Gone
        now = asyncio.get_running_loop().time()
        if response and beats and now - since >= beats.seconds:
            since = now
            await _send(response, beats.event)
        await asyncio.sleep(_LOOK)


async def _send(response: web.StreamResponse, event: dict[str, Any]) -> None:
    await response.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
