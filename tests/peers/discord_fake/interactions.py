"""I1 to I7: what somebody did with the bot, and how it answers."""

from __future__ import annotations

from typing import Any, Final

import attrs

from peers.discord_fake.checks import known, many, number, table, text
from peers.discord_fake.components import for_modal
from peers.discord_fake.composing import Form, compose, reference, revise
from peers.discord_fake.errors import Json, invalid, refusal, unknown
from peers.discord_fake.journal import Call
from peers.discord_fake.messages import EPHEMERAL, LOADING, Message
from peers.discord_fake.messaging import change, unlocked, wake
from peers.discord_fake.places import Channel, User
from peers.discord_fake.world import World

PING, COMMAND, COMPONENT, AUTOCOMPLETE, MODAL = 1, 2, 3, 4, 5
PONG, MESSAGE, DEFER, DEFER_UPDATE, UPDATE, CHOICES, OPEN_MODAL = 1, 4, 5, 6, 7, 8, 9
FIRST: Final = 3.0
LIFE: Final = 900.0
_REPLY, _OF_COMMAND = 19, 20
_ALLOWED: Final = {
    COMMAND: {MESSAGE, DEFER, OPEN_MODAL},
    COMPONENT: {MESSAGE, DEFER, DEFER_UPDATE, UPDATE, OPEN_MODAL},
    AUTOCOMPLETE: {CHOICES},
    MODAL: {MESSAGE, DEFER, DEFER_UPDATE, UPDATE},
}


@attrs.define(eq=False)
class Interaction:
    """Something that a person did, and what came of it."""

    id: int
    type: int
    token: str = attrs.field(repr=False)
    at: float
    user: User
    channel: Channel
    data: Json
    source: Message | None = None
    """The message whose component was used."""
    opener: Interaction | None = None
    """What opened the modal that was submitted."""
    answer: int | None = None
    """The type of the first answer; ``None`` so far."""
    original: Message | None = None
    """The message of the first answer, or the one that it changed."""
    followups: list[Message] = attrs.field(factory=list)
    modal: Json | None = None
    """The modal that the bot opened."""
    choices: list[Json] | None = None
    posted: int | None = None
    """The status with which the endpoint answered; 0 where there was no answer."""

    @property
    def thinking(self) -> bool:
        """Whether people are shown that an answer is coming."""
        found = self.original
        return found is not None and not found.deleted and bool(found.flags & LOADING)

    def metadata(self) -> Json:
        """Return what a message says of the interaction that it answers."""
        guild = self.channel.guild
        found: Json = {
            "id": str(self.id),
            "type": self.type,
            "user": self.user.json,
            "authorizing_integration_owners": {"0": "0" if guild is None else str(guild.id)},
        }
        if self.type == COMMAND:
            found["name"] = self.data["name"]
        if self.type == COMPONENT and self.source is not None:
            found["interacted_message_id"] = str(self.source.id)
        if self.opener is not None:
            found["triggering_interaction_metadata"] = self.opener.metadata()
        return found


def create_response(world: World, call: Call) -> Json | None:
    """I2: answer an interaction, once and within three seconds."""
    found = world.interactions.get(int(call.ids["interaction"]))
    if found is None or found.token != call.ids["token"]:
        raise unknown("interaction")
    if found.answer is not None:
        raise refusal(40060)
    if world.clock.time() - found.at > FIRST:
        raise unknown("interaction")
    respond(world, found, call)
    asked = call.query.get("with_response", "false").lower()
    return _told(world, found) if asked in ("1", "true") else None


def respond(world: World, found: Interaction, call: Call) -> None:
    """I3: do what an answer says."""
    kind = number(call.data.get("type"), "type")
    if kind not in _ALLOWED[found.type]:
        words = f"Value must be one of {sorted(_ALLOWED[found.type])}."
        raise invalid("type", "BASE_TYPE_CHOICES", words)
    if kind in (DEFER_UPDATE, UPDATE) and found.source is None:
        raise invalid("type", "INTERACTION_TYPE_INVALID", "There is no message to update")
    known(call.data, {"type", "data"})
    data = table(call.data.get("data") or {}, "data")
    if kind in (MESSAGE, DEFER):
        unlocked(found.channel)
        wake(world, found.channel)
    if kind == MESSAGE:
        found.original = _message(world, found, Form("callback", data, call.files))
    elif kind == DEFER:
        found.original = _thinking(world, found, data)
    elif kind == UPDATE:
        assert found.source is not None
        change(world, found.source, Form("edit", data, call.files))
        found.original = found.source
    elif kind == DEFER_UPDATE:
        found.original = found.source
    elif kind == CHOICES:
        found.choices = many(data.get("choices"), "data.choices", 25)
    else:
        found.modal = _modal(data)
    found.answer = kind
    world.changed.notify_all()


def _message(world: World, found: Interaction, form: Form) -> Message:
    return world.add(compose(world, found.channel, form, **_origin(found, form.data)))


def _origin(found: Interaction, data: Json) -> dict[str, Any]:
    """I3: return what an answer is an answer to, and who sees it."""
    hidden = number(data.get("flags") or 0, "flags") & EPHEMERAL
    origin: dict[str, Any] = {"interaction": found.metadata()}
    origin["seen_by"] = found.user.id if hidden else None
    if found.type == COMMAND:
        return origin | {"type": _OF_COMMAND}
    if found.source is not None:
        return origin | {"type": _REPLY, "reference": reference(found.source)}
    return origin


