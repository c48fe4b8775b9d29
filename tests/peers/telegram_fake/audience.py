"""What people do with what the bot shows them: they press, react, stop it."""

from __future__ import annotations

from collections import Counter
from typing import Final

import attrs

from peers.telegram_fake.chats import Chat, Person
from peers.telegram_fake.errors import Json
from peers.telegram_fake.messages import Message, Shown, Version
from peers.telegram_fake.text import Formatted
from peers.telegram_fake.world import Draft, Press, World

PREVIEW: Final = 30.0
"""R22: seconds that a draft is shown."""


@attrs.frozen
class Pressed:
    """A button that somebody pressed."""

    update_id: int | None
    query_id: str


@attrs.define(eq=False, slots=False, repr=False)
class Audience:
    """Those whom the bot talks to. Every method may be called from any thread."""

    _world: World
    _people: dict[int, Person] = attrs.field(factory=dict, init=False)

    def person(self, number: int, first_name: str, **more: str) -> Person:
        """Give somebody a name."""
        found = self._people[number] = Person(number, first_name, **more)
        return found

    def press(
        self, chat_id: int, message_id: int, user: int, data: str, *, unseen: bool = False
    ) -> Pressed:
        """R21: press a button; ``unseen`` presses one that the message does not show any more."""
        with self._world.changed:
            message = self._world.messages[chat_id, message_id]
            place = {"message": self._accessible(message), "chat_instance": str(-chat_id)}
        return self._press(message, user, data, place, unseen=unseen)

    def inline_message(self, text: str, markup: Json | None = None) -> str:
        """R21: send a message by way of the bot, in a chat that it does not see; return its id."""
        world = self._world
        with world.changed:
            number = next(world.numbers)
            nowhere = Chat(0, "private")
            message = Message(number, nowhere, world.bot.id, {}, world.clock.time())
            message.body, message.markup = Formatted(text), markup
            message.versions.append(Version(message.date, text))
            name = f"AgAAAFAKE{number:06d}"
            world.inline[name] = message
        return name

    def inline(self, inline_message_id: str) -> Shown:
        """Return what a message that was sent by way of the bot shows now."""
        with self._world.changed:
            return self._world.inline[inline_message_id].shown()

    def press_inline(self, inline_message_id: str, user: int, data: str) -> Pressed:
        """R21: press a button of a message that was sent by way of the bot."""
        with self._world.changed:
            message = self._world.inline[inline_message_id]
        place = {"inline_message_id": inline_message_id, "chat_instance": "-1"}
        return self._press(message, user, data, place)

    def _press(
        self, message: Message, user: int, data: str, place: Json, *, unseen: bool = False
    ) -> Pressed:
        world = self._world
        with world.changed:
            shown = [button.get("callback_data") for row in message.buttons for button in row]
            if not unseen and data not in shown:
                raise LookupError(f"message {message.id} has no button {data!r}")
            query_id = str(4_000_000_000_000_000_000 + next(world.numbers))
            world.presses[query_id] = Press(query_id, world.clock.time())
            body = {"id": query_id, "from": self._user(user).json, **place, "data": data}
        return Pressed(world.push("callback_query", body), query_id)

    def react(self, chat_id: int, message_id: int, user: int, *emoji: str) -> int | None:
        """R23: set somebody's reactions to a message; none takes them back.

        A custom emoji is named by its number, a paid one by ``paid``. In a channel nobody sees
        who it was: the bot gets the counts.
        """
        world = self._world
        with world.changed:
            message = world.messages[chat_id, message_id]
            before, message.reactions[user] = message.reactions.get(user, ()), emoji
            body: Json = {
                "chat": message.chat.json,
                "message_id": message_id,
                "date": int(world.clock.time()),
            }
            if message.chat.kind == "channel":
                return world.push("message_reaction_count", body | _counted(message))
            body |= {
                "user": self._user(user).json,
                "old_reaction": [_reaction(one) for one in before],
                "new_reaction": [_reaction(one) for one in emoji],
            }
        return world.push("message_reaction", body)

    def preview(self, chat_id: int, thread: int | None = None) -> Draft | None:
        """R22: return the draft that somebody sees now."""
        world = self._world
        with world.changed:
            draft = world.previews.get((chat_id, thread))
            alive = draft is not None and world.clock.time() < draft.at + PREVIEW
            return draft if alive else None

    def stop_generation(self, chat_id: int, thread: int | None = None) -> int | None:
        """R22: press the button that stops the draft which is shown."""
        world = self._world
        with world.changed:
            draft = self.preview(chat_id, thread)
            if draft is None or not draft.can_stop:
                raise LookupError(f"chat {chat_id} shows nothing that could be stopped")
            world.stopped.add((chat_id, draft.draft_id))
            if not draft.keep_on_stop:
                del world.previews[chat_id, thread]
            body: Json = {"chat": world.chats[chat_id].json, "draft_id": draft.draft_id}
            if thread is not None:
                body["message_thread_id"] = thread
        return world.push("stopped_message_generation", body)

    def _user(self, number: int) -> Person:
        return self._people.get(number) or Person(number)

    def _accessible(self, message: Message) -> Json:
        """R21: of a message that is gone, a press only says where it was."""
        if message.alive:
            return self._world.wire(message)
        return {"chat": message.chat.json, "message_id": message.id, "date": 0}


def _reaction(name: str) -> Json:
    if name == "paid":
        return {"type": "paid"}
    if name.isdecimal():
        return {"type": "custom_emoji", "custom_emoji_id": name}
    return {"type": "emoji", "emoji": name}


def _counted(message: Message) -> Json:
    counts = Counter(one for emoji in message.reactions.values() for one in emoji)
    found = [{"type": _reaction(one), "total_count": n} for one, n in counts.most_common()]
    return {"reactions": found}
