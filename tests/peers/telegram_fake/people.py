"""What people do: they write, edit, press, react, join, block. Each returns what the bot is sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from peers.telegram_fake.account import open_topic, remove_topic
from peers.telegram_fake.chats import Chat, Kind, Person, Topic
from peers.telegram_fake.errors import Json
from peers.telegram_fake.files import Upload
from peers.telegram_fake.messages import Message
from peers.telegram_fake.text import Formatted, finish
from peers.telegram_fake.world import Press, World


@attrs.frozen
class Said:
    """A message that somebody wrote; ``update_id`` is ``None`` where the bot did not want it."""

    update_id: int | None
    message_id: int


@attrs.frozen
class Pressed:
    """A button that somebody pressed."""

    update_id: int | None
    query_id: str


@attrs.define(eq=False, slots=False, repr=False)
class People:
    """The side of the people. Every method may be called from any thread."""

    _world: World
    _people: dict[int, Person] = attrs.field(factory=dict, init=False)

    def person(self, number: int, first_name: str, **more: str) -> Person:
        """Give somebody a name."""
        found = self._people[number] = Person(number, first_name, **more)
        return found

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
        reply_to: int | None = None,
        media_group: str = "",
        photo: bytes | None = None,
        document: tuple[str, bytes] | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> Said:
        """Write a message; with a file, the text is its caption. ``extra`` goes in as it is."""
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
                media=self._media(photo, document),
                thread=thread,
                reply_to=reply_to,
                album=media_group,
                service=dict(extra or {}),
            )
        kind = "channel_post" if chat.kind == "channel" else "message"
        return Said(self._push(kind, message), message.id)

    def edit(self, chat_id: int, message_id: int, text: str) -> int | None:
        """Change what a message says, and return the update's id."""
        world = self._world
        with world.changed:
            message = world.messages[chat_id, message_id]
            message.change(finish(Formatted(text)), world.clock.time())
        channel = message.chat.kind == "channel"
        return self._push("edited_channel_post" if channel else "edited_message", message)

    def press(
        self, chat_id: int, message_id: int, user: int, data: str, *, unseen: bool = False
    ) -> Pressed:
        """R21: press a button; ``unseen`` presses one that the message does not show any more."""
        world = self._world
        with world.changed:
            message = world.messages[chat_id, message_id]
            rows = (message.markup or {}).get("inline_keyboard", [])
            if not unseen and not any(b.get("callback_data") == data for row in rows for b in row):
                raise LookupError(f"message {message_id} has no button {data!r}")
            query_id = str(4_000_000_000_000_000_000 + next(world.numbers))
            world.presses[query_id] = Press(query_id, world.clock.time())
            body = {
                "id": query_id,
                "from": self._user(user).json,
                "message": self._accessible(message),
                "chat_instance": str(-chat_id),
                "data": data,
            }
        return Pressed(world.push("callback_query", body), query_id)

    def react(self, chat_id: int, message_id: int, user: int, *emoji: str) -> int | None:
        """R23: set somebody's reactions to a message; none takes them back."""
        world = self._world
        with world.changed:
            message = world.messages[chat_id, message_id]
            before, message.reactions[user] = message.reactions.get(user, ()), emoji
            body = {
                "chat": message.chat.json,
                "message_id": message_id,
                "user": self._user(user).json,
                "date": int(world.clock.time()),
                "old_reaction": [{"type": "emoji", "emoji": one} for one in before],
                "new_reaction": [{"type": "emoji", "emoji": one} for one in emoji],
            }
        return world.push("message_reaction", body)

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

    def _push(self, kind: str, message: Message) -> int | None:
        with self._world.changed:
            body = self._world.wire(message)
        return self._world.push(kind, body)

    def _user(self, number: int) -> Person:
        return self._people.get(number) or Person(number)

    def _author(self, chat: Chat, user: int) -> Json:
        if chat.kind == "channel":
            return {"sender_chat": chat.json}
        return {"from": self._user(user).json}

    def _media(self, photo: bytes | None, document: tuple[str, bytes] | None) -> Json:
        files = self._world.files
        if photo is not None:
            return files.photo(Upload("photo.jpg", photo, "image/jpeg"))
        if document is not None:
            return files.document(Upload(*document))
        return {}

    def _accessible(self, message: Message) -> Json:
        """R21: of a message that is gone, a press only says where it was."""
        if message.alive:
            return self._world.wire(message)
        return {"chat": message.chat.json, "message_id": message.id, "date": 0}

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
