"""What people do: they write, edit, delete, react, send files, come, go and rename."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from peers.slack_fake import account, chat, events
from peers.slack_fake.errors import Json
from peers.slack_fake.files import File, Mode
from peers.slack_fake.journal import Delivery
from peers.slack_fake.messages import Message
from peers.slack_fake.text import rich_text, typed
from peers.slack_fake.uploads import shown_in
from peers.slack_fake.workspace import Channel, ChannelKind, User
from peers.slack_fake.world import World


@attrs.frozen
class Said:
    """A message that somebody wrote, and what the app is told of it, in this order."""

    ts: str
    channel: str
    deliveries: tuple[Delivery, ...]


@attrs.define(eq=False, slots=False, repr=False)
class People:
    """The side of the people. Every method may be called from any thread."""

    _world: World

    def person(self, user_id: str, name: str, real_name: str = "", *, team: str = "") -> str:
        """Give somebody a name; R27: ``team`` is the workspace of people from outside."""
        with self._world.changed:
            home = team or self._world.team.id
            self._world.users[user_id] = User(user_id, name, real_name or name.title(), home)
        return user_id

    def channel(
        self,
        name: str,
        *members: str,
        kind: ChannelKind = "channel",
        with_app: bool = True,
        shared: bool = False,
    ) -> str:
        """Make a channel and return its id."""
        world = self._world
        with world.changed:
            for one in members:
                world.user(one)
            everybody = [*([world.app.user_id] if with_app else []), *members]
            return world.open(kind, everybody, name, shared=shared).id

    def dm(self, user_id: str) -> str:
        """Return the id of somebody's direct messages with the app."""
        with self._world.changed:
            return self._world.direct(user_id).id

    def say(
        self,
        channel: str,
        user: str,
        text: str = "",
        *,
        thread: str | None = None,
        broadcast: bool = False,
        files: Sequence[tuple[str, bytes]] = (),
        extra: Mapping[str, Any] | None = None,
    ) -> Said:
        """Write a message, with files if there are any. ``extra`` goes into it as it is."""
        world = self._world
        with world.changed:
            kept = [self._file(user, name, content) for name, content in files]
            return self._say(channel, user, text, thread, broadcast, kept, dict(extra or {}))

    def share(self, channel: str, user: str, mode: Mode, name: str = "notes.txt") -> Said:
        """Send a file that is not here: ``external`` is elsewhere, ``tombstone`` is gone."""
        world = self._world
        with world.changed:
            file = self._file(user, name, None, mode)
            if mode == "external":
                file.external_url = f"https://drive.example.com/{file.id}"
            return self._say(channel, user, "", None, False, [file], {})

    def edit(self, channel: str, ts: str, text: str) -> Delivery | None:
        """Change what a message says."""
        world = self._world
        with world.changed:
            message = world.messages[channel][ts]
            before, kept = world.wire(message), typed(text)
            message.say(world.clock.time(), text, kept, rich_text(kept))
            message.edited = {"user": message.user, "ts": world.next_ts()}
            world.changed.notify_all()
            return events.changed(world, message, before)

    def delete(self, channel: str, ts: str) -> None:
        """Delete a message, anybody's."""
        with self._world.changed:
            chat.remove(self._world, self._world.messages[channel][ts])

    def react(self, channel: str, ts: str, user: str, name: str) -> None:
        """React with an emoji by its name."""
        with self._world.changed:
            account.react(self._world, self._world.messages[channel][ts], user, name)

    def unreact(self, channel: str, ts: str, user: str, name: str) -> None:
        """Take a reaction back."""
        with self._world.changed:
            account.unreact(self._world, self._world.messages[channel][ts], user, name)

    def bookkeeping(self, channel: str, ts: str) -> Delivery | None:
        """R26: tell that a message has changed when nothing of what it says has."""
        with self._world.changed:
            message = self._world.messages[channel][ts]
            return events.changed(self._world, message, self._world.wire(message))

    def join(self, channel: str, user: str) -> None:
        """Come into a channel; the app's own user may be the one who comes."""
        self._member(channel, user, joined=True)

    def leave(self, channel: str, user: str) -> None:
        """Go out of a channel, or be sent out."""
        self._member(channel, user, joined=False)

    def rename(self, channel: str, name: str) -> None:
        with self._world.changed:
            found = self._world.channels[channel]
            found.name = name
            about = {"id": channel, "name": name, "created": found.created, "is_channel": True}
            self._emit({"type": "channel_rename", "channel": about}, found)

    def archive(self, channel: str, user: str, *, undo: bool = False) -> None:
        """Archive a channel, or bring it back."""
        with self._world.changed:
            found = self._world.channels[channel]
            found.archived = not undo
            kind = "channel_unarchive" if undo else "channel_archive"
            self._emit({"type": kind, "channel": channel, "user": user}, found)

    def change_id(self, channel: str) -> str:
        """Give a channel a new id, as sharing it does; the old one is none any more."""
        world = self._world
        with world.changed:
            found = world.channels.pop(channel)
            found.id = world.next_id("C")
            world.channels[found.id] = found
            world.messages[found.id] = world.messages.pop(channel, {})
            ids = {"old_channel_id": channel, "new_channel_id": found.id}
            self._emit({"type": "channel_id_changed", **ids}, found)
            return found.id

    def open_home(self, user: str, *, tab: str = "home") -> None:
        """Look at the app's home."""
        with self._world.changed:
            where = self._world.direct(user)
            self._emit({"type": "app_home_opened", "user": user, "channel": where.id, "tab": tab})

    def uninstall(self) -> None:
        """R4: remove the app; its tokens are good for nothing from now on."""
        world = self._world
        with world.changed:
            world.revoked = True
            self._emit({"type": "app_uninstalled"})
            tokens = {"oauth": [], "bot": [world.app.user_id]}
            self._emit({"type": "tokens_revoked", "tokens": tokens})

    def enqueue(self, event: Mapping[str, Any], channel: str = "") -> Delivery | None:
        """Send any event at all."""
        with self._world.changed:
            return self._emit(dict(event), self._world.channels.get(channel))

    def _say(
        self,
        channel: str,
        user: str,
        text: str,
        thread: str | None,
        broadcast: bool,
        files: list[File],
        extra: Json,
    ) -> Said:
        world = self._world
        where = world.channels[channel]
        if user not in where.members:
            where.members.append(user)
        kept = typed(text)
        message = Message(
            world.next_ts(),
            where,
            user,
            events.author(world, user),
            kept,
            rich_text(kept),
            text,
            thread=thread,
            broadcast=broadcast,
            subtype="file_share" if files else "",
            client_msg_id=str(uuid.uuid4()),
            extra=({"upload": False, "display_as_bot": False} if files else {}) | extra,
        )
        shown_in(world, message, files)
        told = events.posted(world, world.add(message))
        return Said(message.ts, channel, tuple(told))

    def _file(self, user: str, name: str, content: bytes | None, mode: Mode = "hosted") -> File:
        world = self._world
        file = File(
            world.next_id("F"), name, user, world.clock.time(), len(content or b""), content
        )
        file.mode, file.complete = mode, True
        return world.files.add(file)

    def _member(self, channel: str, user: str, *, joined: bool) -> None:
        world = self._world
        with world.changed:
            found = world.channels[channel]
            if joined and user not in found.members:
                found.members.append(user)
            event = {
                "type": "member_joined_channel" if joined else "member_left_channel",
                "user": user,
                "channel": channel,
                "channel_type": found.id[0],
                "team": world.user(user).team_id,
            }
            if not joined and user == world.app.user_id:
                kind = "channel_left" if found.kind == "channel" else "group_left"
                event = {"type": kind, "channel": channel}
            self._emit(event, found)
            if not joined:
                found.members.remove(user)

    def _emit(self, event: Json, channel: Channel | None = None) -> Delivery | None:
        world = self._world
        event.setdefault("event_ts", world.next_ts())
        return events.emit(world, event, channel)
