"""One person's chat with the bot, the same to look at on each of the fakes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol

import attrs

from peers.discord_fake import DiscordFake
from peers.slack_fake import Settings, SlackFake
from peers.slack_fake.blocks import buttons
from peers.telegram_fake import TelegramFake

FILE: Final = "notes.txt"
_PERSON: Final = 700000001
_MEMBER: Final = "U0ADA"


@attrs.frozen
class Shows:
    """A message of the bot as the person sees it now; ``versions`` are all that it has said."""

    text: str
    buttons: tuple[str, ...] = ()
    files: tuple[tuple[str, bytes], ...] = attrs.field(
        default=(), repr=lambda files: f"{len(files)}"
    )
    versions: tuple[str, ...] = attrs.field(default=(), eq=False, repr=False)


class Room(Protocol):
    """The person's side. Every method may be called from any thread."""

    @property
    def tables(self) -> str:
        """The manifest's table of the platform; its name there is that of the plugin."""
        ...

    @property
    def user(self) -> str:
        """The person, as an access list names them."""
        ...

    @property
    def environment(self) -> dict[str, str]:
        """Where the table's secrets are."""
        ...

    @property
    def fake(self) -> AbstractContextManager[Any]:
        """The server; it has to be entered before anything else."""
        ...

    def say(self, text: str) -> None:
        """Write to the bot."""
        ...

    def upload(self, content: bytes) -> None:
        """Send the bot a file by the name `FILE`."""
        ...

    def press(self, label: str) -> None:
        """Press the one button of this label; `LookupError` where no message shows it."""
        ...

    def shown(self) -> Sequence[Shows]:
        """Return the messages of the bot that the person sees, oldest first."""
        ...

    def previews(self) -> Sequence[str]:
        """Return at least all that was shown of the newest answer, whether it was a message or
        not, in the order in which it was seen."""
        ...

    def connected(self) -> bool:
        """Whether a gateway takes events now."""
        ...


@attrs.define(eq=False)
class TelegramRoom:
    """A private chat."""

    fake: TelegramFake = attrs.field(factory=TelegramFake)
    user: str = f"telegram:{_PERSON}"

    @property
    def tables(self) -> str:
        """Polls are short: one that a kill left open is given the next message, and forgotten."""
        return (
            '[platforms.telegram]\ntoken = { env = "TELEGRAM_TOKEN" }\n'
            f'api_url = "{self.fake.url}"\npoll_timeout = 5\n'
        )

    @property
    def environment(self) -> dict[str, str]:
        """The bot's token."""
        return {"TELEGRAM_TOKEN": self.fake.token}

    def say(self, text: str) -> None:
        """Write to the bot."""
        self.fake.say(_PERSON, _PERSON, text)

    def upload(self, content: bytes) -> None:
        """Send a document."""
        self.fake.say(_PERSON, _PERSON, file=("document", FILE, content))

    def press(self, label: str) -> None:
        """Press a key of an inline keyboard."""
        with self.fake._world.changed:
            rows = [
                (one.id, key)
                for one in self.fake._world.history(_PERSON)
                for row in one.buttons
                for key in row
            ]
        (found,) = [(one, key["callback_data"]) for one, key in rows if key["text"] == label]
        self.fake.press(_PERSON, found[0], _PERSON, found[1])

    def shown(self) -> list[Shows]:
        """Return the bot's messages; a document has its caption as text."""
        return [
            Shows(
                one.text,
                tuple(label for row in one.buttons for label in row),
                tuple((self._name(one.message_id), self.fake.file(each)) for each in one.files),
                tuple(version.text for version in one.versions),
            )
            for one in self.fake.chat(_PERSON)
            if one.sender == self.fake.bot_id and not one.deleted
        ]

    def previews(self) -> list[str]:
        """Return all drafts, and what the messages have said."""
        shown = [one for one in self.fake.chat(_PERSON) if one.sender == self.fake.bot_id]
        versions = [version for one in shown for version in one.versions]
        seen = [(one.at, one.text) for one in [*versions, *self.fake.drafts(_PERSON)]]
        return [text for _, text in sorted(seen, key=lambda one: one[0])]

    def connected(self) -> bool:
        """Whether it polls."""
        return any(call.stage == "arrived" for call in self.fake.calls_of("getUpdates"))

    def _name(self, message: int) -> str:
        media = self.fake._world.messages[_PERSON, message].media
        return str(media.get("document", {}).get("file_name", ""))