def _thinking(world: World, found: Interaction, data: Json) -> Message:
    """I4: show that an answer is coming; whether one person sees it is settled here."""
    hidden = number(data.get("flags") or 0, "flags") & EPHEMERAL
    made = Message(world.ids.next(), found.channel, world.bot, world.clock.time())
    made.flags = LOADING | hidden
    for name, value in _origin(found, data).items():
        setattr(made, name, value)
    return world.add(made)


def _modal(data: Json) -> Json:
    known(data, {"custom_id", "title", "components"}, "data")
    return {
        "custom_id": text(data.get("custom_id"), "data.custom_id", 100, shortest=1),
        "title": text(data.get("title"), "data.title", 45, shortest=1),
        "components": for_modal(data.get("components")),
    }


def _told(world: World, found: Interaction) -> Json:
    about: Json = {"id": str(found.id), "type": found.type}
    resource: Json = {"type": found.answer}
    if found.original is not None and found.answer in (MESSAGE, DEFER, UPDATE):
        about |= {
            "response_message_id": str(found.original.id),
            "response_message_loading": found.thinking,
            "response_message_ephemeral": found.original.seen_by is not None,
        }
        if found.answer != DEFER:
            resource["message"] = world.wire(found.original)
    return {"interaction": about, "resource": resource}


def _by_token(world: World, call: Call) -> Interaction:
    """I5: return the interaction of a token, which lives 15 minutes."""
    tokens = (one for one in world.interactions.values() if one.token == call.ids["token"])
    found = next(tokens, None)
    if found is None or found.answer is None or call.ids["application"] != str(world.bot.id):
        raise unknown("Webhook")
    if world.clock.time() - found.at > LIFE:
        raise refusal(50027)
    assert isinstance(found, Interaction)
    return found


def create_followup(world: World, call: Call) -> Json:
    """I6: say more; right after a deferred answer this is the answer itself."""
    found = _by_token(world, call)
    if found.thinking and not found.followups:
        assert found.original is not None
        _fill(world, found.original, Form("follow_up", call.data, call.files))
        return world.wire(found.original)
    hidden = number(call.data.get("flags") or 0, "flags") & EPHEMERAL
    made = compose(
        world,
        found.channel,
        Form("follow_up", call.data, call.files),
        type=_REPLY if found.original else 0,
        interaction=found.metadata() | _first(found),
        seen_by=found.user.id if hidden else None,
    )
    if found.original is not None:
        made.reference = reference(found.original)
    found.followups.append(world.add(made))
    return world.wire(made)


def _first(found: Interaction) -> Json:
    return (
        {} if found.original is None else {"original_response_message_id": str(found.original.id)}
    )


def _fill(world: World, message: Message, form: Form) -> None:
    """Change a message, also one that only one person sees."""
    kept = message.flags & EPHEMERAL
    revise(world, message, form)
    message.flags |= kept
    message.edited = world.clock.time()
    message.show(message.edited)
    world.tell("MESSAGE_UPDATE", message)
    world.changed.notify_all()


def get_response(world: World, call: Call) -> Json:
    return world.wire(_answer(world, call))


def edit_response(world: World, call: Call) -> Json:
    """I7: change the first answer or a later one."""
    message = _answer(world, call)
    _fill(world, message, Form("edit_response", call.data, call.files))
    return world.wire(message)


def delete_response(world: World, call: Call) -> None:
    world.delete(_answer(world, call))


def _answer(world: World, call: Call) -> Message:
    found = _by_token(world, call)
    if call.ids["message"] == "@original":
        message: Message | None = found.original
    else:
        own = [*found.followups, *([found.original] if found.original else [])]
        message = next((one for one in own if str(one.id) == call.ids["message"]), None)
    if message is None or message.deleted:
        raise unknown("Message")
    return message


def payload(world: World, found: Interaction) -> dict[str, Any]:
    """I1: return what the bot is sent."""
    channel, guild = found.channel, found.channel.guild
    body: dict[str, Any] = {
        "id": str(found.id),
        "application_id": str(world.bot.id),
        "type": found.type,
        "token": found.token,
        "version": 1,
        "data": found.data,
        "channel": channel.partial(world.bot.id),
        "channel_id": str(channel.id),
        "app_permissions": "0" if guild is None else str(guild.permissions),
        "locale": "en-US",
        "entitlements": [],
        "authorizing_integration_owners": {"0": "0" if guild is None else str(guild.id)},
        "context": 1 if guild is None else 0,
        "attachment_size_limit": 10 << 20,
    }
    if guild is None:
        body["user"] = found.user.json
    else:
        member = guild.member(found.user) | {"user": found.user.json}
        body["member"] = member | {"permissions": str(guild.permissions)}
        body |= {"guild_id": str(guild.id), "guild_locale": "en-US"}
        body["guild"] = {"id": str(guild.id), "locale": "en-US", "features": []}
    if found.source is not None:
        body["message"] = world.wire(found.source)
    return body
