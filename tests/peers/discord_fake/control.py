"""The fake as a test holds it."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Iterable
from types import TracebackType
from typing import Any, Final, Self, TypeVar

import anyio.to_thread
import attrs
from aiohttp import web

from peers.clock import Clock, SystemClock
from peers.discord_fake.acting import Acting
from peers.discord_fake.calling import API, Caller
from peers.discord_fake.endpoint import Delivery, Endpoint, Signature, ping
from peers.discord_fake.faulty import Faulty
from peers.discord_fake.files import Shelf
from peers.discord_fake.gateway import Gateway
from peers.discord_fake.interactions import Interaction
from peers.discord_fake.journal import Call, Frame
from peers.discord_fake.limits import Buckets, Limits
from peers.discord_fake.messages import Shown
from peers.discord_fake.places import User
from peers.discord_fake.sessions import Budget, Session
from peers.discord_fake.snowflakes import Snowflakes
from peers.discord_fake.world import Typing, World
from peers.faults import Faults
from peers.loopback import Loopback

BOT: Final = 800_000_000_000_000_001
OWNER: Final = 800_000_000_000_000_002
TOKEN: Final = (
    base64.b64encode(str(BOT).encode()).decode().rstrip("=") + ".FAKE00.a-bot-that-is-nowhere"
)

T = TypeVar("T")


@attrs.define(eq=False)
class _Server(Loopback):
    _answer: Callable[[web.Request], Awaitable[web.StreamResponse]]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        return await self._answer(request)


class DiscordFake(Acting, Faulty):
    """A Discord on loopback for one bot; a context manager.

    All methods are synchronous unless they say otherwise, and may be called from any thread.
    ``strict`` refuses fields of messages that the reference does not name, and clients that do
    not say what they are. ``heartbeat`` is in seconds. Windows (of
    nonces, tokens of interactions, sessions and links) follow ``clock``; ``session_life``,
    ``nonce_window`` and ``link_life`` are their lengths in seconds. ``privileged`` names the
    intents that are switched on: ``members``, ``presences``, ``message_content``.
    ``heartbeat_patience`` cuts off clients that send no heartbeat for so many real seconds.
    """

    def __init__(
        self,
        *,
        token: str = TOKEN,
        username: str = "dragoman",
        clock: Clock | None = None,
        strict: bool = True,
        limits: Limits | None = None,
        heartbeat: float = 41.25,
        heartbeat_patience: float | None = None,
        privileged: Iterable[str] = ("members", "message_content"),
        session_life: float = 180.0,
        nonce_window: float = 300.0,
        link_life: float = 86_400.0,
        identifies: int = 1000,
        callback_patience: float = 3.0,
    ) -> None:
        time = clock or SystemClock()
        ids = Snowflakes(time)
        bot = User(BOT, username, bot=True)
        world = World(
            bot,
            token,
            time,
            ids,
            Shelf(time, ids, link_life),
            Budget(time, identifies),
            frozenset(privileged),
            owner=OWNER,
            verify_key="",
            nonce_window=nonce_window,
            strict=strict,
        )
        world.users = {BOT: bot, OWNER: User(OWNER, "owner")}
        self._endpoint = Endpoint(world, patience=callback_patience)
        world.verify_key = self._endpoint.verify_key
        caller = Caller(world, Faults(), Buckets(time, limits or Limits()), strict)
        gateway = Gateway(world, heartbeat, session_life, heartbeat_patience)
        Acting.__init__(self, world)
        Faulty.__init__(self, world, caller, gateway, _Server(self._handle))

    def __enter__(self) -> Self:
        world = self._world
        self._server.start()
        world.shelf.base = self.url
        world.gateway_url = self.url.replace("http", "ws", 1)
        world.resume_url = f"{world.gateway_url}/resume"
        world.on_event = lambda: self._server.soon(self._gateway.wake)
        world.on_interaction = lambda one: self._server.soon(
            lambda: self._server.spawn(self._endpoint.deliver(one))
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._world.on_event = lambda: None
        self._server.stop()
        if kind is None and self._server.errors:
            raise RuntimeError("the fake itself failed") from self._server.errors[0]

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        if request.path.startswith(f"{API}/"):
            return await self._caller.handle(request)
        if request.path.startswith("/attachments/"):
            return self._download(request)
        if request.headers.get("Upgrade", "").lower() == "websocket":
            return await self._gateway.handle(request)
        return web.json_response({"message": "404: Not Found", "code": 0}, status=404)

    def _download(self, request: web.Request) -> web.Response:
        with self._world.changed:
            path = request.path.removeprefix("/attachments/")
            found = self._world.shelf.download(path, request.query)
        if found is None:
            return web.Response(status=404, text="This content is no longer available.")
        return web.Response(body=found.content, content_type=found.media_type)

    @property
    def url(self) -> str:
        """The server's root, also of links to files."""
        return f"http://127.0.0.1:{self._server.port}"

    @property
    def api(self) -> str:
        """Where calls go to."""
        return f"{self.url}{API}"

    @property
    def gateway_url(self) -> str:
        return self._world.gateway_url

    @property
    def token(self) -> str:
        return self._world.token

    @property
    def bot_id(self) -> int:
        """The id of the bot, and of its application."""
        return self._world.bot.id

    @property
    def owner_id(self) -> int:
        """The id of the person who owns the application and every guild."""
        return self._world.owner

    @property
    def verify_key(self) -> str:
        """The public key for what is posted to an endpoint, in hexadecimal."""
        return self._world.verify_key

    # What has happened.

    @property
    def calls(self) -> list[Call]:
        """Every call so far, in order of arrival."""
        with self._world.changed:
            return list(self._world.calls)

    def calls_of(self, *methods: str) -> list[Call]:
        """Return the calls of some routes, in order of arrival."""
        return [call for call in self.calls if call.method in methods]

    @property
    def frames(self) -> list[Frame]:
        """Every frame that clients sent to the gateway, in order."""
        with self._world.changed:
            return list(self._world.frames)

    @property
    def sessions(self) -> list[Session]:
        """The sessions that could be resumed or are in use."""
        with self._world.changed:
            return list(self._world.sessions.values())

    def shown(self, channel: int) -> list[Shown]:
        """Return what everybody sees in a channel now, oldest first."""
        return [one for one in self.everything(channel) if not one.deleted and not one.seen_by]

    def everything(self, channel: int) -> list[Shown]:
        """Return all messages of a channel, also those deleted, and those for one person."""
        with self._world.changed:
            place = self._world.channels[channel]
            return [one.shown() for one in self._world.history(place)]

    def whispered(self, channel: int, user: int) -> list[Shown]:
        """Return what one person alone sees in a channel."""
        found = self.everything(channel)
        return [one for one in found if one.seen_by == user and not one.deleted]

    def said_by_bot(self, channel: int) -> list[str]:
        """Return the texts of the bot's messages that everybody sees now."""
        return [one.displayed for one in self.shown(channel) if one.author == self.bot_id]

    def message(self, message: int) -> Shown:
        with self._world.changed:
            return self._world.messages[message].shown()

    def typings(self, channel: int) -> list[Typing]:
        """Return when the bot was shown to be writing."""
        with self._world.changed:
            found = self._world.typings
            return [one for one in found if (one.channel, one.user) == (channel, self.bot_id)]

    def commands(self, guild: int | None = None) -> list[str]:
        """Return the names of the commands for everywhere, or of one guild."""
        with self._world.changed:
            return [one["name"] for one in self._world.commands.get(guild, [])]

    def thread_named(self, name: str) -> int:
        """Return the id of a thread."""
        with self._world.changed:
            found = self._world.channels.values()
            return next(one.id for one in found if one.is_thread and one.name == name)

    # Interactions over HTTP.

    @property
    def endpoint(self) -> str:
        """Where interactions are posted to; empty sends them over the gateway."""
        return self._world.endpoint

    @endpoint.setter
    def endpoint(self, url: str) -> None:
        with self._world.changed:
            self._world.endpoint = url

    def ping(self, url: str, signature: Signature = "good") -> Delivery:
        """I8: ask an endpoint whether it is there, as Discord does with good and bad signatures."""
        delivery = Delivery(signature)
        body = ping(self._world)
        self._server.soon(lambda: self._server.spawn(self._endpoint.post(url, body, delivery)))
        return delivery

    def post_to(self, url: str, body: Any, signature: Signature = "good") -> Delivery:
        """Post anything to an endpoint."""
        delivery = Delivery(signature)
        self._server.soon(lambda: self._server.spawn(self._endpoint.post(url, body, delivery)))
        return delivery

    # Waiting.

    def until(self, predicate: Callable[[], T], limit: float = 10.0) -> T:
        """Wait until ``predicate`` holds, looked at after every change; return what it returned."""
        with self._world.changed:
            found = self._world.changed.wait_for(predicate, limit)
            if not found:
                last = [f"{c.method} {c.stage} {c.status} {c.fate}" for c in self.calls[-20:]]
                raise TimeoutError(f"not within {limit} s; the last calls were {last}")
            return found

    async def reached(self, predicate: Callable[[], T], limit: float = 10.0) -> T:
        """The same without blocking the caller's loop."""
        return await anyio.to_thread.run_sync(self.until, predicate, limit)


__all__ = ["BOT", "OWNER", "TOKEN", "DiscordFake", "Interaction"]
