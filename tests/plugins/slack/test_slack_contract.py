"""The platform's contract, on the Slack of the tests, over its sockets."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from typing import Any, Final

import attrs
import pytest

from dragoman import Address, Component, Place, Secret
from dragoman.testing.platform_suite import Fault, PlatformSuite, Seen
from dragoman_slack import dragoman_platforms
from dragoman_slack.config import SlackConfig
from peers.slack_fake import SlackFake
from peers.slack_fake.blocks import buttons
from peers.slack_fake.messages import Shown
from peers.slack_fake.people import Said

_SEND: Final = "chat.postMessage"
_NOWHERE: Final = "http://127.0.0.1:9/api/"
_ADA: Final = "U0ADA"
_REFUSALS: Final = {
    "blocked": "cannot_dm_bot",
    "unauthorized": "invalid_auth",
    "refused": "invalid_blocks",
    "no channel": "channel_not_found",
}


@attrs.define(eq=False)
class SlackHarness:
    """The Slack of the tests, with a channel, a thread and a person."""

    fake: SlackFake
    secrets: tuple[str, ...] = (
        "xoxb-fixture-bot",
        "xapp-fixture-app",
        "fixture-signing-secret",
        "ticket0",
    )
    cannot: dict[str, str] = attrs.field(
        factory=lambda: {
            "no thread": "what is sent to a thread that is gone is shown in the channel",
            "reply": "Slack has threads where others have replies to a message",
        }
    )
    dm: Address = attrs.field(init=False)
    room: Address = attrs.field(init=False)
    thread: Address = attrs.field(init=False)
    _said: dict[str, Said] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        fake = self.fake
        fake.settings.retries = (0.05, 0.1, 0.2, 0.5, 1.0, 1.0)
        fake.person(_ADA, "ada", "Ada Lovelace")
        channel, team = fake.channel("general", _ADA), fake.team.id
        self.dm = Address("slack", fake.dm(_ADA), workspace=team)
        self.room = Address("slack", channel, workspace=team, place=Place.GROUP)
        self.thread = attrs.evolve(self.room, thread=fake.say(channel, _ADA, "topic").ts)

    @property
    def component(self) -> Component[Any, Any]:
        [found] = dragoman_platforms()
        return found

    def config(self, *, reachable: bool = True) -> SlackConfig:
        return SlackConfig(
            bot_token=Secret("env BOT", self.fake.app.bot_token),
            app_token=Secret("env APP", self.fake.app.app_token),
            api_url=self.fake.url if reachable else _NOWHERE,
            connections=1,  # between several, Slack keeps no order
        )

    async def connected(self) -> None:
        await self.fake.reached(lambda: bool(self.fake.sockets))

    async def say(
        self,
        address: Address,
        text: str,
        *,
        mention: bool = False,
        reply_to: str = "",
        file: tuple[str, bytes] | None = None,
        bot: bool = False,
    ) -> str:
        said = self.fake.say(
            address.channel,
            _ADA,
            f"{self.fake.mention} {text}" if mention else text,
            thread=address.thread or None,
            files=[file] if file else (),
            extra={"bot_id": "B0OTHER"} if bot else None,
        )
        self._said[said.ts] = said
        return said.ts

    async def edit(self, address: Address, message_id: str, text: str) -> None:
        self.fake.edit(address.channel, message_id, text)

    async def remove(self, address: Address, message_id: str) -> None:
        self.fake.delete(address.channel, message_id)

    async def reaction(self, address: Address, message_id: str, emoji: str) -> None:
        self.fake.react(address.channel, message_id, _ADA, {"👍": "+1"}[emoji])

    async def press(self, address: Address, native_id: str, label: str) -> None:
        [shown] = [one for one in self.fake.shown(address.channel) if one.ts == native_id]
        [action] = [one for one in _buttons(shown) if one["text"]["text"] == label]
        self.fake.press(address.channel, native_id, _ADA, action["action_id"])

    async def answered(self, address: Address) -> Sequence[str]:
        return [_read(one) for one in self.fake.ephemerals(address.channel, _ADA)]

    async def erase(self, address: Address, native_id: str) -> None:
        self.fake.delete(address.channel, native_id)

    async def junk(self, address: Address) -> None:
        self.fake.enqueue({"type": "something_new", "channel": address.channel})
        self.fake.enqueue({"type": "message", "channel": address.channel, "ts": ["?"]})

    async def replay(self, message_id: str) -> None:
        for delivery in self._said[message_id].deliveries:
            if delivery.fate != "acked":
                self.fake.redeliver(delivery)

    async def confirmed(self, message_id: str) -> None:
        for delivery in self._said[message_id].deliveries:
            await self.fake.reached(lambda one=delivery: one.fate == "acked")

    async def drop(self) -> None:
        before = set(self.fake.sockets)
        self.fake.drop()
        await self.fake.reached(lambda: not before & set(self.fake.sockets))

    async def fault(self, fault: Fault) -> None:
        match fault:
            case "lost":
                self.fake.cut(_SEND, after_apply=True)
            case "limited":
                self.fake.rate_limit(_SEND, 7)
            case "garbled":
                self.fake.fail(_SEND, 502)
            case _:
                self.fake.refuse(_SEND, _REFUSALS[fault])

    async def shown(self, address: Address) -> Sequence[Seen]:
        return [
            Seen(
                native_id=one.ts,
                text=_read(one),
                files={self.fake.file_name(file): self.fake.file(file) for file in one.files},
                buttons=tuple(button["text"]["text"] for button in _buttons(one)),
            )
            for one in self.fake.shown(address.channel)
            if (one.user, one.deleted) == (self.fake.app.user_id, False)
            and (one.thread or "") == address.thread
        ]

    async def reactions(self, address: Address, message_id: str) -> Sequence[str]:
        [found] = [one for one in self.fake.shown(address.channel) if one.ts == message_id]
        return [name for name, who in found.reactions.items() if self.fake.app.user_id in who]

    async def typings(self, address: Address) -> int:
        return len([one for one in self.fake.statuses(address.channel, address.thread) if one])


def _read(shown: Shown) -> str:
    """Return what people read; text that is no Markdown travels escaped."""
    markdown = any(block["type"] == "markdown" for block in shown.blocks)
    return shown.source if markdown else html.unescape(shown.source)


def _buttons(shown: Shown) -> list[dict[str, Any]]:
    return buttons(list(shown.blocks))


class TestSlack(PlatformSuite):
    @pytest.fixture
    def harness(self) -> Iterator[SlackHarness]:
        with SlackFake() as fake:
            yield SlackHarness(fake)
