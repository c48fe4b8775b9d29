"""Messages: create, read, change, delete; and that somebody is writing."""

from __future__ import annotations

from typing import Any

from peers.discord_fake.checks import number, text
from peers.discord_fake.composing import Form, compose, revise
from peers.discord_fake.errors import Json, invalid, refusal, unknown
from peers.discord_fake.journal import Call
from peers.discord_fake.messages import Message
from peers.discord_fake.places import FORUM, Channel
from peers.discord_fake.snowflakes import snowflake
from peers.discord_fake.world import Typing, World


def create_message(world: World, call: Call) -> Json:
    """M1 to M5: say something."""
    channel = writable(world, call.ids["channel"])
    nonce = _nonce(call.data)
    if nonce is not None and call.data.get("enforce_nonce"):
        known = _same(world, str(nonce))
        if known is not None:
            return world.answered(known, nonce=True)
    form = Form("create", call.data, call.files)
    message = compose(world, channel, form, nonce=nonce)
    wake(world, channel)
    world.add(message)
    if nonce is not None:
        world.nonces[str(nonce)] = (world.clock.time(), message)
    return world.answered(message, nonce=True)


def writable(world: World, value: str) -> Channel:
    """M1: return a channel where the bot may say something."""
    channel = world.channel(value)
    if channel.type == FORUM:
        raise refusal(50008)
    if channel.recipient is not None and not channel.recipient.open_to_bots:
        raise refusal(50007)
    world.require(channel, "SEND_MESSAGES_IN_THREADS" if channel.is_thread else "SEND_MESSAGES")
    unlocked(channel)
    return channel


def unlocked(channel: Channel) -> None:
    """T4: refuse in a thread that moderators have locked."""
    if channel.locked and not channel.may("MANAGE_THREADS"):
        raise refusal(50083 if channel.archived else 160005)


def wake(world: World, channel: Channel) -> None:
    """T4: a message opens a thread that was archived."""
    if channel.archived:
        channel.archived, channel.changed = False, world.clock.time()
        world.push("THREAD_UPDATE", channel.json(world.bot.id), channel=channel)


def _nonce(data: Json) -> str | int | None:
    found = data.get("nonce")
    if found is None or isinstance(found, int):
        return found
    return text(found, "nonce", 25)


def _same(world: World, nonce: str) -> Message | None:
    """M3: return the message that had this nonce a few minutes ago, wherever it is."""
    at, message = world.nonces.get(nonce, (0.0, None))
    return message if world.clock.time() - at <= world.nonce_window else None


def edit_message(world: World, call: Call) -> Json:
    """M6: change what one of the bot's own messages shows."""
    message = _found(world, call)
    if message.author is not world.bot:
        raise refusal(50005)
    unlocked(message.channel)
    if message.channel.archived:
        raise refusal(50083)
    change(world, message, Form("edit", call.data, call.files))
    return world.answered(message)


def change(world: World, message: Message, form: Form) -> None:
    """M6: change a message and tell of it."""
    revise(world, message, form)
    message.edited = world.clock.time()
    message.show(message.edited)
    world.tell("MESSAGE_UPDATE", message)
    world.changed.notify_all()


def delete_message(world: World, call: Call) -> None:
    message = _found(world, call)
    if message.author is not world.bot:
        if message.channel.guild is None:
            raise refusal(50003)
        world.require(message.channel, "MANAGE_MESSAGES")
    world.delete(message)


def get_message(world: World, call: Call) -> Json:
    message = _found(world, call)
    world.require(message.channel, "READ_MESSAGE_HISTORY")
    return world.answered(message)


def get_messages(world: World, call: Call) -> list[Json]:
    """M7: read back, newest first."""
    channel = world.channel(call.ids["channel"])
    if channel.type == FORUM:
        raise refusal(50008)
    limit = _limit(call.query.get("limit", "50"))
    if not channel.may("READ_MESSAGE_HISTORY"):
        return []
    there = [one for one in world.history(channel) if not one.deleted and not one.seen_by]
    anchors = [name for name in ("around", "before", "after") if name in call.query]
    if len(anchors) > 1:
        raise invalid("", "PARAMS_EXCLUSIVE", f"{' and '.join(anchors)} are mutually exclusive.")
    if not anchors:
        chosen = there[-limit:]
    else:
        chosen = _near(there, anchors[0], snowflake(call.query[anchors[0]], anchors[0]), limit)
    return [world.answered(one) for one in reversed(chosen)]


def _near(there: list[Message], how: str, anchor: int, limit: int) -> list[Message]:
    before = [one for one in there if one.id < anchor]
    after = [one for one in there if one.id > anchor]
    if how == "before":
        return before[-limit:]
    if how == "after":
        return after[:limit]
    middle = [one for one in there if one.id == anchor]
    half = (limit - 1) // 2 or 1
    return [*before[-half:], *middle, *after[:half]][:limit]


def _limit(value: Any) -> int:
    found = int(value) if str(value).isdigit() else number(value, "limit")
    if not 1 <= found <= 100:
        words = "int value should be between 1 and 100."
        raise invalid("limit", "NUMBER_TYPE_MAX", words)
    return found


def trigger_typing(world: World, call: Call) -> None:
    """M8: show for ten seconds that an answer is being written."""
    channel = writable(world, call.ids["channel"])
    world.typings.append(Typing(world.clock.time(), channel.id, world.bot.id))
    world.changed.notify_all()


def _found(world: World, call: Call) -> Message:
    if call.ids["message"] == "@original":
        raise unknown("Message")
    return world.message(world.channel(call.ids["channel"]), call.ids["message"])
