"""An application that another component mounted: its lifespan, and a border around its failures."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final, TypeAlias

import anyio
import attrs

from dragoman import Clock, Mount

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]

STARTUP: Final = 10.0
"""How long a request waits for its application to have started, seconds."""
LAST_ANSWERS: Final = 1.0
"""How long requests go on when the listener closes, seconds; some would never end by themselves."""
SHUTDOWN: Final = 1.0
"""How long an application may take to shut down before it is cancelled, seconds."""


@attrs.define(eq=False)
class MountedApp:
    """An ASGI application. What it raises ends one request; `live` keeps its lifespan."""

    mount: Mount
    _clock: Clock
    _log: logging.Logger
    _state: dict[str, Any] = attrs.field(init=False, factory=dict)
    _started: anyio.Event = attrs.field(init=False, factory=anyio.Event)
    _failed: bool = attrs.field(init=False, default=False)
    _requests: set[anyio.CancelScope] = attrs.field(init=False, factory=set)
    _closing: anyio.Event = attrs.field(init=False, factory=anyio.Event)
    _ending: anyio.Event = attrs.field(init=False, factory=anyio.Event)
    _over: anyio.Event = attrs.field(init=False, factory=anyio.Event)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Let the application answer; answer in its place where it does not."""
        with self._clock.move_on_after(STARTUP):
            await self._started.wait()
        if self._failed or not self._started.is_set():
            await _answer(scope, send, 503)
            return
        begun = False

        async def watched(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        with anyio.CancelScope() as request:
            self._requests.add(request)
            try:
                await self.mount.app({**scope, "state": dict(self._state)}, receive, watched)
            except Exception as error:  # noqa: BLE001 - an application is its own component's code
                self._report("failed to answer", error)
                if not begun:
                    await _answer(scope, send, 500)
            finally:
                self._requests.discard(request)
        if request.cancelled_caught and not begun:
            await _answer(scope, send, 503)

    async def live(self) -> None:
        """Start the application, end its requests after `close`, and shut it down at `end`."""
        with anyio.CancelScope(shield=True):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._lifespan)
                await self._closing.wait()
                with self._clock.move_on_after(LAST_ANSWERS):
                    await self._ending.wait()
                for request in list(self._requests):
                    request.cancel()
                await self._ending.wait()
                with self._clock.move_on_after(SHUTDOWN):
                    await self._over.wait()
                tasks.cancel_scope.cancel()

    def close(self) -> None:
        """Say that no new request comes."""
        self._closing.set()

    def end(self) -> None:
        """Ask the application to shut down: no request is being answered any more."""
        self._closing.set()
        self._ending.set()

    async def _lifespan(self) -> None:
        asgi = {"version": "3.0", "spec_version": "2.0"}
        scope = {"type": "lifespan", "asgi": asgi, "state": self._state}
        told = False

        async def receive() -> Message:
            nonlocal told
            if not told:
                told = True
                return {"type": "lifespan.startup"}
            await self._ending.wait()
            return {"type": "lifespan.shutdown"}

        try:
            await self.mount.app(scope, receive, self._lifespan_said)
        except Exception as error:  # noqa: BLE001 - an application is its own component's code
            # Before it has started, this is how an application says that it has no lifespan.
            if self._started.is_set():
                self._report("failed in its lifespan", error)
        finally:
            self._started.set()
            self._over.set()

    async def _lifespan_said(self, message: Message) -> None:
        kind: str = message["type"]
        if kind.endswith(".failed"):
            self._failed = True
            self._log.error("%s of %s: %s", self.mount.path, self.mount.owner, kind)
        if kind.startswith("lifespan.startup."):
            self._started.set()
        else:
            self._over.set()

    def _report(self, what: str, error: Exception) -> None:
        # Not the error's text: it may quote what a person wrote.
        line = "%s of %s %s: %s"
        self._log.error(line, self.mount.path, self.mount.owner, what, type(error).__name__)
        self._log.debug("what happened:", exc_info=error)


async def _answer(scope: Message, send: Send, status: int) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1011})
        return
    text = b"Internal Server Error" if status == 500 else b"Service Unavailable"
    headers = [(b"content-type", b"text/plain"), (b"content-length", b"%d" % len(text))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text})
