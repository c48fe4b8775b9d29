"""What people do with messages and reactions. Everything is named by its id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from peers.discord_fake.composing import reference
from peers.discord_fake.errors import Json
from peers.discord_fake.journal import Upload
from peers.discord_fake.mentions import Allowed, look
from peers.discord_fake.messages import Message
from peers.discord_fake.messaging import wake
from peers.discord_fake.places import Channel, User
from peers.discord_fake.reacting import react, unreact
from peers.discord_fake.sessions import DAY
from peers.discord_fake.snowflakes import moment
from peers.discord_fake.wire import snapshot
from peers.discord_fake.world import Typing, World

_REPLY = 19


class People:
    """People who talk. All methods may be called from any thread."""

    def __init__(self, world: World) -> None:
        self._world = world

    def person(self, name: str, *, bot: bool = False, open_to_bots: bool = True) -> int:
        """Return the id of somebody new; the bot's direct messages may not reach them."""
        with self._world.changed:
            made = User(self._world.ids.next(), name, bot, open_to_bots)
            self._world.users[made.id] = made
            return made.id

    def say(
        self,
        channel: int,
        user: int,
        text: str = "",
        *,
        reply_to: int | None = None,
        ping: bool = True,
        files: Mapping[str, bytes] | None = None,
        stickers: Sequence[str] = (),
        poll: tuple[str, Sequence[str]] | None = None,
        forward: int | None = None,
        embeds: Sequence[Json] = (),
        nonce: str | None = None,
        **more: Any,
    ) -> int:
        """Say something, and return the message's id.

        ``reply_to`` and ``forward`` name messages; a reply notifies its author unless ``ping`` is
        false. ``poll`` is a question with its answers. ``more`` are fields of `Message`.
        """
        world = self._world
        with world.changed:
            place = world.channels[channel]
            message = Message(world.ids.next(), place, self._user(user), world.clock.time(), text)
            message.nonce, message.embeds = nonce, list(embeds)
            message.stickers = [_sticker(world, name) for name in stickers]
            message.poll = None if poll is None else _poll(*poll, moment(world.clock.time() + DAY))
            message.attachments = [
                world.shelf.keep(channel, Upload(name, content, _media_type(name)))
                for name, content in (files or {}).items()
            ]
            if reply_to is not None:
                message.type, message.reference = _REPLY, reference(world.messages[reply_to])
            if forward is not None:
                original = world.messages[forward]
                message.reference = reference(original, 1)
                message.snapshots = [snapshot(world.wire(original))]
            for name, value in more.items():
                setattr(message, name, value)
            self._address(message, ping=ping)
            wake(world, place)
            self._join(place, message.author)
            return world.add(message).id

    def edit(self, message: int, text: str) -> None:
        """Change what a message says."""
        world = self._world
        with world.changed:
            found = world.messages[message]
            found.content, found.edited = text, world.clock.time()
            found.named = self._look(found, ping=False)[1]
            found.show(found.edited)
            world.tell("MESSAGE_UPDATE", found)

    def unfurl(self, message: int, *embeds: Json) -> None:
        """M9: let previews of links appear: an update without an edit."""
        with self._world.changed:
            found = self._world.messages[message]
            found.embeds = list(embeds)
            self._world.tell("MESSAGE_UPDATE", found)

    def delete(self, message: int) -> None:
        with self._world.changed:
            self._world.delete(self._world.messages[message])

    def delete_many(self, *messages: int) -> None:
        """Delete messages of one channel at once, as moderators do."""
        world = self._world
        with world.changed:
            found = [world.messages[one] for one in messages]
            for one in found:
                one.deleted = True
            place = found[0].channel
            data: Json = {"ids": [str(one.id) for one in found], "channel_id": str(place.id)}
            if place.guild is not None:
                data["guild_id"] = str(place.guild.id)
            world.push("MESSAGE_DELETE_BULK", data, channel=place)

    def react(self, message: int, user: int, emoji: str) -> None:
        with self._world.changed:
            react(self._world, self._world.messages[message], self._user(user).id, emoji)

    def unreact(self, message: int, user: int, emoji: str) -> None:
        with self._world.changed:
            unreact(self._world, self._world.messages[message], user, emoji)

    def type(self, channel: int, user: int) -> None:
        """Begin to write."""
        world = self._world
        with world.changed:
            place, now = world.channels[channel], world.clock.time()
            world.typings.append(Typing(now, channel, user))
            data: Json = {"channel_id": str(channel), "user_id": str(user), "timestamp": int(now)}
            if place.guild is not None:
                member = place.guild.member(self._user(user)) | {"user": self._user(user).json}
                data |= {"guild_id": str(place.guild.id), "member": member}
            world.push("TYPING_START", data, channel=place)

    def event(self, name: str, data: Any, *, guild: int | None = None) -> None:
        """Send any event at all, whatever is in it."""
        place = None if guild is None else self._world.guilds[guild]
        self._world.push(name, data, guild=place)

    def _user(self, number: int) -> User:
        """Return somebody; ids that nobody has are people whose name does not matter."""
        found = self._world.users.get(number)
        if found is None:
            found = self._world.users[number] = User(number, f"user{number}")
        return found

    def _join(self, place: Channel, user: User) -> None:
        """T7: who writes in a thread is in it."""
        if place.guild is not None:
            place.guild.members.setdefault(user.id, user)
        if place.is_thread:
            place.members.add(user.id)

    def _address(self, message: Message, *, ping: bool) -> None:
        """T7: notify those whom a message names; a thread gains them as members."""
        message.pings, message.named = self._look(message, ping=ping)
        if message.channel.is_thread:
            message.channel.members |= message.pings.users

    def _look(self, message: Message, *, ping: bool) -> Any:
        original = self._world.messages.get(message.reply_to or 0)
        replied = None if original is None else original.author
        rule = Allowed(replied=ping)
        return look(message.content, message.channel, self._world.users, rule, replied=replied)


def _sticker(world: World, name: str) -> Json:
    return {"id": str(world.ids.next()), "name": name, "format_type": 1}


def _poll(question: str, answers: Sequence[str], until: str) -> Json:
    return {
        "question": {"text": question},
        "answers": [
            {"answer_id": number, "poll_media": {"text": text}}
            for number, text in enumerate(answers, start=1)
        ],
        "expiry": until,
        "allow_multiselect": False,
        "layout_type": 1,
        "results": {"is_finalized": False, "answer_counts": []},
    }


def _media_type(name: str) -> str:
    known = {"png": "image/png", "jpg": "image/jpeg", "ogg": "audio/ogg", "txt": "text/plain"}
    return known.get(name.rpartition(".")[2], "application/octet-stream")
