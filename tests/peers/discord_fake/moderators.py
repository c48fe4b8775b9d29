"""What people do with guilds, channels and threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from peers.discord_fake import threads
from peers.discord_fake.errors import Json
from peers.discord_fake.people import People
from peers.discord_fake.permissions import EVERYBODY, bits
from peers.discord_fake.places import (
    ANNOUNCEMENT,
    ANNOUNCEMENT_THREAD,
    FORUM,
    PRIVATE,
    PUBLIC,
    TEXT,
    Channel,
    Guild,
)

KINDS: Final = {"text": TEXT, "forum": FORUM, "announcement": ANNOUNCEMENT}


class Moderators(People):
    """People who build places and take them away."""

    def add_guild(
        self, name: str = "Guild", *, permissions: Sequence[str] | None = None, here: bool = True
    ) -> int:
        """Return the id of a new guild, which the bot has joined unless it says otherwise.

        ``permissions`` are those of the bot; without them it has all that manage nothing.
        """
        world = self._world
        with world.changed:
            owner = world.users[world.owner]
            made = Guild(world.ids.next(), name, owner.id, world.clock.time())
            made.permissions = EVERYBODY if permissions is None else bits(permissions)
            made.members[owner.id] = owner
            world.guilds[made.id] = made
            made.here = False
        if here:
            self.invite(made.id)
        return made.id

    def invite(self, guild: int) -> None:
        """Let the bot join a guild."""
        with self._world.changed:
            found = self._world.guilds[guild]
            found.here = True
            found.members[self._world.bot.id] = self._world.bot
            self._tell_guild(found)

    def expel(self, guild: int) -> None:
        """G1: throw the bot out of a guild."""
        world = self._world
        with world.changed:
            found = world.guilds[guild]
            world.push("GUILD_DELETE", {"id": str(guild)}, guild=found)
            found.here = False
            del found.members[world.bot.id]

    def outage(self, guild: int) -> None:
        """G1: let a guild be out of order, until `recover`."""
        with self._world.changed:
            found = self._world.guilds[guild]
            body = {"id": str(guild), "unavailable": True}
            self._world.push("GUILD_DELETE", body, guild=found)
            found.available = False

    def recover(self, guild: int) -> None:
        with self._world.changed:
            found = self._world.guilds[guild]
            found.available = True
            self._tell_guild(found)

    def add_role(self, guild: int, name: str) -> int:
        with self._world.changed:
            number = self._world.ids.next()
            self._world.guilds[guild].roles[name] = number
            return number

    def give_role(self, guild: int, user: int, role: int) -> None:
        """Give a role to somebody; what they do from now on says so."""
        with self._world.changed:
            self._world.guilds[guild].given.setdefault(user, []).append(role)

    def join(self, guild: int, user: int) -> None:
        """Let somebody join a guild."""
        with self._world.changed:
            found, who = self._world.guilds[guild], self._user(user)
            found.members[user] = who
            body = found.member(who) | {"user": who.json, "guild_id": str(guild)}
            self._world.push("GUILD_MEMBER_ADD", body, guild=found)

    def leave(self, guild: int, user: int) -> None:
        with self._world.changed:
            found = self._world.guilds[guild]
            who = found.members.pop(user)
            body = {"user": who.json, "guild_id": str(guild)}
            self._world.push("GUILD_MEMBER_REMOVE", body, guild=found)

    def add_channel(
        self, guild: int, name: str = "general", kind: str = "text", *, tags: Sequence[str] = ()
    ) -> int:
        """Return the id of a new channel: ``text``, ``forum`` (with tags) or ``announcement``."""
        world = self._world
        with world.changed:
            made = Channel(world.ids.next(), KINDS[kind], name, world.guilds[guild])
            made.tags = [_tag(world.ids.next(), one) for one in tags]
            world.channels[made.id] = made
            world.push("CHANNEL_CREATE", made.json(world.bot.id), channel=made)
            return made.id

    def dm(self, user: int) -> int:
        """Return the direct conversation between somebody and the bot."""
        with self._world.changed:
            return self._world.dm(self._user(user)).id

    def open_thread(
        self,
        channel: int,
        user: int,
        name: str = "thread",
        *,
        message: int | None = None,
        private: bool = False,
        with_bot: bool = False,
        tags: Sequence[str] = (),
    ) -> int:
        """T1 to T3: open a thread, also from a message, or a post in a forum; return its id.

        The first message of a post is said afterwards, and has the thread's id.
        """
        world = self._world
        with world.changed:
            parent, now = world.channels[channel], world.clock.time()
            kind = PRIVATE if private else PUBLIC
            if parent.type == ANNOUNCEMENT:
                kind = ANNOUNCEMENT_THREAD
            number = message or world.ids.next()
            made = Channel(number, kind, name, parent.guild, parent, owner=user)
            made.created = made.changed = now
            made.members = {user} | ({world.bot.id} if with_bot else set())
            made.applied_tags = [tag["id"] for tag in parent.tags if tag["name"] in tags]
            if message is not None:
                threads.from_message(world, world.messages[message], made)
                return made.id
            threads.opened(world, made)
            if parent.type == TEXT and not private:
                threads.announce(world, parent, made, self._user(user))
            return made.id

    def post(self, forum: int, user: int, name: str, text: str, *, tags: Sequence[str] = ()) -> int:
        """T3: begin a post in a forum; its first message has the same id."""
        with self._world.changed:
            number = self.open_thread(forum, user, name, tags=tags)
            self.say(number, user, text, id=number)
            found = self._world.channels[number]
            found.count = found.total = 0
            return number

    def archive(self, thread: int, *, locked: bool = False) -> None:
        """T4: archive a thread; a locked one is opened by moderators only."""
        with self._world.changed:
            found = self._world.channels[thread]
            threads.archive(self._world, found, archived=True, locked=locked)

    def lock(self, thread: int) -> None:
        """T4: close a thread to all but moderators, and leave it where it is."""
        with self._world.changed:
            found = self._world.channels[thread]
            threads.archive(self._world, found, archived=found.archived, locked=True)

    def unarchive(self, thread: int) -> None:
        with self._world.changed:
            found = self._world.channels[thread]
            threads.archive(self._world, found, archived=False, locked=False)

    def add_to_thread(self, thread: int, user: int) -> None:
        """T7: add somebody to a thread; for the bot it is as if it had just been opened."""
        world = self._world
        with world.changed:
            found = world.channels[thread]
            found.members.add(self._user(user).id)
            if user == world.bot.id:
                world.push("THREAD_CREATE", found.json(user), channel=found)
                return
            assert found.guild is not None
            body: Json = {"id": str(thread), "guild_id": str(found.guild.id)}
            body |= {"member_count": len(found.members), "added_members": [found.member(user)]}
            world.push("THREAD_MEMBERS_UPDATE", body, channel=found)

    def remove_channel(self, channel: int) -> None:
        """T6: delete a channel with its threads, or a thread."""
        with self._world.changed:
            threads.remove(self._world, self._world.channels[channel])

    def rename(self, channel: int, name: str) -> None:
        with self._world.changed:
            found = self._world.channels[channel]
            found.name = name
            self._tell_channel(found)

    def forbid(self, channel: int, *permissions: str) -> None:
        """P1: take permissions from the bot in one channel."""
        with self._world.changed:
            found = self._world.channels[channel]
            found.deny |= bits(permissions)
            found.allow &= ~bits(permissions)
            self._tell_channel(found)

    def permit(self, channel: int, *permissions: str) -> None:
        """P1: give permissions to the bot in one channel."""
        with self._world.changed:
            found = self._world.channels[channel]
            found.allow |= bits(permissions)
            found.deny &= ~bits(permissions)
            self._tell_channel(found)

    def close_to_bots(self, user: int, *, closed: bool = True) -> None:
        """M1: let the bot's direct messages not reach somebody any more."""
        with self._world.changed:
            self._user(user).open_to_bots = not closed

    def _tell_guild(self, guild: Guild) -> None:
        body = self._world.guild_create(guild, members=False)
        self._world.push("GUILD_CREATE", body, guild=guild)

    def _tell_channel(self, channel: Channel) -> None:
        world = self._world
        name = "THREAD_UPDATE" if channel.is_thread else "CHANNEL_UPDATE"
        world.push(name, channel.json(world.bot.id), guild=channel.guild)


def _tag(number: int, name: str) -> Json:
    return {
        "id": str(number),
        "name": name,
        "moderated": False,
        "emoji_id": None,
        "emoji_name": None,
    }
