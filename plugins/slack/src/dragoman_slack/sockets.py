"""Socket Mode: several connections that Slack sends events over, each to any one of them.

An envelope is acknowledged only after what it tells is durable. Envelopes of all connections are
taken one after the other, in the order in which they came.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

import anyio
import attrs

from dragoman import Clock, Conflict, PlatformError, RateLimited, Secret, Unauthorized
from dragoman_slack.api import WebApi
from dragoman_slack.connection import Conversation, Lost, Take
from dragoman_slack.fields import as_text
from dragoman_slack.frames import Connection, Envelope, Frame, Hello, Leave, Roster

if TYPE_CHECKING:
    import logging

HELLO: Final = 20.0
"""Seconds within which Slack has to greet a connection."""
GRACE: Final = 12.0
"""Seconds that a connection may go on after its successor stands; Slack warns 10 s ahead."""


@attrs.define(eq=False, kw_only=True)
class Sockets:
    """Keeps the connections of one app."""

    api: WebApi
    token: Secret
    clock: Clock
    log: logging.Logger
    alive: Callable[[], None]
    wanted: int
    ping_interval: float
    _not_before: float = 0.0
    """What Slack's "not before" was when the last connection was lost."""

    async def run(self, take: Take) -> None:
        """Take envelopes until cancelled, or until no connection is left and none can be opened."""
        roster = Roster(self.wanted, self._not_before)
        try:
            await _Keeper(self, roster, take).run()
        finally:
            self._not_before = roster.not_before

    async def address(self) -> str:
        """Ask for the address of a new connection."""
        answer = await self.api.ask("apps.connections.open", self.token)
        url = as_text(answer.body.get("url"))
        if not url.startswith(("wss://", "ws://")):
            msg = "apps.connections.open did not answer with an address"
            raise Lost(msg)
        return url


@attrs.define(eq=False)
class _Keeper:
    """The connections of one run."""

    _own: Sockets
    _roster: Roster
    _take: Take
    _order: anyio.Lock = attrs.field(factory=anyio.Lock)
    _changed: anyio.Event = attrs.field(factory=anyio.Event)
    _failure: Exception | None = None

    async def run(self) -> None:
        """Open what is missing, until nothing is open and the last attempt has failed."""
        clock, roster = self._own.clock, self._roster
        async with anyio.create_task_group() as tasks:
            while True:
                self._changed = changed = anyio.Event()
                if self._failure is not None and not roster.alive:
                    raise self._failure
                wait = roster.not_before - clock.boot() if roster.missing > 0 else math.inf
                if wait <= 0:
                    tasks.start_soon(self._keep, roster.begin())
                elif wait == math.inf:
                    await changed.wait()
                else:
                    with clock.move_on_after(wait):
                        await changed.wait()

    async def _keep(self, connection: Connection) -> None:
        """Hold one connection to its end; what is not the connection's own failure is raised."""
        own, roster = self._own, self._roster
        try:
            await self._hold(connection)
            failure: Exception = Lost("Slack closed the connection")
        except BaseExceptionGroup as group:
            others = group.split(Exception)[1]
            if others is not None:  # cancelled meanwhile, and that is what counts
                raise others from None
            failure = _cause(group)
        except Exception as error:  # noqa: BLE001 - sorted in `_cause`
            failure = _cause(error)
        if isinstance(failure, Conflict) and roster.refused(connection):
            own.log.warning("Slack takes no more sockets of this app than %d", roster.wanted)
        else:
            wait = failure.retry_after if isinstance(failure, RateLimited) else None
            roster.lost(connection, own.clock.boot(), wait)
            # One that worked is replaced; only an attempt that fails can end the run.
            self._failure = None if connection.is_open else failure
            if not connection.leaving:
                own.log.info("socket %d is lost: %s", connection.number, failure)
        self._changed.set()

    async def _hold(self, connection: Connection) -> None:
        own = self._own
        async with (
            anyio.create_task_group() as tasks,
            own.api.socket(await own.address()) as session,
        ):

            def notice(frame: Frame) -> None:
                if isinstance(frame, Hello):
                    connection.since = own.clock.boot()
                    self._failure = None
                elif isinstance(frame, Leave):
                    self._leave(frame, connection)
                    tasks.start_soon(self._retire, tasks.cancel_scope)
                self._changed.set()

            tasks.start_soon(self._greeted, connection)
            talk = Conversation(session, own.clock, own.alive, own.ping_interval)
            await talk.run(self._in_order, notice)
            tasks.cancel_scope.cancel()

    async def _greeted(self, connection: Connection) -> None:
        """End a connection that Slack does not greet: nothing would ever come over it."""
        with self._own.clock.move_on_after(HELLO):
            while not connection.is_open:
                await self._changed.wait()
        if not connection.is_open:
            raise Lost("Slack opened the connection and said nothing")

    async def _in_order(self, envelope: Envelope) -> None:
        async with self._order:
            await self._take(envelope)

    def _leave(self, frame: Leave, connection: Connection) -> None:
        """Note that Slack will close a connection; raises where another would fare no better."""
        if frame.reason == "too_many_websockets":
            msg = "too many sockets of this app are open: ten programs or more use its app_token"
            raise Conflict(msg)
        if frame.reason == "link_disabled":
            msg = "Socket Mode is switched off for this app: switch it on at api.slack.com/apps"
            raise Lost(msg)
        connection.leaving = True

    async def _retire(self, scope: anyio.CancelScope) -> None:
        """End a connection that Slack forgets to close, once there is another in its place."""
        while self._roster.staying < 1:
            await self._changed.wait()
        await self._own.clock.sleep(GRACE)
        scope.cancel()


def _cause(error: BaseException) -> Exception:
    """Return a connection's own failure in our words; raise what is none."""
    import httpx2
    from httpx2.websockets import HTTPXWSException

    vendor = (httpx2.HTTPError, HTTPXWSException, httpx2.InvalidURL)
    streams = (anyio.ClosedResourceError, anyio.BrokenResourceError, anyio.EndOfStream)
    told: Exception | None = None
    name = ""
    for leaf in _leaves(error):
        if isinstance(leaf, PlatformError) and not isinstance(leaf, Unauthorized):
            told = leaf
        elif isinstance(leaf, (*vendor, *streams, OSError)):
            name = name or type(leaf).__name__  # the others follow from the first
        else:
            raise leaf
    return told or Lost(f"the connection failed: {name}")


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions:
            yield from _leaves(one)
    else:
        yield error
