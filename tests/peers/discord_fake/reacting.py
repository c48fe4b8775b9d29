"""Reactions."""

from __future__ import annotations

import re
from typing import Any, Final

from peers.discord_fake.errors import DiscordError, Json, refusal
from peers.discord_fake.journal import Call
from peers.discord_fake.messages import Message
from peers.discord_fake.wire import emoji_json
from peers.discord_fake.world import World

_MOST: Final = 20
_OF_GUILD: Final = re.compile(r"\w{2,32}:\d+")
_PICTURE: Final = re.compile(
    r"[\u00a9\u00ae\u203c-\u3299\ufe0f\u200d\u20e3\U0001f000-\U0001faff\U000e0020-\U000e007f]+"
    r"|[0-9#*]\ufe0f?\u20e3"
)


def create_reaction(world: World, call: Call) -> None:
    """N1: react as the bot; a second time changes nothing."""
    message, emoji = _target(world, call)
    world.require(message.channel, "READ_MESSAGE_HISTORY")
    if message.channel.archived:
        raise refusal(50083)
    if emoji not in message.reactions:
        world.require(message.channel, "ADD_REACTIONS")
        if len(message.reactions) >= _MOST:
            raise refusal(30010)
    react(world, message, world.bot.id, emoji)


def delete_own_reaction(world: World, call: Call) -> None:
    message, emoji = _target(world, call)
    unreact(world, message, world.bot.id, emoji)


def delete_user_reaction(world: World, call: Call) -> None:
    message, emoji = _target(world, call)
    world.require(message.channel, "MANAGE_MESSAGES")
    unreact(world, message, world.person(call.ids["user"]).id, emoji)


def delete_all_reactions(world: World, call: Call) -> None:
    message = world.message(world.channel(call.ids["channel"]), call.ids["message"])
    world.require(message.channel, "MANAGE_MESSAGES")
    message.reactions.clear()
    world.push("MESSAGE_REACTION_REMOVE_ALL", _place(message), channel=message.channel)


def get_reactions(world: World, call: Call) -> list[Json]:
    message, emoji = _target(world, call)
    return [world.users[one].json for one in message.reactions.get(emoji, ())]


def react(world: World, message: Message, user: int, emoji: str) -> None:
    """N2: add somebody's reaction and tell of it once."""
    users = message.reactions.setdefault(emoji, [])
    if user in users:
        return
    users.append(user)
    data = _event(world, message, user, emoji)
    data["message_author_id"] = str(message.author.id)
    if message.channel.guild is not None:
        person = world.users[user]
        data["member"] = message.channel.guild.member(person) | {"user": person.json}
    world.push("MESSAGE_REACTION_ADD", data, channel=message.channel)


def unreact(world: World, message: Message, user: int, emoji: str) -> None:
    """Take a reaction back; one that is not there is none to tell of."""
    users = message.reactions.get(emoji, [])
    if user not in users:
        return
    users.remove(user)
    if not users:
        del message.reactions[emoji]
    data = _event(world, message, user, emoji)
    world.push("MESSAGE_REACTION_REMOVE", data, channel=message.channel)


def _target(world: World, call: Call) -> tuple[Message, str]:
    message = world.message(world.channel(call.ids["channel"]), call.ids["message"])
    emoji = call.ids["emoji"]
    if not (_OF_GUILD.fullmatch(emoji) or _PICTURE.fullmatch(emoji)):
        raise DiscordError(400, 10014, "Unknown Emoji")
    return message, emoji


def _place(message: Message) -> Json:
    found: Json = {"channel_id": str(message.channel.id), "message_id": str(message.id)}
    guild = message.channel.guild
    return found if guild is None else found | {"guild_id": str(guild.id)}


def _event(world: World, message: Message, user: int, emoji: str) -> dict[str, Any]:
    return {
        "user_id": str(user),
        "emoji": emoji_json(emoji),
        "type": 0,
        "burst": False,
        **_place(message),
    }
