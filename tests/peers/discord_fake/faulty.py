"""What is to go wrong: with calls, and with the gateway."""

from __future__ import annotations

import json
import secrets
from collections.abc import Coroutine, Mapping
from typing import Any, Literal

from peers.discord_fake.calling import Caller
from peers.discord_fake.connections import Connection
from peers.discord_fake.errors import DiscordError
from peers.discord_fake.gateway import HEARTBEAT, INVALID, RECONNECT, Gateway
from peers.discord_fake.limits import Limited, Limits
from peers.discord_fake.routes import NAMES
from peers.discord_fake.world import World
from peers.faults import Callback, Cut, Fault, Gate, Hold, Reply, Stage
from peers.loopback import Loopback

_HTML = "<!DOCTYPE html><html><head><title>discord.com | {status}</title></head></html>"
_JSON = {"Content-Type": "application/json", "Via": "1.1 google"}


class Faulty:
    """Faults of the REST side name a route, as `peers.discord_fake.routes` does.

    Each happens to the next ``count`` calls of it; ``None`` is every call. Faults of the gateway
    have happened when their methods return.
    """

    def __init__(self, world: World, caller: Caller, gateway: Gateway, server: Loopback) -> None:
        self._world = world
        self._caller = caller
        self._gateway = gateway
        self._server = server

    # Calls.

    def on_call(self, callback: Callback | None) -> None:
        """Ask ``callback`` at every stage of every call; its answer is what happens next.

        A coroutine function runs in the server's loop, any other function in a thread of its own,
        where it may block: the call stands still meanwhile, others go on. ``call.stage`` tells the
        stage. ``None``, as the callback or as its answer, lets calls go on.
        """
        self._caller.faults.callback = callback

    def fail(
        self,
        method: str,
        status: int = 500,
        code: int = 0,
        message: str = "",
        *,
        count: int | None = 1,
        apply: bool = False,
    ) -> None:
        """Refuse calls: they do not happen, or do (``apply``) and it is not said."""
        body = DiscordError(status, code, message or f"{status}: error").body
        self._plan(method, apply, Reply(status, body, _JSON), count)

    def limit(
        self,
        method: str,
        retry_after: float = 0.1,
        *,
        count: int | None = 1,
        scope: Literal["user", "global", "shared"] = "user",
        headers: bool = True,
    ) -> None:
        """L3: answer with 429; without ``headers`` only the body says how long to wait."""
        error = Limited(retry_after, scope)
        more = self._caller.buckets.refused(method, error) if headers else {}
        self._plan(method, False, Reply(429, error.body, {**_JSON, **more}), count)

    def ban(self, method: str, *, count: int | None = 1, retry_after: int = 600) -> None:
        """L5: answer with the 429 that a proxy gives to banned addresses: no JSON, no ``Via``."""
        body = b"error code: 1015"
        headers = {"Content-Type": "text/plain", "Via": "", "Retry-After": str(retry_after)}
        self._plan(method, False, Reply(429, body, headers), count)

    def garble(
        self, method: str, status: int = 502, *, count: int | None = 1, apply: bool = False
    ) -> None:
        """Answer with a page for people, as proxies do."""
        body = _HTML.format(status=status).encode()
        headers = {"Content-Type": "text/html", "Via": ""}
        self._plan(method, apply, Reply(status, body, headers), count)

    def answer(
        self,
        method: str,
        status: int,
        body: Any,
        *,
        count: int | None = 1,
        apply: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Answer with anything: bytes, or what becomes JSON."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self._plan(method, apply, Reply(status, content, {**_JSON, **(headers or {})}), count)

    def cut(self, method: str, *, after_apply: bool = False, count: int | None = 1) -> None:
        """Reset the connection of calls, before or after they happen."""
        self._plan(method, after_apply, Cut(), count)

    def hold(self, method: str, *, after_apply: bool = False, count: int | None = 1) -> Gate:
        """Stop calls, before or after they happen, until the gate is opened."""
        gate = Gate(self._server.loop)
        self._plan(method, after_apply, Hold(gate), count)
        return gate

    def heal(self) -> None:
        """Forget every fault of calls that has not happened yet."""
        self._caller.faults.drop()

    @property
    def limits(self) -> Limits:
        return self._caller.buckets.limits

    @limits.setter
    def limits(self, limits: Limits) -> None:
        with self._world.changed:
            self._caller.buckets.limits = limits

    @property
    def invalid_calls(self) -> int:
        """L5: how many calls of the last ten minutes count towards a ban."""
        with self._world.changed:
            since = self._world.clock.time() - 600
            return sum(at >= since for at in self._caller.invalid)

    # The gateway.

    @property
    def connections(self) -> list[Connection]:
        """Every connection so far, in order; to be looked at only."""
        with self._world.changed:
            return list(self._gateway.connections)

    def drop(self) -> None:
        """Reset every connection, as a router does that loses its table."""
        self._each(_cut)

    def freeze(self) -> None:
        """Say and read nothing on the present connections, and keep them open."""
        self._each(_freeze)

    def mute(self, *, muted: bool = True) -> None:
        """W1: acknowledge no heartbeats; ``muted=False`` acknowledges them again."""
        self._gateway.muted = muted

    def ask_heartbeat(self) -> None:
        """W1: ask for a heartbeat at once."""
        self._control(HEARTBEAT)

    def reconnect(self) -> None:
        """Tell clients to come again and resume."""
        self._control(RECONNECT)

    def invalidate(self, *, resumable: bool = False) -> None:
        """Tell clients that their session is invalid; unless it is resumable, it is gone."""
        with self._world.changed:
            if not resumable:
                self._world.sessions.clear()
        self._control(INVALID, resumable)

    def close(self, code: int, reason: str = "") -> None:
        """W2: close every connection with a code."""

        async def one(gateway: Gateway, connection: Connection) -> None:
            await connection.close(code, reason)

        self._each(one)

    def refuse(self, count: int | None = None) -> None:
        """Reset attempts to connect, all or the next ``count``; none at all with 0."""
        self._gateway.refusals = count

    def forget_missed(self) -> None:
        """W8: lose what waits for clients, so that no session that missed any can be resumed."""
        with self._world.changed:
            for session in self._world.sessions.values():
                session.forget()

    def end_sessions(self) -> None:
        """W8: forget every session; whoever resumes is told that it is invalid."""
        with self._world.changed:
            self._world.sessions.clear()

    def reset_token(self) -> str:
        """R2: make the bot's token worthless, and return the new one; connections are closed."""
        with self._world.changed:
            number = self._world.token.partition(".")[0]
            self._world.token = f"{number}.FAKE00.{secrets.token_hex(12)}"
            self._world.sessions.clear()
        self.close(4004, "Authentication failed.")
        return self._world.token

    def heartbeats(self) -> int:
        """Return how many heartbeats have come."""
        with self._world.changed:
            return sum(frame.op == HEARTBEAT for frame in self._world.frames)

    def _control(self, op: int, data: Any = None) -> None:
        async def one(gateway: Gateway, connection: Connection) -> None:
            connection.control(op, data)

        self._each(one)

    def _each(self, act: Any) -> None:
        async def all_of_them() -> None:
            for connection in self._gateway.alive():
                work: Coroutine[Any, Any, None] = act(self._gateway, connection)
                await work

        self._server.call(all_of_them)

    def _plan(
        self, method: str, after: bool, action: Cut | Hold | Reply, count: int | None
    ) -> None:
        if method not in NAMES:
            raise LookupError(f"there is no route {method}")
        stage: Stage = "applied" if after else "arrived"
        self._caller.faults.plan(Fault(method, stage, action, count))


async def _cut(gateway: Gateway, connection: Connection) -> None:
    connection.cut()
    gateway.detach(connection)


async def _freeze(gateway: Gateway, connection: Connection) -> None:
    connection.freeze()
