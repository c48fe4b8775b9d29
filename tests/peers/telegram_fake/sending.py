"""The methods that put something new into a chat."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from peers.telegram_fake.chats import Chat
from peers.telegram_fake.checks import (
    attached,
    fit_caption,
    fit_text,
    inline_keyboard,
    open_chat,
    open_thread,
    parse,
    parse_text,
    reply_target,
)
from peers.telegram_fake.discussions import repeat
from peers.telegram_fake.errors import Json, bad
from peers.telegram_fake.files import Upload
from peers.telegram_fake.journal import Call
from peers.telegram_fake.text import Formatted
from peers.telegram_fake.world import Notice, World

ACTIONS: Final = frozenset(
    "typing upload_photo record_video upload_video record_voice upload_voice upload_document "
    "choose_sticker find_location record_video_note upload_video_note".split()
)


def send_message(world: World, call: Call) -> Json:
    formatted = parse_text(call.params)
    chat = open_chat(world, call.params)
    more = place(world, chat, call.params)
    body = fit_text(formatted)
    world.gate.send(chat)
    return put(world, chat, body=body, preview=call.params.get("link_preview_options"), **more)


def send_photo(world: World, call: Call) -> Json:
    return _send_file(world, call, "photo")


def send_document(world: World, call: Call) -> Json:
    return _send_file(world, call, "document")


def send_voice(world: World, call: Call) -> Json:
    return _send_file(world, call, "voice")


def send_audio(world: World, call: Call) -> Json:
    return _send_file(world, call, "audio")


def send_video(world: World, call: Call) -> Json:
    return _send_file(world, call, "video")


def send_animation(world: World, call: Call) -> Json:
    return _send_file(world, call, "animation")


def send_video_note(world: World, call: Call) -> Json:
    return _send_file(world, call, "video_note")


def send_media_group(world: World, call: Call) -> list[Json]:
    """R17: two to ten files, each with a caption of its own."""
    items = call.params.get("media")
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise bad("media must be a list of InputMedia")
    if not 2 <= len(items) <= 10:
        raise bad("an album has 2 to 10 items")
    kinds = {item.get("type") for item in items}
    if not kinds <= {"photo", "video", "document", "audio"}:
        raise bad("type must be photo, video, document or audio")
    for kind in ("document", "audio"):
        if kind in kinds and len(kinds) > 1:
            raise bad(f"{kind} can't be mixed with other media types")
    captions = [fit_caption(parse(item, "caption")) for item in items]
    chat = open_chat(world, call.params)
    more = place(world, chat, call.params)
    world.gate.send(chat, len(items))
    media = [_media(world, str(i["type"]), str(i.get("media", "")), call.files) for i in items]
    more["album"] = f"{world.next_album()}"
    return [
        put(world, chat, body=caption, media=one, **more)
        for caption, one in zip(captions, media, strict=True)
    ]


def send_chat_action(world: World, call: Call) -> bool:
    action = str(call.params.get("action", "")).lower()
    chat = open_chat(world, call.params)
    if action not in ACTIONS:
        raise bad("wrong parameter action in request")
    thread = open_thread(chat, call.params, notice=True)
    world.notices.append(Notice(world.clock.time(), chat.id, action, thread))
    return True


def _send_file(world: World, call: Call, kind: str) -> Json:
    caption = fit_caption(parse(call.params, "caption"))
    chat = open_chat(world, call.params)
    more = place(world, chat, call.params)
    if kind not in call.params:
        raise bad(f"there is no {kind} in the request")
    world.gate.send(chat)
    media = _media(world, kind, call.params[kind], call.files)
    return put(world, chat, body=caption, media=media, **more)


def _media(world: World, kind: str, value: str, files: Mapping[str, Upload]) -> Json:
    return world.files.medium(kind, attached(value, files))


def place(world: World, chat: Chat, params: Json) -> dict[str, Any]:
    """Return where a message goes, what it answers and its keyboard."""
    thread = open_thread(chat, params)
    reply = reply_target(world, chat, params)
    return {"thread": thread, "markup": inline_keyboard(params), **reply}


def put(world: World, chat: Chat, body: Formatted, **more: Any) -> Json:
    """Put a message of the bot's into a chat; it ends the preview that is shown there."""
    bot = world.bot
    author = {"sender_chat": chat.json} if chat.kind == "channel" else {"from": bot.json}
    message = world.add(chat, bot.id, author, body=body, **more)
    world.previews.pop((chat.id, message.thread), None)
    repeat(world, message)
    return world.wire(message)