@attrs.define(eq=False)
class DiscordRoom:
    """A channel of a server, in which the bot is mentioned."""

    fake: DiscordFake = attrs.field(factory=lambda: DiscordFake(heartbeat=0.5))
    _person: int = attrs.field(init=False)
    _channel: int = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._person = self.fake.person("Ada")
        self._channel = self.fake.add_channel(self.fake.add_guild())

    @property
    def user(self) -> str:
        """The person."""
        return f"discord:{self._person}"

    @property
    def tables(self) -> str:
        """The platform's table."""
        return (
            '[platforms.discord]\ntoken = { env = "DISCORD_TOKEN" }\n'
            f'api_url = "{self.fake.api}"\n'
        )

    @property
    def environment(self) -> dict[str, str]:
        """The bot's token."""
        return {"DISCORD_TOKEN": self.fake.token}

    def say(self, text: str) -> None:
        """Mention the bot."""
        self.fake.say(self._channel, self._person, f"<@{self.fake.bot_id}> {text}")

    def upload(self, content: bytes) -> None:
        """Mention the bot in a message with a file."""
        mention = f"<@{self.fake.bot_id}>"
        self.fake.say(self._channel, self._person, mention, files={FILE: content})

    def press(self, label: str) -> None:
        """Press a button below a message."""
        shown = [one.id for one in self.fake.shown(self._channel) if label in one.buttons]
        (message,) = shown
        self.fake.press(message, self._person, label)

    def shown(self) -> list[Shows]:
        """Return the bot's messages."""
        return [
            Shows(
                one.displayed,
                one.buttons,
                tuple(one.files.items()),
                tuple(version.text for version in one.versions),
            )
            for one in self.fake.shown(self._channel)
            if one.author == self.fake.bot_id
        ]

    def previews(self) -> list[str]:
        """Return all that the newest message has said."""
        return [text for one in self.shown()[-1:] for text in one.versions]

    def connected(self) -> bool:
        """Whether a session has a connection."""
        return any(each.connection is not None for each in self.fake.sessions)


@attrs.define(eq=False)
class SlackRoom:
    """A thread of a channel, in which the bot is mentioned.

    What is said while no gateway is there comes again after seconds, where Slack takes minutes.
    """

    fake: SlackFake = attrs.field(
        factory=lambda: SlackFake(settings=Settings(retries=(0.0, 1.0, 3.0, 10.0)))
    )
    user: str = attrs.field(init=False)
    _channel: str = attrs.field(init=False)
    _root: str | None = None

    def __attrs_post_init__(self) -> None:
        self.user = f"slack:{self.fake.team.id}:{_MEMBER}"
        self.fake.person(_MEMBER, "ada", "Ada Lovelace")
        self._channel = self.fake.channel("general", _MEMBER)

    @property
    def tables(self) -> str:
        """The platform's table."""
        return (
            '[platforms.slack]\nbot_token = { env = "SLACK_BOT_TOKEN" }\n'
            f'app_token = {{ env = "SLACK_APP_TOKEN" }}\napi_url = "{self.fake.url}"\n'
        )

    @property
    def environment(self) -> dict[str, str]:
        """The app's tokens."""
        return {
            "SLACK_BOT_TOKEN": self.fake.app.bot_token,
            "SLACK_APP_TOKEN": self.fake.app.app_token,
        }

    def say(self, text: str) -> None:
        """Mention the app; the first time opens the thread."""
        text = f"{self.fake.mention} {text}"
        said = self.fake.say(self._channel, _MEMBER, text, thread=self._root)
        self._root = self._root or said.ts

    def upload(self, content: bytes) -> None:
        """Mention the app in a message with a file."""
        files, text = [(FILE, content)], self.fake.mention
        self.fake.say(self._channel, _MEMBER, text, thread=self._root, files=files)

    def press(self, label: str) -> None:
        """Press a button below a message."""
        (found,) = [
            (one.ts, button["action_id"])
            for one in self.fake.shown(self._channel)
            if not one.deleted
            for button in buttons(list(one.blocks))
            if button["text"]["text"] == label
        ]
        self.fake.press(self._channel, found[0], _MEMBER, found[1])

    def shown(self) -> list[Shows]:
        """Return the app's messages of the thread."""
        return [
            Shows(
                one.source,
                tuple(button["text"]["text"] for button in buttons(list(one.blocks))),
                tuple((self.fake.file_name(each), self.fake.file(each)) for each in one.files),
                tuple(version.source for version in one.versions),
            )
            for one in self.fake.shown(self._channel)
            if one.user == self.fake.app.user_id and not one.deleted
        ]

    def previews(self) -> list[str]:
        """Return all that the newest message has said."""
        return [text for one in self.shown()[-1:] for text in one.versions]

    def connected(self) -> bool:
        """Whether a socket is open."""
        return bool(self.fake.sockets)
