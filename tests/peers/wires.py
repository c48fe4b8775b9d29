"""Two people in channels with the bot, and buttons below its messages: the same on each fake.

The bot may be opened in this process (`Wire.open`) or be that of a manifest (`Wire.tables`).
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from itertools import chain
from typing import Any, Final, Protocol

import attrs

from dragoman import Platform, Secret
from dragoman_discord.config import DiscordConfig
from dragoman_discord.platform import open_discord
from dragoman_slack.config import SlackConfig
from dragoman_slack.platform import open_slack
from dragoman_telegram.config import TelegramConfig
from dragoman_telegram.platform import open_telegram
from peers.discord_fake import DiscordFake
from peers.slack_fake import SlackFake
from peers.slack_fake.blocks import buttons as slack_buttons
from peers.telegram_fake import USERNAME, TelegramFake

ADA, BEN = 0, 1
"""Who says everything, and somebody else who is in the same rooms."""
NAMES: Final = ("Ada", "Ben")

Opened = AbstractAsyncContextManager[Platform]


@attrs.frozen
class Card:
    """A message of the bot, as it is now: ``buttons`` are what they carry, by label."""

    id: str
    text: str
    buttons: dict[str, str]


class Wire(Protocol):
    """What people do and see. Rooms and messages are named by their ids."""

    fake: Any
    """The server; it has to be entered before anything else."""
    rooms: list[str]
    users: tuple[str, ...]
    """The people, as an access list names them."""
    tables: str
    """The manifest's table of the platform."""
    environment: dict[str, str]
    """Where the table's secrets are."""

    def open(self, host: Any) -> Opened:
        """Open the platform in this process."""
        ...

    def connected(self) -> bool:
        """Whether a gateway takes events now."""
        ...

    def say(self, room: str, text: str) -> None:
        """Let Ada mention the bot."""
        ...

    def shown(self, room: str) -> list[Card]:
        """Return the bot's messages in a room, oldest first."""
        ...

    def press(self, who: int, room: str, message: str, data: str) -> None:
        """Press what carries this, whether a message shows it or not."""
        ...

    def press_by_nobody(self, room: str, message: str, data: str) -> None:
        """The same without a person."""
        ...

    def told(self, who: int) -> list[str]:
        """Return what a person was told that nobody else saw, oldest first."""
        ...


@attrs.define(eq=False)
class TelegramWire:
    """Groups; presses are answered by a notice."""

    count: int = 2
    fake: TelegramFake = attrs.field(factory=TelegramFake)
    rooms: list[str] = attrs.field(init=False)
    people: tuple[int, int] = (700000001, 700000002)
    users: tuple[str, ...] = attrs.field(init=False)
    pressed: dict[int, list[str]] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self.rooms = [str(-1001500000001 - number) for number in range(self.count)]
        self.users = tuple(f"telegram:{person}" for person in self.people)
        for person, name in zip(self.people, NAMES, strict=True):
            self.fake.person(person, name)
        for room in self.rooms:
            self.fake.add_chat(int(room), "supergroup", "Team")

    @property
    def tables(self) -> str:
        return (
            '[platforms.telegram]\ntoken = { env = "TELEGRAM_TOKEN" }\n'
            f'api_url = "{self.fake.url}"\npoll_timeout = 5\ndrafts = false\n'
        )

    @property
    def environment(self) -> dict[str, str]:
        return {"TELEGRAM_TOKEN": self.fake.token}

    def open(self, host: Any) -> Opened:
        token = Secret("env TOKEN", self.fake.token)
        config = TelegramConfig(token=token, api_url=self.fake.url, poll_timeout=1, drafts=False)
        return open_telegram(config, host)

    def connected(self) -> bool:
        return any(call.stage == "arrived" for call in self.fake.calls_of("getUpdates"))

    def say(self, room: str, text: str) -> None:
        self.fake.say(int(room), self.people[ADA], f"@{USERNAME} {text}")

    def shown(self, room: str) -> list[Card]:
        with self.fake._world.changed:
            keys = {
                one.id: {key["text"]: key["callback_data"] for row in one.buttons for key in row}
                for one in self.fake._world.history(int(room))
            }
        return [
            Card(str(one.message_id), one.text, keys[one.message_id])
            for one in self.fake.chat(int(room))
            if one.sender == self.fake.bot_id
        ]

    def press(self, who: int, room: str, message: str, data: str) -> None:
        made = self.fake.press(int(room), int(message), self.people[who], data, unseen=True)
        self.pressed.setdefault(who, []).append(made.query_id)

    def press_by_nobody(self, room: str, message: str, data: str) -> None:
        with self.fake._world.changed:
            found = self.fake._world.messages[int(room), int(message)]
            place = self.fake._accessible(found)
        self.fake.enqueue({"callback_query": {"id": "1", "message": place, "data": data}})

    def told(self, who: int) -> list[str]:
        answers = map(self.fake.answer_to, self.pressed.get(who, ()))
        return [one["text"] for one in answers if one and one.get("text")]


