"""Discord as people see it, for the table of who may."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

import attrs

from admission.ways import DIRECT, Cell
from dragoman import Host, Secret
from dragoman.manifest.model import ComponentTable
from dragoman_discord.config import DiscordConfig
from dragoman_discord.platform import open_discord
from peers.discord_fake import DiscordFake, Interaction, ManualClock

COMMAND, MODAL = 2, 5
VOICE: Final = 1 << 13


@attrs.define(eq=False)
class DiscordWire:
    """A bot in one server."""

    LACKS: ClassVar[dict[str, str]] = {
        "post": "a message as any other; what is followed from another server comes by a webhook",
        "anonymous": "Discord has none",
        "deep_link": "Discord has none",
        "inline_query": "Discord has none; see autocomplete",
    }
    fake: DiscordFake = attrs.field(
        factory=lambda: DiscordFake(clock=ManualClock(), heartbeat=5.0)  # none is ever too late
    )
    guild: int = 0
    role: int = 0
    used: list[Interaction] = attrs.field(factory=list)

    def open(self, host: Host) -> Any:
        token = Secret("env TOKEN", self.fake.token)
        return open_discord(DiscordConfig(token=token, api_url=self.fake.api), host)

    def roles(self) -> Sequence[str]:
        return (f"{self.guild}:{self.role}",)

    def components(self) -> Sequence[ComponentTable]:
        return ()

    def connected(self) -> bool:
        return any(one.connection for one in self.fake.sessions) and bool(self.fake.commands())

    def idle(self) -> bool:
        return all(one.answer is not None and not one.thinking for one in self.used)

    def meet(self, cell: Cell) -> None:
        self.guild = self.guild or self.fake.add_guild()
        self.role = self.role or self.fake.add_role(self.guild, "staff")
        person = self.fake.person(f"Person {cell.number}", bot="bot" in cell.way.act)
        if cell.way.act == "member":
            self.fake.give_role(self.guild, person, self.role)
        direct = cell.place == DIRECT
        cell.person = str(person)
        cell.channel = str(self.fake.dm(person) if direct else self.fake.add_channel(self.guild))

    def identity(self, person: str) -> str:
        return person

    def alone(self, cell: Cell) -> list[str]:
        return [one.displayed for one in self.fake.whispered(int(cell.channel), int(cell.person))]

    def public(self, cell: Cell) -> list[str]:
        return self.fake.said_by_bot(int(cell.channel))

    def card(self, cell: Cell) -> str:
        [card] = [
            one for one in self.fake.shown(int(cell.channel)) if one.author == self.fake.bot_id
        ]
        return str(card.id)

    def _say(self, cell: Cell, text: str = "", who: str = "", **more: Any) -> None:
        said = self.fake.say(int(cell.channel), int(who or cell.person), text, **more)
        cell.message = str(said)

    def _named(self, cell: Cell, text: str) -> str:
        return text if cell.place == DIRECT else f"<@{self.fake.bot_id}> {text}"

    def message(self, cell: Cell, text: str = "hello", who: str = "") -> None:
        self._say(cell, self._named(cell, text), who)

    def member(self, cell: Cell) -> None:
        self.message(cell)

    def unnamed(self, cell: Cell) -> None:
        self._say(cell, "hello")

    def edit(self, cell: Cell) -> None:
        self.fake.edit(int(cell.message), self._named(cell, "hello again"))

    def forward(self, cell: Cell) -> None:
        elsewhere = self.fake.add_channel(self.guild)
        said = self.fake.say(elsewhere, int(cell.person), "/probe")
        self._say(cell, forward=said)

    def voice(self, cell: Cell) -> None:
        self._say(cell, files={"voice-message.ogg": b"OggS"}, flags=VOICE)

    def command(self, cell: Cell) -> None:
        self._say(cell, self._named(cell, "/probe"))

    def operators_command(self, cell: Cell) -> None:
        self._say(cell, self._named(cell, "/manage"))

    def slash(self, cell: Cell) -> None:
        self.used.append(self.fake.slash(int(cell.channel), int(cell.person), "probe"))

    def operators_slash(self, cell: Cell) -> None:
        """Use one that no menu shows, as one that was registered before."""
        self._act(cell, COMMAND, {"id": "1", "name": "manage", "type": 1, "options": []})

    def complete(self, cell: Cell) -> None:
        place, person = int(cell.channel), int(cell.person)
        self.used.append(self.fake.complete(place, person, "probe", "arguments", "x"))

    def press(self, cell: Cell) -> None:
        self.used.append(self.fake.press(int(cell.message), int(cell.person), "Approve"))

    def modal(self, cell: Cell) -> None:
        self._act(cell, MODAL, {"custom_id": "form", "components": []})

    def menu(self, cell: Cell) -> None:
        """Use a command of a message's menu, of which the bot has none: nobody answers it."""
        data = {"id": "1", "name": "Ask", "type": 3, "target_id": "1"}
        self.fake.act(int(cell.channel), int(cell.person), COMMAND, data)

    def _act(self, cell: Cell, kind: int, data: dict[str, Any]) -> None:
        self.used.append(self.fake.act(int(cell.channel), int(cell.person), kind, data))

    def thread(self, cell: Cell) -> None:
        self.fake.open_thread(int(cell.channel), int(cell.person))

    def react(self, cell: Cell) -> None:
        self.fake.react(int(cell.message), int(cell.person), "👍")

    def bot(self, cell: Cell) -> None:
        self.message(cell)

    def listed_bot(self, cell: Cell) -> None:
        self.message(cell)

    def hook(self, cell: Cell) -> None:
        """Write by a webhook under the id of a person, which none has."""
        self._say(cell, self._named(cell, "hello"), hook=1)
