"""Interactions: slash commands and pressed buttons, and the tokens that answer them for a while."""

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
from dragoman_discord.translate import Scene, channel_of
from dragoman_discord.words import label_of

PING: Final = 1
COMMAND: Final = 2
PRESS: Final = 3
DEFERRED: Final = {COMMAND: 5, PRESS: 6}
"""What is answered at once: "an answer comes", and for a button nothing that is seen."""
LIFE: Final = timedelta(minutes=14, seconds=30)
"""How long a token is used; Discord takes it for 15 minutes."""
FRESH: Final = timedelta(seconds=5)
"""How long the first answer may be on its way: until then its message may not be there yet."""
HEARD: Final = 3.0
"""Seconds within which an interaction has to be answered for the first time."""
OPEN: Final = 100
_KEY: Final = "interactions"


def interaction_of(data: Json, scene: Scene) -> Inbound | None:
    """Read an interaction: a command is a message, a pressed button is a press."""
    channel, identity = channel_of(data, scene), as_id(data.get("id"))
    user = as_map(as_map(data.get("member")).get("user")) or as_map(data.get("user"))
    person, content = as_id(user.get("id")), as_map(data.get("data"))
    if channel is None or not identity or not person:
        return None
    event = Inbound(
        native_id=identity,
        address=scene.places.address(channel),
        sender=Sender(person, label_of(user), bot=user.get("bot") is True),
        text="",
        sent_at=time_of(identity),
        message_id=identity,
        within=scene.places.within(channel),
    )
    name = as_text(content.get("name"))
    if data.get("type") == COMMAND and name and content.get("type") in (1, None):
        words = [name, *_arguments(content.get("options"), 0)]
        return attrs.evolve(event, text="/" + " ".join(filter(None, words)))
    pressed, message = (
        as_text(content.get("custom_id")),
        as_id(as_map(data.get("message")).get("id")),
    )
    if data.get("type") == PRESS and pressed and message:
        return attrs.evolve(event, kind=Kind.PRESS, data=pressed, message_id=message)
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
    """A command that may still be answered through its token.

    ``delivery`` is the message that answers it; the same one again is the same answer.
    """

    id: str
    application: str
    value: str = attrs.field(repr=False)
    channel: str
    delivery: str = ""
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
            token = Token(identity, application, value, channel, delivery)
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

    async def defer(self, data: Json) -> None:
        """Give the first answer; what cannot be answered any more is answered the ordinary way."""
        identity, kind = as_id(data.get("id")), as_int(data.get("type"))
        token = self._tokens.get(identity) or self._presses.get(identity)
        route = "POST /interactions/{interaction}/{token}/callback"
        try:
            await self._rest.call(
                route,
                interaction=identity,
                token=as_text(data.get("token")),
                body={"type": DEFERRED[kind or 0]},
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
        with self._clock.move_on_after(HEARD):
            await token.heard.wait()
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
        """Answer a press, once; without a body its token is only dropped."""
        token = self._presses.pop(identity, None)
        if token is None:
            raise Expired("the press came to an earlier life, or was answered")
        if body is None:
            return
        with self._clock.move_on_after(HEARD):
            await token.heard.wait()
        await self._rest.call(
            "POST /webhooks/{application}/{token}",
            application=token.application,
            token=token.value,
            body=body,
        )

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