@attrs.define(eq=False)
class DiscordWire:
    """Channels of a server; presses are answered by a message that one person sees."""

    count: int = 2
    fake: DiscordFake = attrs.field(factory=lambda: DiscordFake(heartbeat=0.5))
    rooms: list[str] = attrs.field(init=False)
    people: tuple[int, int] = attrs.field(init=False)
    users: tuple[str, ...] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        ada, ben = map(self.fake.person, NAMES)
        self.people, guild = (ada, ben), self.fake.add_guild()
        self.users = tuple(f"discord:{person}" for person in self.people)
        self.rooms = [str(self.fake.add_channel(guild)) for _ in range(self.count)]

    @property
    def tables(self) -> str:
        return (
            '[platforms.discord]\ntoken = { env = "DISCORD_TOKEN" }\n'
            f'api_url = "{self.fake.api}"\n'
        )

    @property
    def environment(self) -> dict[str, str]:
        return {"DISCORD_TOKEN": self.fake.token}

    def open(self, host: Any) -> Opened:
        token = Secret("env TOKEN", self.fake.token)
        return open_discord(DiscordConfig(token=token, api_url=self.fake.api), host)

    def connected(self) -> bool:
        return any(one.connection for one in self.fake.sessions)

    def say(self, room: str, text: str) -> None:
        self.fake.say(int(room), self.people[ADA], f"<@{self.fake.bot_id}> {text}")

    def shown(self, room: str) -> list[Card]:
        with self.fake._world.changed:
            rows = {one.id: list(one.components) for one in self.fake._world.messages.values()}
        return [
            Card(
                str(one.id),
                one.displayed,
                {
                    key["label"]: key["custom_id"]
                    for row in rows[one.id]
                    for key in row["components"]
                },
            )
            for one in self.fake.shown(int(room))
            if one.author == self.fake.bot_id
        ]

    def press(self, who: int, room: str, message: str, data: str) -> None:
        del room  # a message is in one
        self.fake.press(int(message), self.people[who], data, unseen=True)

    def press_by_nobody(self, room: str, message: str, data: str) -> None:
        body = {"id": "1", "application_id": "1", "type": 3, "token": "x", "channel_id": room}
        pressed = {"custom_id": data, "component_type": 2}
        self.fake.event("INTERACTION_CREATE", body | {"data": pressed, "message": {"id": message}})

    def told(self, who: int) -> list[str]:
        found = [self.fake.whispered(int(room), self.people[who]) for room in self.rooms]
        return [one.displayed for one in sorted(chain(*found), key=lambda one: one.id)]


@attrs.define(eq=False)
class SlackWire:
    """Channels of a workspace; presses are answered by a message that one person sees."""

    count: int = 2
    fake: SlackFake = attrs.field(factory=SlackFake)
    rooms: list[str] = attrs.field(init=False)
    people: tuple[str, str] = ("U0ADA", "U0BEN")
    users: tuple[str, ...] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        for person, name in zip(self.people, NAMES, strict=True):
            self.fake.person(person, name, name)
        self.users = tuple(f"slack:{self.fake.team.id}:{person}" for person in self.people)
        names = [f"room{number}" for number in range(self.count)]
        self.rooms = [self.fake.channel(name, *self.people) for name in names]

    @property
    def tables(self) -> str:
        return (
            '[platforms.slack]\nbot_token = { env = "SLACK_BOT_TOKEN" }\n'
            f'app_token = {{ env = "SLACK_APP_TOKEN" }}\napi_url = "{self.fake.url}"\n'
            'replies = "channel"\nconnections = 1\n'
        )

    @property
    def environment(self) -> dict[str, str]:
        app = self.fake.app
        return {"SLACK_BOT_TOKEN": app.bot_token, "SLACK_APP_TOKEN": app.app_token}

    def open(self, host: Any) -> Opened:
        config = SlackConfig(
            bot_token=Secret("env BOT", self.fake.app.bot_token),
            app_token=Secret("env APP", self.fake.app.app_token),
            api_url=self.fake.url,
            replies="channel",
            connections=1,
        )
        return open_slack(config, host)

    def connected(self) -> bool:
        return bool(self.fake.sockets)

    def say(self, room: str, text: str) -> None:
        self.fake.say(room, self.people[ADA], f"{self.fake.mention} {text}")

    def shown(self, room: str) -> list[Card]:
        return [
            Card(
                one.ts,
                one.source,
                {key["text"]["text"]: key["value"] for key in slack_buttons(list(one.blocks))},
            )
            for one in self.fake.shown(room)
            if one.user == self.fake.app.user_id
        ]

    def press(self, who: int, room: str, message: str, data: str) -> None:
        self.fake.press(room, message, self.people[who], "dragoman:0", unseen=data)

    def press_by_nobody(self, room: str, message: str, data: str) -> None:
        action = {"type": "button", "action_id": "dragoman:0", "value": data, "action_ts": "1.1"}
        payload: dict[str, Any] = {"type": "block_actions", "team": {"id": self.fake.team.id}}
        payload |= {"channel": {"id": room}, "container": {"message_ts": message}}
        with self.fake._world.changed:
            self.fake._world.deliver("interactive", payload | {"actions": [action]})

    def told(self, who: int) -> list[str]:
        found = [self.fake.ephemerals(room, self.people[who]) for room in self.rooms]
        return [one.source for one in sorted(chain(*found), key=lambda one: one.ts)]


WIRES: Final[dict[str, Any]] = {
    "telegram": TelegramWire,
    "discord": DiscordWire,
    "slack": SlackWire,
}
