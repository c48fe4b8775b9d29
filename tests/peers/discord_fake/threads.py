"""Channels, threads and posts of forums."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from peers.discord_fake.checks import flag, known, many, number, one_of, table, text
from peers.discord_fake.composing import Form, compose, reference
from peers.discord_fake.errors import Json, invalid, refusal, unknown
from peers.discord_fake.journal import Call
from peers.discord_fake.messages import HAS_THREAD, Message
from peers.discord_fake.places import (
    ANNOUNCEMENT,
    ANNOUNCEMENT_THREAD,
    DM,
    FORUM,
    PRIVATE,
    PUBLIC,
    TEXT,
    Channel,
    Guild,
    User,
)
from peers.discord_fake.world import World

_DURATIONS: Final = (60, 1440, 4320, 10080)
_COMMON: Final = "name auto_archive_duration rate_limit_per_user"
_THREAD_CREATED, _THREAD_STARTER = 18, 21


def get_channel(world: World, call: Call) -> Json:
    return world.channel(call.ids["channel"]).json(world.bot.id)


def delete_channel(world: World, call: Call) -> Json:
    channel = world.channel(call.ids["channel"])
    if channel.guild is None:
        return channel.json(world.bot.id)
    world.require(channel, "MANAGE_THREADS" if channel.is_thread else "MANAGE_CHANNELS")
    remove(world, channel)
    return channel.json(world.bot.id)


def remove(world: World, channel: Channel) -> None:
    """T6: take a channel away, with its threads."""
    data = channel.json(world.bot.id)
    if channel.is_thread:
        assert channel.parent is not None
        data = {key: data[key] for key in ("id", "guild_id", "parent_id", "type")}
    world.push("THREAD_DELETE" if channel.is_thread else "CHANNEL_DELETE", data, channel=channel)
    channel.gone = True
    for thread in world.channels.values():
        if thread.parent is channel:
            thread.gone = True


def modify_channel(world: World, call: Call) -> Json:
    """T5: rename a thread, archive it or open it again."""
    channel = world.channel(call.ids["channel"])
    known(
        call.data,
        "name archived locked auto_archive_duration rate_limit_per_user invitable flags applied_tags topic nsfw".split(),
    )
    _may_modify(world, channel, call.data)
    if channel.archived and call.data.get("archived", True):
        raise refusal(50083)
    if "name" in call.data:
        channel.name = text(call.data["name"], "name", 100, shortest=1)
    if "topic" in call.data:
        channel.topic = text(call.data["topic"] or "", "topic", 1024)
    archive(
        world,
        channel,
        archived=flag(call.data.get("archived", channel.archived), "archived"),
        locked=flag(call.data.get("locked", channel.locked), "locked"),
    )
    return channel.json(world.bot.id)


def _may_modify(world: World, channel: Channel, data: Json) -> None:
    """T5: threads are for their owners to change, and for their members to open again."""
    if not channel.is_thread:
        world.require(channel, "MANAGE_CHANNELS")
        return
    owns = channel.owner == world.bot.id and "locked" not in data
    opens = data == {"archived": False} and world.bot.id in channel.members
    if not owns and not (opens and not channel.locked):
        world.require(channel, "MANAGE_THREADS")


def archive(world: World, channel: Channel, *, archived: bool, locked: bool) -> None:
    """Set a thread's state, or none of another channel's, and tell that it changed."""
    if (archived, locked) != (channel.archived, channel.locked):
        channel.archived, channel.locked = archived, locked
        channel.changed = world.clock.time()
    name = "THREAD_UPDATE" if channel.is_thread else "CHANNEL_UPDATE"
    world.push(name, channel.json(world.bot.id), channel=channel)


def start_from_message(world: World, call: Call) -> Json:
    """T1: open a thread whose id is that of the message it begins with."""
    message = world.message(world.channel(call.ids["channel"]), call.ids["message"])
    parent = message.channel
    if parent.type not in (TEXT, ANNOUNCEMENT):
        raise refusal(50024)
    world.require(parent, "CREATE_PUBLIC_THREADS")
    known(call.data, _COMMON.split())
    if message.thread is not None:
        raise refusal(160004)
    kind = ANNOUNCEMENT_THREAD if parent.type == ANNOUNCEMENT else PUBLIC
    return from_message(world, message, _new(world, call, parent, kind, message.id)).json(
        world.bot.id
    )


def from_message(world: World, message: Message, thread: Channel) -> Channel:
    """Tie a new thread to the message that it begins with."""
    message.thread = thread
    message.flags |= HAS_THREAD
    opened(world, thread)
    world.tell("MESSAGE_UPDATE", message)
    starter = Message(
        world.ids.next(),
        thread,
        message.author,
        world.clock.time(),
        type=_THREAD_STARTER,
        reference=reference(message),
    )
    world.keep(starter)
    return thread


def start_thread(world: World, call: Call) -> tuple[int, Json]:
    """T2, T3: open a thread without a message, or a post in a forum with its first one."""
    parent = world.channel(call.ids["channel"])
    if parent.type == FORUM:
        return 201, _post(world, call, parent)
    if parent.type not in (TEXT, ANNOUNCEMENT):
        raise refusal(50024)
    known(call.data, f"{_COMMON} type invitable".split())
    kind = number(call.data.get("type", PRIVATE), "type")
    one_of(kind, "type", {ANNOUNCEMENT_THREAD, PUBLIC, PRIVATE})
    world.require(parent, "CREATE_PRIVATE_THREADS" if kind == PRIVATE else "CREATE_PUBLIC_THREADS")
    thread = _new(world, call, parent, kind, world.ids.next())
    opened(world, thread)
    if kind != PRIVATE:
        announce(world, parent, thread, world.bot)
    return 201, thread.json(world.bot.id)


def announce(world: World, parent: Channel, thread: Channel, author: User) -> None:
    """T2: a channel is told of a thread that began with no message of it."""
    place = {"channel_id": str(thread.id), "type": 0}
    if thread.guild is not None:
        place["guild_id"] = str(thread.guild.id)
    told = Message(world.ids.next(), parent, author, world.clock.time(), thread.name)
    told.type, told.reference = _THREAD_CREATED, place
    world.add(told)


def _post(world: World, call: Call, forum: Channel) -> Json:
    world.require(forum, "SEND_MESSAGES")
    known(call.data, f"{_COMMON} message applied_tags type".split())
    tags = many(call.data.get("applied_tags") or [], "applied_tags", 5)
    there = {tag["id"] for tag in forum.tags}
    for index, tag in enumerate(tags):
        one_of(str(tag), f"applied_tags.{index}", there)
    thread = _new(world, call, forum, PUBLIC, world.ids.next())
    thread.applied_tags = [str(tag) for tag in tags]
    form = Form("post", table(call.data.get("message"), "message"), call.files)
    first = compose(world, thread, form, id=thread.id)
    opened(world, thread)
    world.add(first)
    thread.count = thread.total = 0
    return thread.json(world.bot.id) | {"message": world.answered(first)}


def _new(world: World, call: Call, parent: Channel, kind: int, number_: int) -> Channel:
    data = call.data
    now = world.clock.time()
    made = Channel(
        number_,
        kind,
        text(data.get("name"), "name", 100, shortest=1),
        parent.guild,
        parent,
        owner=world.bot.id,
        created=now,
        changed=now,
        members={world.bot.id},
    )
    if data.get("auto_archive_duration") is not None:
        asked = data["auto_archive_duration"]
        made.auto_archive = one_of(asked, "auto_archive_duration", _DURATIONS)
    return made


def opened(world: World, thread: Channel) -> None:
    """Keep a new thread and tell of it."""
    world.channels[thread.id] = thread
    data = thread.json(world.bot.id) | {"newly_created": True}
    world.push("THREAD_CREATE", data, channel=thread)


def join_thread(world: World, call: Call) -> None:
    thread = _thread(world, call)
    if thread.archived:
        raise refusal(50083)
    thread.members.add(world.bot.id)
    data = {"id": str(thread.id), "guild_id": thread.json(world.bot.id)["guild_id"]}
    more = {"member_count": len(thread.members), "added_members": [thread.member(world.bot.id)]}
    world.push("THREAD_MEMBERS_UPDATE", data | more, channel=thread)


def leave_thread(world: World, call: Call) -> None:
    _thread(world, call).members.discard(world.bot.id)


def _thread(world: World, call: Call) -> Channel:
    found = world.channel(call.ids["channel"])
    if not found.is_thread:
        raise refusal(50024)
    return found


def get_guild(world: World, call: Call) -> Json:
    return world.guild(call.ids["guild"]).json


def get_guild_channels(world: World, call: Call) -> list[Json]:
    """Return the channels of a guild without its threads."""
    return [one.json(world.bot.id) for one in _within(world, call, lambda c: not c.is_thread)]


def get_active_threads(world: World, call: Call) -> Json:
    found = _within(world, call, lambda c: c.is_thread and not c.archived and world.visible(c))
    mine = [one.member(world.bot.id) for one in found if world.bot.id in one.members]
    return {"threads": [one.json(world.bot.id) for one in found], "members": mine}


def _within(world: World, call: Call, chosen: Callable[[Channel], bool]) -> list[Channel]:
    guild = world.guild(call.ids["guild"])
    there = [one for one in world.channels.values() if one.guild is guild and not one.gone]
    return [one for one in there if chosen(one)]


def get_archived_threads(world: World, call: Call) -> Json:
    parent = world.channel(call.ids["channel"])
    found = [
        one
        for one in world.channels.values()
        if one.parent is parent and one.archived and not one.gone and one.type != PRIVATE
    ]
    return {"threads": [one.json(world.bot.id) for one in found], "members": [], "has_more": False}


def get_member(world: World, call: Call) -> Json:
    guild = world.guild(call.ids["guild"])
    number_ = str(world.bot.id) if call.ids["user"] == "@me" else call.ids["user"]
    user = world.person(number_)
    if user.id not in guild.members:
        raise unknown("Member")
    return guild.member(user) | {"user": user.json}


def get_roles(world: World, call: Call) -> list[Json]:
    return world.guild(call.ids["guild"]).role_list


def create_dm(world: World, call: Call) -> Json:
    """M1: open a direct conversation; whether it can be used shows when something is said."""
    known(call.data, {"recipient_id"})
    user = world.person(str(call.data.get("recipient_id")))
    if user is world.bot or user.bot:
        raise invalid("recipient_id", "CANNOT_MESSAGE_BOT", "Cannot send messages to this user")
    channel = world.dm(user)
    assert channel.type == DM
    return channel.json(world.bot.id)


def known_guilds(world: World) -> list[Guild]:
    return [one for one in world.guilds.values() if one.here]
