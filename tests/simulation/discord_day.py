"""Discord for a day, in memory: what the plugin needs of it, and its bad weather."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import attrs
import httpx2
from anyio.abc import TaskGroup

from dragoman.testing import VirtualClock
from simulation.network import Line, switched

ME, GUILD, CHANNEL, ADA = "100000000000000001", "100000000000000002", "100000000000000003", "7"
HEARTBEAT: Final = 41_250
_EPOCH: Final = 1_420_070_400_000


@attrs.define(eq=False)
class DiscordDay:
    """One bot in one channel of one server."""

    clock: VirtualClock
    tasks: TaskGroup | None = None
    shown: dict[str, str] = attrs.field(factory=dict)
    """The bot's messages by id."""
    history: list[dict[str, Any]] = attrs.field(factory=list)
    lines: list[Line] = attrs.field(factory=list)
    sessions: dict[str, bool] = attrs.field(factory=dict)
    events: list[dict[str, Any]] = attrs.field(factory=list)
    refused_until: float = 0.0
    limited: int = 0
    identified: int = 0
    resumed: int = 0
    _known: dict[str, str] = attrs.field(factory=dict)
    _numbers: int = 0

    # -- people, and weather -----------------------------------------------------------------------

    def say(self, text: str) -> None:
        """Let a person mention the bot."""
        row = {
            "id": self._snowflake(),
            "channel_id": CHANNEL,
            "content": f"<@{ME}> {text}",
            "author": {"id": ADA, "username": "ada"},
            "mentions": [{"id": ME, "username": "bot"}],
            "timestamp": self.clock.now().isoformat(),
            "type": 0,
        }
        self.history.append(row)
        self._tell("MESSAGE_CREATE", {**row, "guild_id": GUILD})

    def answers(self) -> list[str]:
        """Return what the bot's messages show."""
        return list(self.shown.values())

    def weather(self) -> Iterator[str]:
        """Do one bad thing after the other, and say which."""
        while True:
            self._drop()
            yield "a cut connection"
            self._frame({"op": 7, "d": None})
            yield "op 7"
            self._frame({"op": 9, "d": True})
            yield "op 9, resumable"
            self.sessions.clear()
            self._frame({"op": 9, "d": False})
            yield "op 9"
            for line in self.lines:
                line.frozen = True
            yield "a half-open socket"
            self.limited = 3
            yield "429s"
            self.refused_until = self.clock.boot() + 90
            self._drop()
            yield "90 s without a network"
            self.sessions.clear()
            self._drop()
            yield "a lost session"

    def calm(self) -> float:
        """Return for how many seconds the weather will still be bad."""
        half_open = 2.5 * HEARTBEAT / 1000 if self.half_open() else 0.0
        return max(self.refused_until - self.clock.boot(), half_open, 0.0)

    def half_open(self) -> bool:
        """Whether the gateway still holds a connection that only looks alive."""
        return any(line.frozen for line in self.lines)

    def _drop(self) -> None:
        for line in self.lines:
            line.drop()

    def _frame(self, frame: dict[str, Any]) -> None:
        for line in self.lines:
            line.send(json.dumps(frame))

    # -- HTTP ----------------------------------------------------------------------------------------

    async def handle(self, request: httpx2.Request) -> httpx2.Response:
        if self.clock.boot() < self.refused_until:
            raise httpx2.ConnectError("no network")
        if request.headers.get("upgrade") == "websocket":
            return self._open()
        target = urlsplit(request.extensions.get("target", request.url.raw_path).decode())
        path, method = target.path.removeprefix("/api/v10"), request.method
        if self.limited and method in {"POST", "PATCH"} and "/messages" in path:
            self.limited -= 1
            body = {"message": "slow down", "retry_after": 1.5, "global": False}
            headers = {"retry-after": "2", "via": "1.1 google", "x-ratelimit-scope": "user"}
            return httpx2.Response(429, json=body, headers=headers)
        body = json.loads(request.content) if request.content[:1] in (b"{", b"[") else {}
        return self._answer(method, path, parse_qs(target.query), body)

    def _answer(
        self, method: str, path: str, query: dict[str, list[str]], body: Any
    ) -> httpx2.Response:
        parts = path.strip("/").split("/")
        match (method, parts):
            case ("GET", ["users", "@me"] | ["applications", "@me"]):
                return httpx2.Response(200, json={"id": ME, "username": "bot", "flags": 1 << 19})
            case ("GET", ["gateway", "bot"]):
                limit = {"total": 1000, "remaining": 1000, "reset_after": 0, "max_concurrency": 1}
                answer = {"url": "ws://gateway.test", "shards": 1, "session_start_limit": limit}
                return httpx2.Response(200, json=answer)
            case ("POST", ["channels", _, "messages"]):
                return httpx2.Response(200, json=self._created(body))
            case ("PATCH", ["channels", _, "messages", identity]):
                self.shown[identity] = body["content"]
                return httpx2.Response(200, json={"id": identity, "content": body["content"]})
            case ("GET", ["channels", _, "messages"]):
                after = int(query.get("after", ["0"])[0])
                rows = [row for row in self.history if int(row["id"]) > after][:100]
                return httpx2.Response(200, json=rows[::-1])
            case ("POST", ["channels", _, "typing"]):
                return httpx2.Response(204)
            case _:
                return httpx2.Response(200, json=[])

    def _created(self, body: dict[str, Any]) -> dict[str, Any]:
        identity = self._known.setdefault(body["nonce"], self._snowflake())
        self.shown.setdefault(identity, body["content"])
        row = {"id": identity, "content": self.shown[identity], "nonce": body["nonce"]}
        author = {"id": ME, "username": "bot", "bot": True}
        self._tell("MESSAGE_CREATE", {**row, "channel_id": CHANNEL, "author": author, "type": 0})
        return row

    # -- the gateway -----------------------------------------------------------------------------------

    def _open(self) -> httpx2.Response:
        assert self.tasks is not None
        line = Line()
        self.tasks.start_soon(self._serve, line)
        return switched(line)

    async def _serve(self, line: Line) -> None:
        self.lines.append(line)
        line.send(json.dumps({"op": 10, "d": {"heartbeat_interval": HEARTBEAT}}))
        try:
            while (text := await line.receive()) is not None:
                frame = json.loads(text)
                if frame["op"] == 1:
                    line.send(json.dumps({"op": 11}))
                elif frame["op"] == 2:
                    self._begin(line)
                elif frame["op"] == 6:
                    self._resume(line, frame["d"])
        finally:
            self.lines.remove(line)

    def _begin(self, line: Line) -> None:
        self.identified += 1
        name = f"session {self.identified}"
        self.sessions[name] = True
        self.events.clear()
        ready = {
            "session_id": name,
            "resume_gateway_url": "ws://resume.test",
            "user": {"id": ME, "username": "bot"},
            "guilds": [{"id": GUILD, "unavailable": True}],
        }
        line.send(json.dumps(self._event("READY", ready)))
        channels = [{"id": CHANNEL, "type": 0, "name": "general"}]
        guild = {"id": GUILD, "name": "home", "channels": channels, "threads": [], "roles": []}
        line.send(json.dumps(self._event("GUILD_CREATE", guild)))

    def _resume(self, line: Line, wish: dict[str, Any]) -> None:
        if wish["session_id"] not in self.sessions:
            line.send(json.dumps({"op": 9, "d": False}))
            return
        self.resumed += 1
        for event in self.events:
            if event["s"] > wish["seq"]:
                line.send(json.dumps(event))
        line.send(json.dumps(self._event("RESUMED", {})))

    def _tell(self, name: str, data: dict[str, Any]) -> None:
        if self.sessions:
            event = json.dumps(self._event(name, data))
            for line in self.lines:
                line.send(event)

    def _event(self, name: str, data: dict[str, Any]) -> dict[str, Any]:
        self._numbers += 1
        event = {"op": 0, "t": name, "s": self._numbers, "d": data}
        self.events.append(event)
        return event

    def _snowflake(self) -> str:
        self._numbers += 1
        moment = int(self.clock.now().timestamp() * 1000) - _EPOCH
        return str((moment << 22) + self._numbers)
