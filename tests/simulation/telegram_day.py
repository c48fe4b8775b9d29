"""Telegram for a day, in memory: long polls, what a bot shows, and bad weather."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import anyio
import attrs
import httpx2
from anyio.abc import TaskGroup

from dragoman.testing import VirtualClock

BOT, ADA = 700700, 700000001
SILENT: Final = 60.0
"""Seconds of silence after which the client gives an answer up."""


@attrs.define(eq=False)
class TelegramDay:
    """One bot in a private chat."""

    clock: VirtualClock
    tasks: TaskGroup | None = None
    shown: dict[int, str] = attrs.field(factory=dict)
    """The bot's messages by number."""
    updates: list[dict[str, Any]] = attrs.field(factory=list)
    refused_until: float = 0.0
    silent_until: float = 0.0
    limited: int = 0
    conflicts: int = 0
    broken: int = 0
    polls: int = 0
    _numbers: int = 100
    _bell: anyio.Event = attrs.field(factory=anyio.Event)
    _cut: bool = False

    # -- people, and weather -----------------------------------------------------------------------

    def say(self, text: str) -> None:
        """Let a person write to the bot."""
        number = self._number()
        person = {"id": ADA, "is_bot": False, "first_name": "Ada"}
        message = {
            "message_id": number,
            "date": int(self.clock.now().timestamp()),
            "chat": {"id": ADA, "type": "private", "first_name": "Ada"},
            "from": person,
            "text": text,
        }
        self.updates.append({"update_id": number, "message": message})
        self._ring()

    def answers(self) -> list[str]:
        """Return what the bot's messages show."""
        return list(self.shown.values())

    def weather(self) -> Iterator[str]:
        """Do one bad thing after the other, and say which."""
        while True:
            self._cut = True
            self._ring()
            yield "a cut poll"
            self.broken = 3
            self._ring()
            yield "502s"
            self.conflicts = 3
            self._cut = True
            self._ring()
            yield "short conflicts"
            self.limited = 3
            yield "429s"
            self.silent_until = self.clock.boot() + SILENT
            self._ring()
            yield "a half-open connection"
            self.refused_until = self.clock.boot() + 90
            self._cut = True
            self._ring()
            yield "90 s without a network"

    def calm(self) -> float:
        """Return for how many seconds the weather will still be bad."""
        end = max(self.refused_until, self.silent_until + SILENT if self.silent_until else 0.0)
        return max(end - self.clock.boot(), 0.0)

    def half_open(self) -> bool:
        """A poll without an answer ends by itself: that of its client's time limit."""
        return False

    def _ring(self) -> None:
        self._bell.set()
        self._bell = anyio.Event()

    # -- calls -----------------------------------------------------------------------------------------

    async def handle(self, request: httpx2.Request) -> httpx2.Response:
        if self.clock.boot() < self.refused_until:
            raise httpx2.ConnectError("no network")
        if self.clock.boot() < self.silent_until:
            await self.clock.sleep(SILENT)
            raise httpx2.ReadTimeout("silence")
        target = request.extensions.get("target", request.url.raw_path).decode()
        method, body = target.rpartition("/")[2], json.loads(request.content or b"{}")
        if method == "getUpdates":
            return await self._poll(body)
        if self.limited and method in {"sendMessage", "editMessageText"}:
            self.limited -= 1
            return _refused(429, "Too Many Requests: retry after 2", retry_after=2)
        return httpx2.Response(200, json={"ok": True, "result": self._answer(method, body)})

    async def _poll(self, body: dict[str, Any]) -> httpx2.Response:
        self.polls += 1
        if self.conflicts:
            self.conflicts -= 1
            words = "Conflict: terminated by other getUpdates request"
            return _refused(409, words)
        if self.broken:
            self.broken -= 1
            return httpx2.Response(502, text="<html>Bad Gateway</html>")
        if offset := body.get("offset"):
            self.updates = [one for one in self.updates if one["update_id"] >= offset]
        end = self.clock.boot() + body["timeout"]
        while not self.updates and (rest := end - self.clock.boot()) > 0:
            with self.clock.move_on_after(rest):
                await self._bell.wait()
            if self._cut:
                self._cut = False
                raise httpx2.ReadError("cut")
        return httpx2.Response(200, json={"ok": True, "result": self.updates[:100]})

    def _answer(self, method: str, body: dict[str, Any]) -> Any:
        match method:
            case "getMe":
                me = {"id": BOT, "is_bot": True, "first_name": "Bot", "username": "day_bot"}
                return {**me, "can_join_groups": True, "can_read_all_group_messages": True}
            case "sendMessage":
                return self._show(self._number(), body)
            case "editMessageText":
                return self._show(body["message_id"], body)
            case "getWebhookInfo":
                return {"url": "", "pending_update_count": 0}
            case "getMyCommands":
                return []
        return True

    def _show(self, number: int, body: dict[str, Any]) -> dict[str, Any]:
        self.shown[number] = body["text"]
        chat = {"id": ADA, "type": "private"}
        return {"message_id": number, "chat": chat, "date": 1, "text": body["text"]}

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers


def _refused(status: int, words: str, **parameters: int) -> httpx2.Response:
    headers = {name.replace("_", "-"): str(value) for name, value in parameters.items()}
    body = {"ok": False, "error_code": status, "description": words, "parameters": parameters}
    return httpx2.Response(status, json=body, headers=headers)
