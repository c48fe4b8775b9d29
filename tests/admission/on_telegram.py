"""Telegram as people see it, for the table of who may."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from typing import Any, ClassVar, Final

import attrs
import pytest

from admission.ways import DIRECT, LISTED_POSTS, POSTS, Cell
from dragoman import Host, Secret
from dragoman.manifest.model import ComponentTable
from dragoman_http.config import HttpConfig
from dragoman_telegram.config import TelegramConfig
from dragoman_telegram.platform import open_telegram
from peers.process import free_port
from peers.telegram_fake import USERNAME, TelegramFake

ANONYMOUS: Final = {"id": 1087968824, "is_bot": True, "first_name": "Group"}
SECRET: Final = "a-secret-of-the-tests"


@attrs.define(eq=False)
class TelegramWire:
    """A bot that polls."""

    LACKS: ClassVar[dict[str, str]] = {
        "member": "Telegram tells of none",
        "slash": "the same as a command",
        "complete": "Telegram has none; see inline queries",
        "modal": "Telegram has none",
    }
    fake: TelegramFake = attrs.field(factory=TelegramFake)
    queries: dict[Cell, str] = attrs.field(factory=dict)

    def open(self, host: Host) -> Any:
        return open_telegram(self.config(), host)

    def config(self) -> TelegramConfig:
        token = Secret("env TOKEN", self.fake.token)
        return TelegramConfig(token=token, api_url=self.fake.url, poll_timeout=1, drafts=False)

    def roles(self) -> Sequence[str]:
        return ()

    def components(self) -> Sequence[ComponentTable]:
        return ()

    def connected(self) -> bool:
        return bool(self.fake.calls_of("getUpdates"))

    def idle(self) -> bool:
        return not self.fake.pending()

    def meet(self, cell: Cell) -> None:
        cell.person = str(700_000_000 + cell.number)
        cell.channel = (
            cell.person if cell.place == DIRECT else str(-1_001_500_000_000 - cell.number)
        )
        self.fake.person(int(cell.person), f"Person {cell.number}")
        kind = "channel" if cell.place in {POSTS, LISTED_POSTS} else "supergroup"
        if cell.place != DIRECT:
            self.fake.add_chat(int(cell.channel), kind, "Team")  # type: ignore[arg-type]

    def identity(self, person: str) -> str:
        return person

    def alone(self, cell: Cell) -> list[str]:
        found = self.fake.answer_to(self.queries[cell]) if cell in self.queries else None
        return [found["text"]] if found and found.get("text") else []

    def public(self, cell: Cell) -> list[str]:
        return self.fake.said_by_bot(int(cell.channel))

    def card(self, cell: Cell) -> str:
        [card] = [
            one for one in self.fake.chat(int(cell.channel)) if one.sender == self.fake.bot_id
        ]
        return str(card.message_id)

    def _say(self, cell: Cell, text: str = "", who: str = "", **more: Any) -> None:
        said = self.fake.say(int(cell.channel), int(who or cell.person), text, **more)
        cell.message = str(said.message_id)

    def _named(self, cell: Cell, text: str) -> str:
        return text if cell.place == DIRECT else f"@{USERNAME} {text}"

    def message(self, cell: Cell, text: str = "hello", who: str = "") -> None:
        self._say(cell, self._named(cell, text), who)

    def unnamed(self, cell: Cell) -> None:
        self._say(cell, "hello")

    def edit(self, cell: Cell) -> None:
        self.fake.edit(int(cell.channel), int(cell.message), self._named(cell, "hello again"))

    def forward(self, cell: Cell) -> None:
        said = self.fake.say(1, 1, self._named(cell, "/probe"))
        self.fake.forward(int(cell.channel), int(cell.person), (1, said.message_id))

    def voice(self, cell: Cell) -> None:
        self._say(cell, file=("voice", "voice.ogg", b"OggS"))

    def deep_link(self, cell: Cell) -> None:
        self._say(cell, "/start x")

    def command(self, cell: Cell, name: str = "probe") -> None:
        self._say(cell, f"/{name}" if cell.place == DIRECT else f"/{name}@{USERNAME}")

    def bare_command(self, cell: Cell) -> None:
        self._say(cell, "/probe")

    def operators_command(self, cell: Cell) -> None:
        self.command(cell, "manage")

    def unknown_command(self, cell: Cell) -> None:
        self._say(cell, "/weather")

    def foreign_command(self, cell: Cell) -> None:
        self._say(cell, "/probe@other_bot")

    def inline_query(self, cell: Cell) -> None:
        who = {"id": int(cell.person), "is_bot": False, "first_name": "A"}
        self.fake.enqueue({"inline_query": {"id": "1", "from": who, "query": "x", "offset": ""}})

    def press(self, cell: Cell) -> None:
        with self.fake._world.changed:
            shown = self.fake._world.messages[int(cell.channel), int(cell.message)].buttons
        data = shown[0][0]["callback_data"]
        made = self.fake.press(int(cell.channel), int(cell.message), int(cell.person), data)
        self.queries[cell] = made.query_id

    def react(self, cell: Cell) -> None:
        self.fake.react(int(cell.channel), int(cell.message), int(cell.person), "👍")

    def post(self, cell: Cell) -> None:
        self._say(cell, self._named(cell, "hello"))

    def anonymous(self, cell: Cell) -> None:
        chat = self.fake._world.chats[int(cell.channel)].json
        self.fake.enqueue(
            self._update(cell, {"from": ANONYMOUS, "sender_chat": chat, "chat": chat})
        )

    def bot(self, cell: Cell) -> None:
        chat = self.fake._world.chats[int(cell.channel)].json
        who = {"id": int(cell.person), "is_bot": True, "first_name": "Bot"}
        self.fake.enqueue(self._update(cell, {"from": who, "chat": chat}))

    def listed_bot(self, cell: Cell) -> None:
        self.bot(cell)

    def _update(self, cell: Cell, fields: dict[str, Any]) -> dict[str, Any]:
        text = f"@{USERNAME} hello"
        entities = [{"type": "mention", "offset": 0, "length": len(USERNAME) + 1}]
        about = {"message_id": 9_000 + cell.number, "date": int(time.time()), "text": text}
        return {"message": about | fields | {"entities": entities}}


@attrs.define(eq=False)
class TelegramHookWire(TelegramWire):
    """A bot to which updates are delivered; anybody may call its address."""

    fake: TelegramFake = attrs.field(factory=lambda: TelegramFake(loopback_webhooks=True))
    port: int = attrs.field(factory=free_port)
    statuses: list[int] = attrs.field(factory=list)

    def config(self) -> TelegramConfig:
        return attrs.evolve(
            super().config(),
            mode="webhook",
            webhook_url=f"http://127.0.0.1:{self.port}/telegram",
            webhook_secret=Secret("env SECRET", SECRET),
        )

    def components(self) -> Sequence[ComponentTable]:
        config = HttpConfig(port=self.port)
        return (ComponentTable(kind="extensions", id="http", plugin="http", config=config),)

    def connected(self) -> bool:
        return bool(self.fake.calls_of("setWebhook"))

    def hook(self, cell: Cell) -> None:
        self.message(cell)

    def forged_hook(self, cell: Cell) -> None:
        """Call the address as somebody would who knows all but the secret."""
        who = {"id": int(cell.person), "is_bot": False, "first_name": "A"}
        chat = {"id": int(cell.channel), "type": "private"}
        update = {"update_id": 600_000_000 + cell.number} | self._update(
            cell, {"from": who, "chat": chat}
        )
        url = f"http://127.0.0.1:{self.port}/telegram"
        forged = {"x-telegram-bot-api-secret-token": "guessed"}
        request = urllib.request.Request(url, json.dumps(update).encode(), forged)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with pytest.raises(urllib.error.HTTPError) as caught:
            opener.open(request, timeout=10)
        self.statuses.append(caught.value.code)
        caught.value.close()
