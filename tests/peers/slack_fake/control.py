"""The fake as a test holds it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Final, Self, TypeVar

import anyio.to_thread

from peers.faults import Callback, Cut, Fault, Faults, Gate, Hold, Reply
from peers.slack_fake.clock import Clock, SystemClock
from peers.slack_fake.connections import Connections
from peers.slack_fake.delivery import Deliverer
from peers.slack_fake.errors import Json, RateLimited, SlackError
from peers.slack_fake.journal import Call, Delivery
from peers.slack_fake.limits import Floodgate, Limits
from peers.slack_fake.messages import Shown
from peers.slack_fake.methods import METHODS
from peers.slack_fake.server import Server
from peers.slack_fake.sockets import Sockets
from peers.slack_fake.workspace import App, Settings, Team, User
from peers.slack_fake.world import World

STATUS_LIFETIME: Final = 120.0
"""R28: seconds after which the status of a thread goes away by itself."""
_BESIDE: Final = frozenset({"upload", "download", "response_url"})

T = TypeVar("T")


class SlackFake(Connections):
    """Slack on loopback for one workspace and one app; a context manager.

    All methods are synchronous unless they say otherwise, and may be called from any thread.
    ``ping_interval`` and ``socket_lifetime`` are in seconds of the clock.
    """

    def __init__(
        self,
        *,
        team: Team | None = None,
        app: App | None = None,
        clock: Clock | None = None,
        limits: Limits | None = None,
        settings: Settings | None = None,
        ping_interval: float = 10.0,
        socket_lifetime: float | None = None,
    ) -> None:
        time = clock or SystemClock()
        who, where = app or App(), team or Team()
        gate = Floodgate(time, limits or Limits())
        world = World(where, who, time, gate, settings or Settings())
        world.users[who.user_id] = User(who.user_id, who.name, who.name, where.id, is_bot=True)
        sockets = Sockets(world, ping_interval, socket_lifetime)
        self._faults = Faults()
        server = Server(world, self._faults, sockets, Deliverer(world, sockets))
        super().__init__(world, server)

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.stop()
        if kind is None and self._server.errors:
            raise RuntimeError("the fake itself failed") from self._server.errors[0]

    @property
    def url(self) -> str:
        """The root of the Web API: calls go to ``{url}{method}``."""
        return f"{self._world.root_url}/api/"

    @property
    def app(self) -> App:
        return self._world.app

    @property
    def team(self) -> Team:
        return self._world.team

    @property
    def mention(self) -> str:
        """What calls the app in a text."""
        return f"<@{self._world.app.user_id}>"

    @property
    def settings(self) -> Settings:
        return self._world.settings

    @property
    def limits(self) -> Limits:
        return self._world.gate.limits

    @limits.setter
    def limits(self, limits: Limits) -> None:
        with self._world.changed:
            self._world.gate.limits = limits

    # What has happened.

    @property
    def calls(self) -> list[Call]:
        """Every call so far, in order of arrival."""
        with self._world.changed:
            return list(self._world.calls)

    def calls_of(self, *methods: str) -> list[Call]:
        """Return the calls of some methods, in order of arrival."""
        return [call for call in self.calls if call.method in methods]

    @property
    def deliveries(self) -> list[Delivery]:
        """Every payload that the app was to get, in order."""
        with self._world.changed:
            return list(self._world.deliveries)

    def deliveries_of(self, *types: str) -> list[Delivery]:
        """Return the payloads of some types of event or interaction, or of some commands."""
        return [one for one in self.deliveries if one.type in types]

    def shown(self, channel: str, thread: str | None = None) -> list[Shown]:
        """Return the messages of a channel in order, deleted ones too; of one thread if named.

        A thread begins with the message that opened it. Ephemeral messages are `ephemerals`.
        """
        with self._world.changed:
            found = self._world.messages.get(channel, {}).values()
            return [one.shown() for one in found if thread is None or one.root == thread]

    def said_by_bot(self, channel: str, thread: str | None = None) -> list[str]:
        """Return what the app sent and a person can see now: texts and Markdown, as sent."""
        return [
            one.source
            for one in self.shown(channel, thread)
            if one.user == self.app.user_id and not one.deleted
        ]

    def ephemerals(self, channel: str, user: str | None = None) -> list[Shown]:
        """Return what was shown to one person only."""
        with self._world.changed:
            return [
                one.shown()
                for one in self._world.ephemerals
                if one.channel.id == channel and user in {None, one.visible_to}
            ]

    def statuses(self, channel: str, thread: str) -> list[str]:
        """Return every status that a thread was given, in order; an empty one took it away."""
        with self._world.changed:
            found = self._world.statuses
            return [one.status for one in found if (one.channel, one.thread) == (channel, thread)]

    def status(self, channel: str, thread: str) -> str:
        """R28: return what a thread says now: a later message of the app takes its status away."""
        with self._world.changed:
            world = self._world
            found = [s for s in world.statuses if (s.channel, s.thread) == (channel, thread)]
            if not found or world.clock.time() >= found[-1].at + STATUS_LIFETIME:
                return ""
            messages = world.messages.get(channel, {}).values()
            own = [m for m in messages if m.root == thread and m.user == world.app.user_id]
            later = any(m.ts != thread and m.versions[0].at > found[-1].at for m in own)
            return "" if later else found[-1].status

    def prompts(self, channel: str, thread: str) -> Json | None:
        """Return the prompts that a thread suggests, with their title."""
        with self._world.changed:
            return self._world.prompts.get((channel, thread))

    def title(self, channel: str, thread: str) -> str:
        with self._world.changed:
            return self._world.titles.get((channel, thread), "")

    def views(self) -> list[Json]:
        """Return every dialog that was opened, as it is now."""
        with self._world.changed:
            return list(self._world.views.values())

    def file(self, file_id: str) -> bytes:
        with self._world.changed:
            return self._world.files.content(file_id)

    def file_name(self, file_id: str) -> str:
        with self._world.changed:
            return str(self._world.files.json(file_id, self._world).get("name", ""))

    def until(self, predicate: Callable[[], T], limit: float = 10.0) -> T:
        """Wait until ``predicate`` holds, looked at after every change; return what it returned."""
        with self._world.changed:
            found = self._world.changed.wait_for(predicate, limit)
            if not found:
                calls = [f"{c.method} {c.stage} {c.error} {c.fate}" for c in self.calls[-10:]]
                sent = [f"{d.type} {len(d.attempts)} {d.fate}" for d in self.deliveries[-10:]]
                raise TimeoutError(f"not within {limit} s; the last were {calls} and {sent}")
            return found

    async def reached(self, predicate: Callable[[], T], limit: float = 10.0) -> T:
        """The same without blocking the caller's loop."""
        return await anyio.to_thread.run_sync(self.until, predicate, limit)

    # What is to go wrong.

    def on_call(self, callback: Callback | None) -> None:
        """Ask ``callback`` at every stage of every call; its answer is what happens next.

        A coroutine function runs in the server's loop, any other function in a thread of its own,
        where it may block: the call stands still meanwhile, others go on. ``call.stage`` tells the
        stage. ``None``, as the callback or as its answer, lets calls go on.
        """
        self._faults.callback = callback

    def refuse(
        self,
        method: str,
        error: str,
        *,
        count: int | None = 1,
        apply: bool = False,
        **more: Any,
    ) -> None:
        """Refuse the next calls of a method: they do not happen, or do and it is not said."""
        refusal = SlackError(error, **more)
        self._plan(method, apply, Reply(200, refusal.body, refusal.headers), count)

    def rate_limit(self, method: str, retry_after: int = 1, *, count: int | None = 1) -> None:
        """R2: answer the next calls of a method with 429."""
        error = RateLimited(retry_after)
        self._plan(method, False, Reply(429, error.body, error.headers), count)

    def fail(
        self,
        method: str,
        status: int = 500,
        body: bytes = b"<html>something went wrong</html>",
        *,
        headers: Mapping[str, str] | None = None,
        count: int | None = 1,
        apply: bool = False,
    ) -> None:
        """Answer the next calls of a method with what is no answer of the API."""
        given = {"Content-Type": "text/html", **(headers or {})}
        self._plan(method, apply, Reply(status, body, given), count)

    def cut(self, method: str, *, after_apply: bool = False, count: int | None = 1) -> None:
        """Reset the connection of the next calls, before or after they happen."""
        self._plan(method, after_apply, Cut(), count)

    def hold(self, method: str, *, after_apply: bool = False, count: int | None = 1) -> Gate:
        """Stop the next calls, before or after they happen, until the gate is opened."""
        gate = Gate(self._server.loop)
        self._plan(method, after_apply, Hold(gate), count)
        return gate

    def heal(self) -> None:
        """Forget every fault of a call that has not happened yet."""
        self._faults.drop()

    def _plan(
        self, method: str, applied: bool, action: Cut | Hold | Reply, count: int | None
    ) -> None:
        if method not in METHODS and method not in _BESIDE:
            raise LookupError(f"there is no method {method}")
        self._faults.plan(Fault(method, "applied" if applied else "arrived", action, count))
