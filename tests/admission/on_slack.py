"""Slack as people see it, for the table of who may."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import attrs

from admission.ways import DIRECT, Cell
from dragoman import Host, Secret
from dragoman.manifest.model import ComponentTable
from dragoman_slack.config import SlackConfig
from dragoman_slack.platform import open_slack
from peers.slack_fake import SlackFake


@attrs.define(eq=False)
class SlackWire:
    """An app in one workspace."""

    LACKS: ClassVar[dict[str, str]] = {
        "member": "Slack tells of none",
        "post": "a message as any other",
        "anonymous": "Slack has none",
        "deep_link": "Slack has none",
        "inline_query": "Slack has none; see autocomplete",
    }
    fake: SlackFake = attrs.field(factory=SlackFake)

    def open(self, host: Host) -> Any:
        config = SlackConfig(
            bot_token=Secret("env BOT", self.fake.app.bot_token),
            app_token=Secret("env APP", self.fake.app.app_token),
            api_url=self.fake.url,
            replies="channel",
            connections=1,
        )
        return open_slack(config, host)

    def roles(self) -> Sequence[str]:
        return ()

    def components(self) -> Sequence[ComponentTable]:
        return ()

    def connected(self) -> bool:
        return bool(self.fake.sockets)

    def idle(self) -> bool:
        return all(one.fate == "acked" for one in self.fake.deliveries)

    def meet(self, cell: Cell) -> None:
        cell.person = self.fake.person(f"U0P{cell.number:04}", f"person{cell.number}")
        direct = cell.place == DIRECT
        cell.channel = (
            self.fake.dm(cell.person)
            if direct
            else self.fake.channel(f"room{cell.number}", cell.person)
        )

    def identity(self, person: str) -> str:
        return f"{self.fake.team.id}:{person}"

    def alone(self, cell: Cell) -> list[str]:
        return [one.source for one in self.fake.ephemerals(cell.channel, cell.person)]

    def public(self, cell: Cell) -> list[str]:
        return list(filter(None, self.fake.said_by_bot(cell.channel)))  # less the head of a thread

    def card(self, cell: Cell) -> str:
        shown = self.fake.shown(cell.channel)
        [card] = [one for one in shown if one.user == self.fake.app.user_id]
        return card.ts

    def _say(self, cell: Cell, text: str = "", who: str = "", **more: Any) -> None:
        cell.message = self.fake.say(cell.channel, who or cell.person, text, **more).ts

    def _named(self, cell: Cell, text: str) -> str:
        return text if cell.place == DIRECT else f"{self.fake.mention} {text}"

    def message(self, cell: Cell, text: str = "hello", who: str = "") -> None:
        self._say(cell, self._named(cell, text), who)

    def unnamed(self, cell: Cell) -> None:
        self._say(cell, "hello")

    def edit(self, cell: Cell) -> None:
        self.fake.edit(cell.channel, cell.message, self._named(cell, "hello again"))

    def forward(self, cell: Cell) -> None:
        held = {"is_share": True, "author_name": "Bo", "text": "/probe", "ts": "1.1"}
        self._say(cell, extra={"attachments": [held]})

    def voice(self, cell: Cell) -> None:
        self._say(cell, files=[("clip.m4a", b"ftyp")])

    def command(self, cell: Cell) -> None:
        self._say(cell, self._named(cell, "/probe"))

    def operators_command(self, cell: Cell) -> None:
        self._say(cell, self._named(cell, "/manage"))

    def slash(self, cell: Cell) -> None:
        self.fake.slash(cell.channel, cell.person, "/dragoman", "probe")

    def operators_slash(self, cell: Cell) -> None:
        self.fake.slash(cell.channel, cell.person, "/dragoman", "manage")

    def complete(self, cell: Cell) -> None:
        asked = {"action_id": "dragoman:0", "block_id": "dragoman", "value": "x"}
        self._interact(cell, "block_suggestion", asked)

    def press(self, cell: Cell) -> None:
        self.fake.press(cell.channel, cell.message, cell.person, "dragoman:0")

    def modal(self, cell: Cell) -> None:
        view = {"id": "V1", "type": "modal", "callback_id": "form", "state": {"values": {}}}
        self._interact(cell, "view_submission", {"view": view, "response_urls": []})

    def menu(self, cell: Cell) -> None:
        self._interact(cell, "shortcut", {"callback_id": "ask"})
        message = {"ts": "1.1", "text": "hello"}
        place = {"channel": {"id": cell.channel}, "message": message, "message_ts": "1.1"}
        self._interact(cell, "message_action", {"callback_id": "ask", **place})

    def _interact(self, cell: Cell, kind: str, more: dict[str, Any]) -> None:
        with self.fake._world.changed:
            payload = self.fake._common(kind, cell.person)
            self.fake._world.deliver("interactive", payload | more)

    def home(self, cell: Cell) -> None:
        self.fake.open_home(cell.person)
        self.fake.open_assistant(cell.person)

    def react(self, cell: Cell) -> None:
        self.fake.react(cell.channel, cell.message, cell.person, "+1")

    def bot(self, cell: Cell) -> None:
        self._enqueue(cell, {"user": cell.person, "bot_id": "B0OTHER"})

    def listed_bot(self, cell: Cell) -> None:
        self.bot(cell)

    def hook(self, cell: Cell) -> None:
        self._enqueue(cell, {"subtype": "bot_message", "bot_id": "B0HOOK", "username": "CI"})

    def _enqueue(self, cell: Cell, who: dict[str, Any]) -> None:
        with self.fake._world.changed:
            ts = self.fake._world.next_ts()
        event = {"type": "message", "text": f"{self.fake.mention} hello", "channel": cell.channel}
        self.fake.enqueue(event | {"ts": ts, "event_ts": ts} | who, cell.channel)
