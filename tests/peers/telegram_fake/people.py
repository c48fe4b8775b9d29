"""What people do of themselves: they write, edit, join, block. Each returns what the bot is sent."""

from __future__ import annotations

import mimetypes
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from peers.telegram_fake.audience import Audience
from peers.telegram_fake.chats import Chat, Kind, Topic
from peers.telegram_fake.discussions import find_repeated, repeat, repeat_edit
from peers.telegram_fake.errors import Json
from peers.telegram_fake.files import Upload
from peers.telegram_fake.messages import Message
from peers.telegram_fake.origins import external_reply, from_hidden, origin, quote
from peers.telegram_fake.text import Formatted, finish
from peers.telegram_fake.topics import open_topic, remove_topic


@attrs.frozen
class Said:
    """A message that somebody wrote; ``update_id`` is ``None`` where the bot did not want it."""

    update_id: int | None
    message_id: int


@attrs.define(eq=False, slots=False, repr=False)
class People(Audience):
    """The side of the people. Every method may be called from any thread."""

    def add_chat(self, chat_id: int, kind: Kind, title: str = "", **more: Any) -> Chat:
        """Make a chat that the bot is in. Others come into being when somebody writes there."""
        with self._world.changed:
            found = self._world.chats[chat_id] = Chat(chat_id, kind, title, **more)
            return found

    def topic(self, chat_id: int, name: str, user: int = 1) -> int:
        """Open a topic and return its number."""
        with self._world.changed:
            chat = self._world.meet(chat_id, topics=True)
            opened = open_topic(self._world, chat, name, user, self._author(chat, user))
            head = self._world.messages[chat.id, opened.id]
        self._push("message", head)
        return opened.id

    def close_topic(self, chat_id: int, thread: int) -> None:
        """Close a topic: only administrators write there now."""
        with self._world.changed:
            self._world.chats[chat_id].topics[thread].closed = True

    def delete_topic(self, chat_id: int, thread: int) -> None:
        """Delete a topic with its messages."""
        with self._world.changed:
            remove_topic(self._world, self._world.chats[chat_id], thread)

    def say(
        self,
        chat_id: int,
        user: int,
        text: str = "",
        *,
        thread: int | None = None,
        reply_to: int | tuple[int, int] | None = None,
        quoting: str = "",
        media_group: str = "",
        photo: bytes | None = None,
        document: tuple[str, bytes] | None = None,
        file: tuple[str, str, bytes] | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> Said:
        """Write a message; with a file, the text is its caption. ``extra`` goes in as it is.

        ``file`` is one of any kind: kind, name, content. ``reply_to`` names a message here, or
        one elsewhere by chat and number; ``quoting`` the words of it that the answer is about.
        """
        world = self._world
        with world.changed:
            chat = world.meet(chat_id, topics=thread is not None)
            if thread is not None:
                chat.topics.setdefault(thread, Topic(thread, f"Topic {thread}"))
            message = world.add(
                chat,
                user,
                self._author(chat, user),
                body=finish(Formatted(text), may_be_empty=True),
                media=self._media(photo, document, file),
                thread=thread,
                album=media_group,
                **self._reference(chat, reply_to, quoting, dict(extra or {})),
            )
        return self._tell(message)

    def album(self, chat_id: int, user: int, photos: Sequence[bytes], text: str = "") -> list[Said]:
        """Send several photos at once; the text stands below the first."""
        with self._world.changed:
            group = f"{self._world.next_album()}"
        return [
            self.say(chat_id, user, "" if index else text, photo=photo, media_group=group)
            for index, photo in enumerate(photos)
        ]

    def forward(
        self, chat_id: int, user: int, source: tuple[int, int], *, hidden: bool = False
    ) -> Said:
        """R30: forward a message; its author may be one who hides behind a name."""
        world = self._world
        with world.changed:
            original = world.messages[source]
            found = origin(original)
            if hidden and found["type"] == "user":
                found = from_hidden(found["sender_user"]["first_name"], found["date"])
            chat = world.meet(chat_id)
            message = world.add(
                chat,
                user,
                self._author(chat, user),
                body=original.body,
                media=original.media,
                rich=original.rich,
                service={"forward_origin": found},
            )
        return self._tell(message)

    def link(self, channel_id: int, group_id: int) -> None:
        """R29: let a channel's posts be discussed in a supergroup."""
        with self._world.changed:
            channel, group = self._world.chats[channel_id], self._world.chats[group_id]
            channel.linked, group.linked = group.id, channel.id

    def repeated(self, channel_id: int, message_id: int) -> int:
        """R29: return the number that a channel's post has in its discussion group."""
        with self._world.changed:
            found = find_repeated(self._world, self._world.messages[channel_id, message_id])
            if found is None:
                raise LookupError(f"post {message_id} is not shown in a group")
            return found.id

    def edit(self, chat_id: int, message_id: int, text: str) -> int | None:
        """Change what a message says, and return the update's id."""
        world = self._world
        with world.changed:
            message = world.messages[chat_id, message_id]
            message.change(finish(Formatted(text)), world.clock.time())
        channel = message.chat.kind == "channel"
        told = self._push("edited_channel_post" if channel else "edited_message", message)
        with world.changed:
            repeat_edit(world, message)
        return told

    def block(self, chat_id: int) -> int | None:
        """R14: block the bot in a private chat."""
        return self._membership(chat_id, "member", "kicked", "bot was blocked by the user")

    def unblock(self, chat_id: int) -> int | None:
        """Let the bot write again, in a private chat or in one that it was thrown out of."""
        return self._membership(chat_id, "kicked", "member", "")

    def kick(self, chat_id: int) -> int | None:
        """R14: throw the bot out of a group or channel."""
        kind = self._world.chats[chat_id].wire_kind
        return self._membership(chat_id, "member", "kicked", f"bot was kicked from the {kind} chat")

    def migrate(self, old: int, new: int) -> tuple[Said, Said]:
        """R13: turn a group into a supergroup, told by a message in each."""
        world = self._world
        with world.changed:
            before = world.meet(old)
            after = world.chats[new] = Chat(new, "supergroup", before.title)
            before.moved_to = new
            author = self._author(before, 1)
            told = [
                world.add(before, 1, author, service={"migrate_to_chat_id": new}),
                world.add(after, 1, author, service={"migrate_from_chat_id": old}),
            ]
        first, second = (Said(self._push("message", one), one.id) for one in told)
        return first, second

    def delete(self, chat_id: int, message_id: int) -> None:
        """Delete a message. Bots are not told."""
        with self._world.changed:
            self._world.messages[chat_id, message_id].deleted = True
            self._world.changed.notify_all()

    def forget(self, chat_id: int, message_id: int) -> None:
        """R11: keep showing a message that the bot can reach no more."""
        with self._world.changed:
            self._world.messages[chat_id, message_id].forgotten = True

    def enqueue(self, update: Mapping[str, Any]) -> int | None:
        """Send any update at all: ``{kind: body}``; return its id."""
        [kind] = (key for key in update if key != "update_id")
        return self._world.push(kind, update[kind])

    def _tell(self, message: Message) -> Said:
        """Tell the bot of a new message; of a channel's, where it is discussed too."""
        kind = "channel_post" if message.chat.kind == "channel" else "message"
        told = self._push(kind, message)
        with self._world.changed:
            repeat(self._world, message)
        return Said(told, message.id)

    def _reference(
        self, chat: Chat, reply_to: int | tuple[int, int] | None, quoting: str, service: Json
    ) -> dict[str, Any]:
        """Return what a message says of the one that it answers."""
        if reply_to is None:
            return {"service": service}
        if isinstance(reply_to, int):
            found = self._world.messages.get((chat.id, reply_to))
            about: dict[str, Any] = {"service": service, "reply_to": reply_to}
        else:
            found = self._world.messages[reply_to]
            about = {"service": service | {"external_reply": external_reply(found)}}
        if quoting and found is not None:
            about["quote"] = quote(found, Formatted(quoting))
        return about

    def _push(self, kind: str, message: Message) -> int | None:
        with self._world.changed:
            body = self._world.wire(message)
        return self._world.push(kind, body)

    def _author(self, chat: Chat, user: int) -> Json:
        if chat.kind == "channel":
            return {"sender_chat": chat.json}
        return {"from": self._user(user).json}

    def _media(
        self,
        photo: bytes | None,
        document: tuple[str, bytes] | None,
        file: tuple[str, str, bytes] | None,
    ) -> Json:
        files = self._world.files
        if file is not None:
            kind, name, content = file
            guessed = mimetypes.guess_type(name)[0] or "application/octet-stream"
            return files.medium(kind, Upload(name, content, guessed))
        if photo is not None:
            return files.photo(Upload("photo.jpg", photo, "image/jpeg"))
        if document is not None:
            return files.document(Upload(*document))
        return {}

    def _membership(self, chat_id: int, old: str, new: str, reason: str) -> int | None:
        world = self._world
        with world.changed:
            chat = world.meet(chat_id)
            chat.shut = reason
            more = {"kicked": {"until_date": 0}}
            body = {
                "chat": chat.json,
                "from": self._user(chat_id if chat_id > 0 else 1).json,
                "date": int(world.clock.time()),
                "old_chat_member": {"status": old, "user": world.bot.json, **more.get(old, {})},
                "new_chat_member": {"status": new, "user": world.bot.json, **more.get(new, {})},
            }
        return world.push("my_chat_member", body)
