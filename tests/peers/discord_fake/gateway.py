"""The gateway: who connects, identifies, resumes, and what each operation does."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs
from aiohttp import web

from peers.discord_fake.connections import Close, Connection
from peers.discord_fake.errors import Json
from peers.discord_fake.events import KNOWN, PRESENCES, PRIVILEGED
from peers.discord_fake.journal import Frame
from peers.discord_fake.sessions import Session
from peers.discord_fake.world import World
from peers.loopback import Gone

HEARTBEAT, IDENTIFY, PRESENCE, VOICE, RESUME = 1, 2, 3, 4, 6
RECONNECT, MEMBERS, INVALID, HELLO, ACK, SOUNDS = 7, 8, 9, 10, 11, 31
ENDS: Final = frozenset({1000, 1001})
"""W8: a client that closes with one of these ends its session."""
_LOST: Final = frozenset({4004, 4007, 4009, 4010, 4011, 4012, 4013, 4014})
"""Codes of the server after which there is no session to resume."""


@attrs.define(eq=False)
class Gateway:
    """Holds the connections; all on the server's loop."""

    world: World
    heartbeat: float = 41.25
    """The interval that clients are told, in seconds."""
    session_life: float = 180.0
    """How long a session waits for its client, in seconds of the fake's clock."""
    patience: float | None = None
    """How long a client may go without a heartbeat, in real seconds; ``None`` is for ever."""
    muted: bool = False
    """Whether heartbeats are read and not acknowledged."""
    refusals: int | None = 0
    """How many connections will be refused; ``None`` is all."""
    connections: list[Connection] = attrs.field(factory=list)

    def wake(self) -> None:
        """Let every connection look whether there is more to send."""
        for connection in self.alive():
            connection.wake()

    def alive(self) -> list[Connection]:
        return [one for one in self.connections if one.open]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Serve one connection until it ends."""
        if self.refusals is None or self.refusals > 0:
            self.refusals = self.refusals and self.refusals - 1
            raise Gone
        ws = web.WebSocketResponse(compress=False, max_msg_size=1 << 20, timeout=1.0)
        try:
            await ws.prepare(request)
        except ConnectionError:  # the client has left meanwhile
            raise Gone from None
        with self.world.changed:
            number = len(self.connections) + 1
            query = dict(request.query)
            connection = Connection(number, request.path, query, self.world, request, ws)
            self.connections.append(connection)
        tasks = [
            asyncio.create_task(connection.pump()),
            asyncio.create_task(self._watch(connection)),
        ]
        try:
            await self._serve(connection)
        finally:
            for task in tasks:
                task.cancel()
            self._left(connection)
        return ws

    async def _watch(self, connection: Connection) -> None:
        """W1: cut off a client whose heart has stopped; it may resume."""
        while self.patience is not None:
            await asyncio.sleep(self.patience)
            if time.monotonic() - connection.beat > self.patience:
                connection.cut()
                self.detach(connection)

    async def _serve(self, connection: Connection) -> None:
        try:
            self._version(connection)
            connection.control(HELLO, {"heartbeat_interval": round(self.heartbeat * 1000)})
            while (frame := await connection.receive()) is not None:
                self._note(connection, frame)
                self._act(connection, frame["op"], frame.get("d"))
        except Close as error:
            await connection.close(error.code, error.reason)
        except ConnectionError:
            connection.closed_by = connection.closed_by or "cut"

    def _version(self, connection: Connection) -> None:
        asked = (connection.query.get("v"), connection.query.get("encoding", "json"))
        if asked != ("10", "json"):
            raise Close(4012, "Invalid API version.")

    def _note(self, connection: Connection, frame: Json) -> None:
        with self.world.changed:
            found = Frame(time.monotonic(), connection.number, frame["op"], _hidden(frame.get("d")))
            self.world.frames.append(found)
            self.world.changed.notify_all()

    def _act(self, connection: Connection, op: int, data: Any) -> None:
        """W2: do what an operation asks for."""
        acts: Mapping[int, Callable[[Connection, Any], None]] = {
            HEARTBEAT: self._heartbeat,
            IDENTIFY: self._identify,
            RESUME: self._resume,
            MEMBERS: self._members,
        }
        if op in (PRESENCE, VOICE, MEMBERS, SOUNDS) and connection.session is None:
            raise Close(4003, "Not authenticated.")
        if op in acts:
            acts[op](connection, data)
        elif op not in (PRESENCE, VOICE, SOUNDS):
            raise Close(4001, "Unknown opcode.")

    def _heartbeat(self, connection: Connection, data: Any) -> None:
        if connection.session is not None and isinstance(data, int):
            connection.session.acknowledged = max(connection.session.acknowledged, data)
        connection.beat = time.monotonic()
        if not self.muted:
            connection.control(ACK)

    def _identify(self, connection: Connection, data: Any) -> None:
        """W4, W5: begin a session, and tell it of what there is."""
        if connection.session is not None:
            raise Close(4005, "Already authenticated.")
        intents, shard = self._credentials(data)
        if not self.world.budget.use():
            self._spent(connection)
            raise Close(4004, "Authentication failed.")
        session = Session(secrets.token_hex(16), intents, shard)
        with self.world.changed:
            guilds = [one for one in self.world.guilds.values() if one.here]
            mine = [one for one in guilds if session.concerns(one.id)]
            session.push("READY", self._ready(session, data, [one.id for one in mine]))
            for guild in mine:
                if guild.available and intents & 1:
                    everybody = bool(intents & PRESENCES)
                    body = self.world.guild_create(guild, members=everybody)
                    session.push("GUILD_CREATE", body)
            self.world.sessions[session.id] = session
            self._take(connection, session)
            self.world.changed.notify_all()

    def _spent(self, connection: Connection) -> None:
        """W3: end every session, and make the token worthless."""
        with self.world.changed:
            self.world.token = secrets.token_hex(16)
            self.world.sessions.clear()
        for other in self.alive():
            if other is not connection:
                other.cut()

    def _credentials(self, data: Any) -> tuple[int, tuple[int, int]]:
        if not isinstance(data, dict) or not isinstance(data.get("properties"), dict):
            raise Close(4002, "Error while decoding payload.")
        if data.get("token") != self.world.token:
            raise Close(4004, "Authentication failed.")
        index, count = data.get("shard") or (0, 1)
        if not 0 <= index < count:
            raise Close(4010, "Invalid shard.")
        intents = data.get("intents")
        if not isinstance(intents, int) or intents & ~KNOWN:
            raise Close(4013, "Invalid intent(s).")
        for name, bit in PRIVILEGED.items():
            if intents & bit and name not in self.world.privileged:
                raise Close(4014, "Disallowed intent(s).")
        return intents, (index, count)

    def _ready(self, session: Session, data: Json, guilds: list[int]) -> Json:
        found: Json = {
            "v": 10,
            "user": self.world.bot.json | {"mfa_enabled": True, "verified": True, "flags": 0},
            "user_settings": {},
            "session_id": session.id,
            "session_type": "normal",
            "resume_gateway_url": self.world.resume_url,
            "guilds": [{"id": str(one), "unavailable": True} for one in guilds],
            "private_channels": [],
            "relationships": [],
            "presences": [],
            "application": {"id": str(self.world.bot.id), "flags": self.world.flags},
        }
        return found | ({"shard": list(session.shard)} if "shard" in data else {})

    def _resume(self, connection: Connection, data: Any) -> None:
        """W8: send again what a session has missed, then say that it goes on."""
        if not isinstance(data, dict) or not isinstance(data.get("seq"), int):
            raise Close(4002, "Error while decoding payload.")
        if data.get("token") != self.world.token:
            raise Close(4004, "Authentication failed.")
        if connection.session is not None:
            raise Close(4005, "Already authenticated.")
        with self.world.changed:
            session = self.world.sessions.get(data.get("session_id", ""))
            if session is None or self._expired(session) or data["seq"] < session.dropped:
                self.world.sessions.pop(data.get("session_id", ""), None)
                connection.control(INVALID, data=False)
                return
            if data["seq"] > session.seq:
                raise Close(4007, "Invalid seq.")
            session.acknowledged = max(session.acknowledged, data["seq"])
            connection.sent, connection.resumed = data["seq"], True
            session.push("RESUMED", {})
            self._take(connection, session)
            self.world.changed.notify_all()

    def _expired(self, session: Session) -> bool:
        away = self.world.clock.time() - session.left
        return session.connection is None and away > self.session_life

    def _take(self, connection: Connection, session: Session) -> None:
        """Give a session to a connection; W8: one that had it before is cut off."""
        for other in self.alive():
            if other.session is session and other is not connection:
                other.cut()
        session.connection = connection.number
        connection.session = session
        connection.wake()

    def _members(self, connection: Connection, data: Any) -> None:
        """W11: send members in one chunk."""
        session = connection.session
        guild = self.world.guilds.get(int(data["guild_id"]))
        if session is None or guild is None:
            return
        wanted = {int(one) for one in _listed(data.get("user_ids"))}
        with self.world.changed:
            found = [one for one in guild.members.values() if not wanted or one.id in wanted]
            body: Json = {
                "guild_id": str(guild.id),
                "members": [guild.member(one) | {"user": one.json} for one in found],
                "chunk_index": 0,
                "chunk_count": 1,
                "not_found": [str(one) for one in sorted(wanted - set(guild.members))],
                "presences": [],
            }
            if data.get("nonce") is not None:
                body["nonce"] = data["nonce"]
            session.push("GUILD_MEMBERS_CHUNK", body)
        connection.wake()

    def detach(self, connection: Connection) -> None:
        """Let a session wait for another connection."""
        session = connection.session
        if session is not None and session.connection == connection.number:
            session.connection, session.left = None, self.world.clock.time()

    def _left(self, connection: Connection) -> None:
        with self.world.changed:
            connection.closed_by = connection.closed_by or "cut"
            self.detach(connection)
            ended = connection.closed_by == "client" and connection.code in ENDS
            lost = connection.closed_by == "server" and connection.code in _LOST
            if connection.session is not None and (ended or lost):
                self.world.sessions.pop(connection.session.id, None)
            self.world.changed.notify_all()


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _hidden(data: Any) -> Any:
    """Return a frame's data without the token."""
    return {**data, "token": "…"} if isinstance(data, dict) and "token" in data else data
