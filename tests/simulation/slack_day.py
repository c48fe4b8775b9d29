"""Slack for a day, in memory: Socket Mode with several sockets, the calls of a bot, its bad weather."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import parse_qs

import attrs
import httpx2
from anyio.abc import TaskGroup

from dragoman.testing import VirtualClock
from simulation.network import Line, switched

TEAM, BOT, ADA, CHANNEL = "T1", "UBOT", "UADA", "D1"
RETRIES: Final = (0.0, 60.0, 300.0)
PATIENCE: Final = 3.0


@attrs.define(eq=False)
class SlackDay:
    """One app in a direct message with one person."""

    clock: VirtualClock
    tasks: TaskGroup | None = None
    shown: dict[str, str] = attrs.field(factory=dict)
    """The bot's messages by timestamp."""
    lines: list[Line] = attrs.field(factory=list)
    acked: set[str] = attrs.field(factory=set)
    limited: int = 0
    dials_limited: int = 0
    too_many: int = 0
    refused_until: float = 0.0
    opened: int = 0
    _known: dict[str, str] = attrs.field(factory=dict)
    _numbers: int = 0
    _random: random.Random = attrs.field(factory=lambda: random.Random(7))

    # -- people, and weather -----------------------------------------------------------------------

    def say(self, text: str) -> None:
        """Let a person write to the app."""
        assert self.tasks is not None
        number = self._number()
        event = {
            "type": "message",
            "channel_type": "im",
            "channel": CHANNEL,
            "user": ADA,
            "text": text,
            "ts": self._ts(),
            "team": TEAM,
        }
        payload = {"type": "event_callback", "event_id": f"Ev{number}", "team_id": TEAM}
        authorizations = [{"team_id": TEAM, "user_id": BOT, "is_bot": True}]
        whole = {**payload, "event": event, "authorizations": authorizations}
        self.tasks.start_soon(self._deliver, whole)

    def answers(self) -> list[str]:
        """Return what the bot's messages show."""
        return list(self.shown.values())

    def weather(self) -> Iterator[str]:
        """Do one bad thing after the other, and say which."""
        while True:
            self.lines[0].drop()
            yield "one cut socket"
            self._drop()
            yield "all sockets cut"
            self._leave("refresh_requested")
            yield "a refresh"
            self._leave("warning")
            yield "a warning"
            for line in self.lines:
                line.frozen = True
            yield "half-open sockets"
            self.limited = 3
            yield "429s"
            self.dials_limited = 1
            self._drop()
            yield "429 for new sockets"
            self.too_many = 1
            self.lines[0].drop()
            yield "too_many_websockets"
            self.refused_until = self.clock.boot() + 90
            self._drop()
            yield "90 s without a network"

    def calm(self) -> float:
        """Return for how many seconds the weather will still be bad."""
        half_open = 60.0 if self.half_open() else 0.0
        dial = 30.0 if self.dials_limited else 0.0
        return max(self.refused_until - self.clock.boot(), half_open, dial, 0.0)

    def half_open(self) -> bool:
        """Whether the gateway still holds a connection that only looks alive."""
        return any(line.frozen for line in self.lines)

    def _drop(self) -> None:
        for line in self.lines:
            line.drop()

    def _leave(self, reason: str) -> None:
        for line in list(self.lines):
            line.send(json.dumps({"type": "disconnect", "reason": reason}))

    # -- HTTP ----------------------------------------------------------------------------------------

    async def handle(self, request: httpx2.Request) -> httpx2.Response:
        if self.clock.boot() < self.refused_until:
            raise httpx2.ConnectError("no network")
        if request.headers.get("upgrade") == "websocket":
            return self._open()
        method = request.url.path.rpartition("/")[2]
        form = {name: values[0] for name, values in parse_qs(request.content.decode()).items()}
        if method == "apps.connections.open" and self.dials_limited:
            self.dials_limited -= 1
            return httpx2.Response(429, headers={"retry-after": "30"})
        if method.startswith("chat.") and self.limited:
            self.limited -= 1
            return httpx2.Response(429, headers={"retry-after": "2"})
        return httpx2.Response(200, json={"ok": True, **self._answer(method, form)})

    def _answer(self, method: str, form: dict[str, str]) -> dict[str, Any]:
        match method:
            case "auth.test":
                return {"team_id": TEAM, "user_id": BOT, "bot_id": "B1", "user": "bot"}
            case "apps.connections.open":
                return {"url": "wss://socket.test/link/?ticket=1"}
            case "chat.postMessage":
                ts = self._known.setdefault(form["client_msg_id"], self._ts())
                self.shown.setdefault(ts, _text(form))
                return {"ts": ts, "channel": form["channel"], "message": {"ts": ts}}
            case "chat.update":
                self.shown[form["ts"]] = _text(form)
                return {"ts": form["ts"], "channel": form["channel"], "message": {}}
            case "conversations.history" | "conversations.replies":
                return {"messages": [], "has_more": False}
            case "users.info":
                return {"user": {"id": ADA, "name": "ada", "team_id": TEAM}}
        return {}

    # -- sockets -------------------------------------------------------------------------------------

    def _open(self) -> httpx2.Response:
        assert self.tasks is not None
        line = Line()
        self.tasks.start_soon(self._serve, line)
        return switched(line)

    async def _serve(self, line: Line) -> None:
        self.opened += 1
        if self.too_many:
            self.too_many -= 1
            line.send(json.dumps({"type": "disconnect", "reason": "too_many_websockets"}))
            line.drop()
            return
        self.lines.append(line)
        hello = {"type": "hello", "num_connections": len(self.lines)}
        line.send(json.dumps({**hello, "connection_info": {"app_id": "A1"}}))
        try:
            while (text := await line.receive()) is not None:
                self.acked.add(json.loads(text)["envelope_id"])
        finally:
            self.lines.remove(line)

    async def _deliver(self, payload: dict[str, Any]) -> None:
        """Send an event over any socket, and again until it is acknowledged.

        It waits for a first socket, so that what is seen is how soon the gateway is back.
        """
        while not self.lines:
            await self.clock.sleep(1)
        for attempt, pause in enumerate((0.0, *RETRIES)):
            await self.clock.sleep(pause)
            name = f"envelope {self._number()}"
            envelope = {"envelope_id": name, "type": "events_api", "payload": payload}
            again = {"accepts_response_payload": False, "retry_attempt": attempt}
            if self.lines:
                self._random.choice(self.lines).send(json.dumps({**envelope, **again}))
            await self.clock.sleep(PATIENCE)
            if name in self.acked:
                return

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers

    def _ts(self) -> str:
        return f"{int(self.clock.now().timestamp())}.{self._number():06}"


def _text(form: dict[str, str]) -> str:
    blocks = json.loads(form["blocks"]) if "blocks" in form else []
    found = [block["text"] for block in blocks if block.get("type") == "markdown"]
    return "".join(found) or form.get("markdown_text") or form.get("text", "")
