"""R10: the methods about topics, in forums and in private chats of bots that have them."""

from __future__ import annotations

from typing import Final

from peers.telegram_fake.chats import Chat, Topic
from peers.telegram_fake.checks import open_chat
from peers.telegram_fake.errors import Json, bad
from peers.telegram_fake.journal import Call
from peers.telegram_fake.text import Formatted
from peers.telegram_fake.world import World

_COLOUR: Final = 7322096


def create_forum_topic(world: World, call: Call) -> Json:
    """R10: a topic's number is that of the message that opens it."""
    chat = _forum(world, call)
    name = call.params.get("name", "")
    if not 1 <= len(name) <= 128:
        raise bad("TOPIC_TITLE_EMPTY" if not name else "TOPIC_TITLE_TOO_LONG")
    topic = open_topic(world, chat, name, world.bot.id, {"from": world.bot.json})
    return {"message_thread_id": topic.id, "name": name, "icon_color": _COLOUR}


def close_forum_topic(world: World, call: Call) -> bool:
    return _set_closed(world, call, closed=True)


def reopen_forum_topic(world: World, call: Call) -> bool:
    return _set_closed(world, call, closed=False)


def delete_forum_topic(world: World, call: Call) -> bool:
    chat = _forum(world, call)
    topic = _topic(chat, call)
    remove_topic(world, chat, topic.id)
    return True


def edit_forum_topic(world: World, call: Call) -> bool:
    topic = _topic(_forum(world, call), call)
    if not call.params.get("name") or call.params["name"] == topic.name:
        raise bad("TOPIC_NOT_MODIFIED")
    topic.name = call.params["name"]
    return True


def open_topic(world: World, chat: Chat, name: str, sender: int, author: Json) -> Topic:
    """Open a topic with the message that stands at its head."""
    created = {"forum_topic_created": {"name": name, "icon_color": _COLOUR}}
    message = world.add(chat, sender, author, body=Formatted(""), service=created)
    message.thread = message.id
    topic = chat.topics[message.id] = Topic(message.id, name)
    return topic


def remove_topic(world: World, chat: Chat, number: int) -> None:
    """Delete a topic with all that was said in it."""
    del chat.topics[number]
    for message in world.history(chat.id):
        if message.thread == number:
            message.deleted = True


def _set_closed(world: World, call: Call, *, closed: bool) -> bool:
    topic = _topic(_forum(world, call), call)
    if topic.closed is closed:
        raise bad("TOPIC_NOT_MODIFIED")
    topic.closed = closed
    return True


def _forum(world: World, call: Call) -> Chat:
    chat = open_chat(world, call.params)
    private = chat.kind == "private" and (world.bot.has_topics or chat.topics)
    if chat.kind != "forum" and not private:
        raise bad("the chat is not a forum")
    if not chat.bot_is_admin:
        raise bad("not enough rights to manage topics in the chat")
    return chat


def _topic(chat: Chat, call: Call) -> Topic:
    topic = chat.topics.get(call.params.get("message_thread_id", 0))
    if topic is None:
        raise bad("TOPIC_ID_INVALID")
    return topic
