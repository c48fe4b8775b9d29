"""The methods that change, remove or mark what is already there."""

from __future__ import annotations

from typing import Any, Final

from peers.telegram_fake.chats import Chat
from peers.telegram_fake.checks import (
    fit_caption,
    fit_text,
    inline_keyboard,
    open_chat,
    parse,
    parse_text,
)
from peers.telegram_fake.discussions import repeat_edit
from peers.telegram_fake.errors import NOT_MODIFIED, QUERY_TOO_OLD, Json, bad
from peers.telegram_fake.journal import Call
from peers.telegram_fake.messages import Message
from peers.telegram_fake.rich import check_known, read_rich, rich_body
from peers.telegram_fake.text import Formatted
from peers.telegram_fake.updates import LIFETIMES
from peers.telegram_fake.world import World

DELETABLE: Final = 48 * 3600.0
MAX_DELETED: Final = 100
EMOJI: Final = frozenset(
    "👍 👎 ❤ 🔥 🥰 👏 😁 🤔 🤯 😱 🤬 😢 🎉 🤩 🤮 💩 🙏 👌 🕊 🤡 🥱 🥴 😍 🐳 ❤‍🔥 🌚 🌭 💯 🤣 ⚡ 🍌 🏆 💔 🤨 "
    "😐 🍓 🍾 💋 🖕 😈 😴 😭 🤓 👻 👨‍💻 👀 🎃 🙈 😇 😨 🤝 ✍ 🤗 🫡 🎅 🎄 ☃ 💅 🤪 🗿 🆒 💘 🙉 🦄 😘 💊 🙊 😎 👾 "
    "🤷‍♂ 🤷 🤷‍♀ 😡".split()
)


def edit_message_text(world: World, call: Call) -> Json | bool:
    if call.params.get("rich_message") is not None and world.rich != "unknown":
        return _edit_rich(world, call)
    formatted = parse_text(call.params)
    chat, message = _target(world, call)
    if message.media:
        raise bad("there is no text in the message to edit")
    body = fit_text(formatted, edit=True)
    message.preview = call.params.get("link_preview_options", message.preview)
    return _change(world, chat, message, body, inline_keyboard(call.params))


def _edit_rich(world: World, call: Call) -> Json | bool:
    """R27: give a message rich content, whether it had such before or a plain text."""
    check_known(world)
    if call.params.get("text"):
        raise bad("a message has a text or rich content, not both")
    content = read_rich(world, call)
    chat, message = _target(world, call)
    if message.media:
        raise bad("there is no text in the message to edit")
    markup = inline_keyboard(call.params)
    return _change(world, chat, message, rich_body(content), markup, content)


def edit_message_caption(world: World, call: Call) -> Json | bool:
    caption = fit_caption(parse(call.params, "caption"))
    chat, message = _target(world, call)
    if not message.media:
        raise bad("there is no caption in the message to edit")
    return _change(world, chat, message, caption, inline_keyboard(call.params))


def edit_message_reply_markup(world: World, call: Call) -> Json | bool:
    chat, message = _target(world, call)
    markup = inline_keyboard(call.params)
    return _change(world, chat, message, message.body, markup, message.rich)


def delete_message(world: World, call: Call) -> bool:
    chat = open_chat(world, call.params)
    message = world.find(chat, call.params.get("message_id"))
    if message is None:
        raise bad("message to delete not found")
    _delete(world, chat, message)
    return True


def delete_messages(world: World, call: Call) -> bool:
    """R11: up to a hundred messages; those that are not there are passed over."""
    chat = open_chat(world, call.params)
    numbers = call.params.get("message_ids")
    if not isinstance(numbers, list) or not numbers:
        raise bad("message identifiers are not specified")
    if len(numbers) > MAX_DELETED:
        raise bad("too many message identifiers specified")
    for message in filter(None, [world.find(chat, number) for number in numbers]):
        _delete(world, chat, message)
    return True


def _delete(world: World, chat: Chat, message: Message) -> None:
    """R11: own messages for 48 hours; those of others in private chats and as administrator."""
    foreign = message.sender != world.bot.id
    if foreign and chat.kind != "private" and not chat.bot_is_admin:
        raise bad("message can't be deleted")
    if world.clock.time() - message.date > DELETABLE and not chat.bot_is_admin:
        raise bad("message can't be deleted for everyone")
    message.deleted = True


def set_message_reaction(world: World, call: Call) -> bool:
    """R23: a bot has one reaction on a message, from a fixed list; none takes it back."""
    chat = open_chat(world, call.params)
    message = world.find(chat, call.params.get("message_id"))
    if message is None:
        raise bad("message to react not found")
    wanted = call.params.get("reaction") or []
    if len(wanted) > 1:
        raise bad("REACTIONS_TOO_MANY")
    emoji = tuple(str(item.get("emoji")) for item in wanted if item.get("type") == "emoji")
    if len(emoji) != len(wanted) or not set(emoji) <= EMOJI:
        raise bad("REACTION_INVALID")
    message.reactions[world.bot.id] = emoji
    return True


def answer_callback_query(world: World, call: Call) -> bool:
    """R21: a press can be answered once and not for long."""
    press = world.presses.get(call.params.get("callback_query_id", ""))
    expired = press is None or world.clock.time() - press.at > LIFETIMES["callback_query"]
    if press is None or expired or press.answer is not None:
        raise bad(QUERY_TOO_OLD)
    if len(call.params.get("text", "")) > 200:
        raise bad("MESSAGE_TOO_LONG")
    press.answer = dict(call.params)
    return True


def _target(world: World, call: Call) -> tuple[Chat, Message]:
    """R11, R21: return a message of the bot's own that still exists, or one by its inline id."""
    if "inline_message_id" in call.params:
        inline = world.inline.get(call.params["inline_message_id"])
        if inline is None:
            raise bad("MESSAGE_ID_INVALID")
        return inline.chat, inline
    chat = open_chat(world, call.params)
    number: Any = call.params.get("message_id")
    if number is None:
        raise bad("message identifier is not specified")
    message = world.find(chat, number)
    if message is None:
        raise bad("message to edit not found")
    if message.sender != world.bot.id:
        raise bad("message can't be edited")
    return chat, message


def _change(
    world: World,
    chat: Chat,
    message: Message,
    body: Formatted,
    markup: Json | None,
    rich: Json | None = None,
) -> Json | bool:
    """R11: a change without a difference is refused; a keyboard that is not named goes away."""
    world.gate.edit(chat)
    same = (body, rich) == (message.body, message.rich)
    if same and markup == message.markup:
        raise bad(NOT_MODIFIED)
    message.markup = markup
    if not same:
        message.change(body, world.clock.time(), rich)
    else:
        message.edited = world.clock.time()
    if message in world.inline.values():
        return True
    repeat_edit(world, message)
    return world.wire(message)
