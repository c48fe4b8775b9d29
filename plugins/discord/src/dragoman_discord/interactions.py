"""Interactions: slash commands, pressed buttons and forms, and the tokens that answer them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final

import anyio
import attrs

from dragoman import (
    Address,
    Clock,
    ComponentRecords,
    Expired,
    Inbound,
    Kind,
    NotSent,
    Outbound,
    Sender,
)
from dragoman_discord.fields import Json, as_id, as_int, as_list, as_map, as_text, time_of
from dragoman_discord.rest import Rest
from dragoman_discord.translate import Scene, channel_of, roles_of
from dragoman_discord.words import label_of

PING: Final = 1
COMMAND: Final = 2
PRESS: Final = 3
COMPLETION: Final = 4
MODAL: Final = 5
_HIDDEN: Final = {"flags": 1 << 6}
_LATER: Final[dict[str, Any]] = {"type": 5}
_NO_CHANGE: Final[dict[str, Any]] = {"type": 6}
_NO_CHOICES: Final[dict[str, Any]] = {"type": 8, "data": {"choices": []}}
DECIDED: Final = 0.5
"""Seconds that core may take to turn somebody away before everybody sees that an answer comes."""
LIFE: Final = timedelta(minutes=14, seconds=30)
"""How long a token is used; Discord takes it for 15 minutes."""
FRESH: Final = timedelta(seconds=5)
"""How long the first answer may be on its way: until then its message may not be there yet."""
HEARD: Final = 3.0
"""Seconds within which an interaction has to be answered for the first time."""
OPEN: Final = 100
_KEY: Final = "interactions"
_WHISPERED: Final = "-"
"""In place of the delivery that answers a command."""


def interaction_of(data: Json, scene: Scene) -> Inbound | None:
    """Read an interaction: a command is a message; a pressed button or a form is a press."""
    channel, identity = channel_of(data, scene), as_id(data.get("id"))
    member = as_map(data.get("member"))
    user = as_map(member.get("user")) or as_map(data.get("user"))
    person, content = as_id(user.get("id")), as_map(data.get("data"))
    if channel is None or not identity or not person:
        return None
    event = Inbound(
        native_id=identity,
        address=scene.places.address(channel),
        sender=Sender(person, label_of(user), bot=user.get("bot") is True, roles=roles_of(member)),
        text="",
        sent_at=time_of(identity),
        message_id=identity,
        within=scene.places.within(channel),
    )
    name = as_text(content.get("name"))
    if data.get("type") == COMMAND and name and content.get("type") in (1, None):
        words = [name, *_arguments(content.get("options"), 0)]
        return attrs.evolve(event, text="/" + " ".join(filter(None, words)), answerable=True)
    pressed = as_text(content.get("custom_id"))
    message = as_id(as_map(data.get("message")).get("id"))
    if pressed and (data.get("type") == MODAL or (data.get("type") == PRESS and message)):
        return attrs.evolve(event, kind=Kind.PRESS, data=pressed, message_id=message or identity)
    return None


def _arguments(options: Any, depth: int) -> Iterator[str]:
    for option in map(as_map, as_list(options)):
        if as_int(option.get("type")) in (1, 2) and depth < 3:  # a command of a command
            yield as_text(option.get("name"))
            yield from _arguments(option.get("options"), depth + 1)
        elif "value" in option:
            value = option["value"]
            yield as_text(value) if isinstance(value, str) else json.dumps(value)


@attrs.define(eq=False)
class Token:
    """An interaction that may still be answered through its token.

    ``delivery`` is the message that answers it; the same one again is the same answer. ``first`` is
    its first answer, as soon as that is settled, and ``heard`` that Discord was given it.
    """

    id: str
    application: str
    value: str = attrs.field(repr=False)
    channel: str
    delivery: str = ""
    first: Json | None = None
    wanted: anyio.Event = attrs.field(factory=anyio.Event)
    heard: anyio.Event = attrs.field(factory=anyio.Event)


@attrs.define(eq=False)
class Interactions:
    """The tokens of one bot, kept in its records for the next life of the process."""

    _rest: Rest
    _records: ComponentRecords
    _clock: Clock
    _tokens: dict[str, Token] = attrs.field(factory=dict, repr=False)
    _presses: dict[str, Token] = attrs.field(factory=dict, repr=False)
    """Of pressed buttons: they are answered within seconds, or not at all."""

    async def load(self) -> None:
        """Take up what an earlier life of the process had open."""
        for row in as_list(json.loads(await self._records.get(_KEY) or "[]")):
            identity, application, value, channel, delivery = map(as_text, row)
            token = Token(identity, application, value, channel, delivery, first=_LATER)
            token.heard.set()
            self._tokens.setdefault(token.id, token)

    async def opened(self, data: Json) -> None:
        """Keep the token of a command, durably; that of a press as long as this process lives."""
        token = Token(
            as_id(data.get("id")),
            as_id(data.get("application_id")),
            as_text(data.get("token")),
            as_id(data.get("channel_id")),
        )
        if data.get("type") != COMMAND:
            self._presses.setdefault(token.id, token)
            if len(self._presses) > OPEN:
                del self._presses[next(iter(self._presses))]
            return
        self._tokens.setdefault(token.id, token)
        await self._save()

    def heard(self, identity: str) -> None:
        """Say that an interaction has its first answer."""
        if token := self._tokens.get(identity) or self._presses.get(identity):
            token.heard.set()

    async def first(self, data: Json) -> Json:
        """Return the first answer: that a command is turned away, or that an answer comes."""
        kind, identity = as_int(data.get("type")), as_id(data.get("id"))
        if kind == COMPLETION:
            return _NO_CHOICES
        if kind != COMMAND:
            return _NO_CHANGE if data.get("message") else {**_LATER, "data": _HIDDEN}
        token = self._tokens.get(identity)
        if token is None:
            return _LATER
        with self._clock.move_on_after(DECIDED):
            await token.wanted.wait()
        token.first = token.first or _LATER
        return token.first

    async def reply(self, data: Json) -> None:
        """Give the first answer; what cannot be answered any more is answered the ordinary way."""
        identity = as_id(data.get("id"))
        token = self._tokens.get(identity) or self._presses.get(identity)
        route = "POST /interactions/{interaction}/{token}/callback"
        try:
            await self._rest.call(
                route,
                interaction=identity,
                token=as_text(data.get("token")),
                body=await self.first(data),
            )
        except Expired:
            self._tokens.pop(identity, None)
            self._presses.pop(identity, None)
        finally:
            if token is not None:
                token.heard.set()

    def find(self, address: Address, message: Outbound) -> Token | None:
        """Return the token that a message goes out by: of the command that it answers.

        In direct messages nothing is quoted; there it is the oldest command without an answer.
        """
        if message.ordinary or message.file is not None:
            return None
        here = address.thread or address.channel
        for token in list(self._tokens.values()):
            asked = token.id == message.reply_to or (not message.reply_to and not address.workspace)
            mine = token.delivery == message.delivery_id
            if token.channel == here and (mine or (asked and not token.delivery)):
                return token
        return None

    def names(self, identity: str) -> bool:
        """Whether an id is that of a command, so of no message."""
        return identity in self._tokens

    async def answer(self, token: Token, body: Json, address: Address, delivery: str) -> Any:
        """Show the answer to a command; raises `dragoman.Expired` once its token is over."""
        age = self._clock.now() - time_of(token.id)
        if age > LIFE:
            self._tokens.pop(token.id, None)
            raise Expired("the command was given too long ago")
        token.delivery = delivery
        await self._save()
        await self._until_heard(token)
        try:
            return await self._rest.call(
                "PATCH /webhooks/{application}/{token}/messages/@original",
                address=address,
                application=token.application,
                token=token.value,
                body=body,
            )
        except Expired as error:
            if age < FRESH:
                raise NotSent("the command's first answer is not shown yet") from error
            self._tokens.pop(token.id, None)
            raise

    async def whisper(self, identity: str, body: Json | None) -> None:
        """Answer a press or a command, once; without a body a press's token is only dropped.

        A command has no other answer then, and whatever was shown of it is taken away.
        """
        command, press = self._tokens.get(identity), self._presses.get(identity)
        token = command or press
        if token is None:
            raise Expired("it came to an earlier life, or was answered")
        if command is not None:
            command.delivery = _WHISPERED
            if command.first is None and body:
                command.first = {"type": 4, "data": body}
                body = None
        if body is not None or command is not None:
            await self._until_heard(token)
        own, secret = token.application, token.value
        path = "/webhooks/{application}/{token}"
        if command is not None and command.first == _LATER:
            gone = f"DELETE {path}/messages/@original"
            await self._rest.call(gone, application=own, token=secret)
        if body is not None:
            await self._rest.call(f"POST {path}", application=own, token=secret, body=body)
        self._presses.pop(identity, None)
        if self._tokens.pop(identity, None):
            await self._save()

    async def _until_heard(self, token: Token) -> None:
        """Have the first answer given, and wait until Discord has it."""
        token.wanted.set()
        with self._clock.move_on_after(HEARD):
            await token.heard.wait()

    async def _save(self) -> None:
        now = self._clock.now()
        for identity in list(self._tokens):
            if now - time_of(identity) > LIFE or len(self._tokens) > OPEN:
                del self._tokens[identity]
        rows = [
            (token.id, token.application, token.value, token.channel, token.delivery)
            for token in self._tokens.values()
        ]
        await self._records.put(_KEY, json.dumps(rows))
