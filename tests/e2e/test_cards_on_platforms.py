"""Questions with buttons on three platforms: every kind of press, over the wire of each."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import asynccontextmanager
from itertools import chain
from typing import Any, Final

import attrs
import pytest

from dragoman import (
    ApprovalRequested,
    Component,
    Finished,
    Paused,
    RuntimeCapabilities,
    Secret,
    TextBlock,
    hookimpl,
)
from dragoman.flow.decisions import NOT_YOURS
from dragoman.flow.presses import NO_BUTTON
from dragoman.manifest.model import Access
from dragoman.testing import ScriptedRuntime, StubPlugin
from dragoman.testing.platform import StubConfig
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
from stage import eventually, gateway

pytestmark = pytest.mark.anyio

CAN: Final = RuntimeCapabilities(approve=True, resume=True, journal=True)
ADA, BEN = 0, 1
"""Who asks, and somebody else who is in the same rooms."""


async def script(request, host):
    """Ask before a refund; answer anything else."""
    if "refund" not in request.inputs[0].text:
        yield TextBlock("1", "hello")
    elif request.saved is None:
        yield ApprovalRequested("call_1", "refund", "{}")
        yield Paused("a state")
        return
    else:
        ran.append(request.address.channel)
        yield TextBlock("1", f"refund {request.decisions[0].verdict.value}")
    yield Finished()


ran: list[str] = []


@attrs.frozen
class Card:
    """A message of the bot, as it is now: ``buttons`` are what they carry, by label."""

    id: str
    text: str
    buttons: dict[str, str]


@attrs.define(eq=False)
class TelegramWire:
    """Two groups with two people each."""

    fake: TelegramFake = attrs.field(factory=TelegramFake)
    rooms: tuple[str, str] = ("-1001500000001", "-1001500000002")
    people: tuple[int, int] = (700000001, 700000002)
    pressed: dict[int, list[str]] = attrs.field(factory=dict)

    def __attrs_post_init__(self):
        for room in self.rooms:
            self.fake.add_chat(int(room), "supergroup", "Team")

    def open(self, host):
        token = Secret("env TOKEN", self.fake.token)
        config = TelegramConfig(token=token, api_url=self.fake.url, poll_timeout=1, drafts=False)
        return open_telegram(config, host)

    def connected(self):
        return bool(self.fake.calls_of("getUpdates"))

    def say(self, room, text):
        self.fake.say(int(room), self.people[ADA], f"@{USERNAME} {text}")

    def shown(self, room):
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

    def press(self, who, room, message, data):
        made = self.fake.press(int(room), int(message), self.people[who], data, unseen=True)
        self.pressed.setdefault(who, []).append(made.query_id)

    def press_by_nobody(self, room, message, data):
        with self.fake._world.changed:
            found = self.fake._world.messages[int(room), int(message)]
            place = self.fake._accessible(found)
        self.fake.enqueue({"callback_query": {"id": "1", "message": place, "data": data}})

    def told(self, who):
        answers = map(self.fake.answer_to, self.pressed.get(who, ()))
        return [one["text"] for one in answers if one and one.get("text")]


@attrs.define(eq=False)
class DiscordWire:
    """Two channels of a server."""

    fake: DiscordFake = attrs.field(factory=lambda: DiscordFake(heartbeat=0.5))
    rooms: tuple[str, str] = attrs.field(init=False)
    people: tuple[int, int] = attrs.field(init=False)

    def __attrs_post_init__(self):
        self.people = (self.fake.person("Ada"), self.fake.person("Ben"))
        guild = self.fake.add_guild()
        self.rooms = (str(self.fake.add_channel(guild)), str(self.fake.add_channel(guild)))

    def open(self, host):
        token = Secret("env TOKEN", self.fake.token)
        return open_discord(DiscordConfig(token=token, api_url=self.fake.api), host)

    def connected(self):
        return any(one.connection for one in self.fake.sessions)

    def say(self, room, text):
        self.fake.say(int(room), self.people[ADA], f"<@{self.fake.bot_id}> {text}")

    def shown(self, room):
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

    def press(self, who, room, message, data):
        del room  # a message is in one
        self.fake.press(int(message), self.people[who], data, unseen=True)

    def press_by_nobody(self, room, message, data):
        body = {"id": "1", "application_id": "1", "type": 3, "token": "x", "channel_id": room}
        pressed = {"custom_id": data, "component_type": 2}
        self.fake.event("INTERACTION_CREATE", body | {"data": pressed, "message": {"id": message}})

    def told(self, who):
        found = [self.fake.whispered(int(room), self.people[who]) for room in self.rooms]
        return [one.displayed for one in sorted(chain(*found), key=lambda one: one.id)]


@attrs.define(eq=False)
class SlackWire:
    """Two channels of a workspace."""

    fake: SlackFake = attrs.field(factory=SlackFake)
    rooms: tuple[str, str] = attrs.field(init=False)
    people: tuple[str, str] = ("U0ADA", "U0BEN")

    def __attrs_post_init__(self):
        for person, name in zip(self.people, ("ada", "ben"), strict=True):
            self.fake.person(person, name, name.title())
        self.rooms = (
            self.fake.channel("one", *self.people),
            self.fake.channel("two", *self.people),
        )

    def open(self, host):
        config = SlackConfig(
            bot_token=Secret("env BOT", self.fake.app.bot_token),
            app_token=Secret("env APP", self.fake.app.app_token),
            api_url=self.fake.url,
            replies="channel",
            connections=1,
        )
        return open_slack(config, host)

    def connected(self):
        return bool(self.fake.sockets)

    def say(self, room, text):
        self.fake.say(room, self.people[ADA], f"{self.fake.mention} {text}")

    def shown(self, room):
        return [
            Card(
                one.ts,
                one.source,
                {key["text"]["text"]: key["value"] for key in slack_buttons(list(one.blocks))},
            )
            for one in self.fake.shown(room)
            if one.user == self.fake.app.user_id
        ]

    def press(self, who, room, message, data):
        self.fake.press(room, message, self.people[who], "dragoman:0", unseen=data)

    def press_by_nobody(self, room, message, data):
        action = {"type": "button", "action_id": "dragoman:0", "value": data, "action_ts": "1.1"}
        payload: dict[str, Any] = {"type": "block_actions", "team": {"id": self.fake.team.id}}
        payload |= {"channel": {"id": room}, "container": {"message_ts": message}}
        with self.fake._world.changed:
            self.fake._world.deliver("interactive", payload | {"actions": [action]})

    def told(self, who):
        found = [self.fake.ephemerals(room, self.people[who]) for room in self.rooms]
        return [one.source for one in sorted(chain(*found), key=lambda one: one.ts)]


@pytest.fixture(params=[TelegramWire, DiscordWire, SlackWire], ids=["telegram", "discord", "slack"])
def wire(request) -> Iterator[Any]:
    made = request.param()
    with made.fake:
        yield made


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def plugin(wire):
    """A plugin whose one platform is the real one of the wire."""

    class OnWire(StubPlugin):
        @hookimpl
        def dragoman_platforms(self):
            @asynccontextmanager
            async def opened(config, host):
                async with wire.open(host) as platform:
                    yield platform

            yield Component("stub", StubConfig, opened)

    return OnWire(runtimes={"scripted": ScriptedRuntime(script, capabilities=CAN)})


async def card_in(wire, room):
    """Wait for the card of a room; return it."""

    async def there():
        return any(one.buttons for one in wire.shown(room))

    await eventually(there, True)
    (card,) = [one for one in wire.shown(room) if one.buttons]
    return card


async def until_told(wire, who, *told):
    async def heard():
        return wire.told(who)

    await eventually(heard, list(told))


async def test_fc_apr_02_every_kind_of_press_on_every_platform(wire, plugin, caplog):
    """FC-APR-02, FC-APR-05, C1: another person, chat and message, made up, nobody, the one who may,
    and twice: each is told so where nobody else sees it, and one of them decides."""
    caplog.set_level(logging.INFO, logger="dragoman")
    ran.clear()
    here, there = wire.rooms
    access = Access(channels=tuple(f"stub:{room}" for room in wire.rooms))
    async with gateway(plugin, access=access) as stage:
        await wire.fake.reached(wire.connected)
        wire.say(here, "hi")
        wire.say(there, "hi")
        for room in wire.rooms:
            await eventually(lambda room=room: said(wire, room), ["hello"])
        other, elsewhere = wire.shown(here)[0], wire.shown(there)[0]
        wire.say(here, "refund")
        card = await card_in(wire, here)
        assert list(card.buttons) == ["Approve", "Deny", "Always here"]
        yes, no = card.buttons["Approve"], card.buttons["Deny"]
        forged = yes[: yes.rindex(":") - 22] + "A" * 22 + ":y"
        wire.press(BEN, here, card.id, yes)
        await until_told(wire, BEN, NOT_YOURS)
        for told, (room, message, data) in enumerate(
            [(there, elsewhere.id, yes), (here, other.id, yes), (here, card.id, forged)], 1
        ):
            wire.press(ADA, room, message, data)
            await until_told(wire, ADA, *[NO_BUTTON] * told)
        wire.press_by_nobody(here, card.id, yes)
        assert await stage.rows("SELECT verdict FROM approvals") == [("open",)]
        refused = [one for one in caplog.messages if "refused" in one or "no question" in one]
        assert len(refused) == 4

        wire.press(ADA, here, card.id, no)
        await eventually(lambda: outcome(wire, here, card.id), ("refund: denied", {}))
        wire.press(ADA, here, card.id, yes)
        await eventually(lambda: late(wire), True)
        await stage.until_final()
        assert "refund denied" in [plain(one.text) for one in wire.shown(here)]
        assert ran == [here]
        events = await stage.rows("SELECT state FROM inbound_events WHERE event ->> '$.data' <> ''")
        assert sorted(state for (state,) in events) == ["handled", "ignored", *["refused"] * 4]


async def said(wire, room):
    return [plain(one.text) for one in wire.shown(room)]


async def outcome(wire, room, message):
    (card,) = [one for one in wire.shown(room) if one.id == message]
    line = plain(card.text).splitlines()[-1]
    return line.partition(" by ")[0].rstrip("."), card.buttons


async def late(wire):
    return plain(wire.told(ADA)[-1]) == "That is over. refund: denied."


def plain(text):
    """Return a text as people read it."""
    return text.replace("`", "").strip()
