"""What the methods that show something have in common: rights, topics, texts, keyboards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from peers.telegram_fake.chats import GENERAL, Chat
from peers.telegram_fake.errors import Json, bad, refusal
from peers.telegram_fake.files import Upload
from peers.telegram_fake.html import parse_html
from peers.telegram_fake.markdown import parse_markdown, parse_markdown_v2
from peers.telegram_fake.origins import external_reply, quote
from peers.telegram_fake.text import (
    MAX_CALLBACK_DATA,
    MAX_CAPTION,
    MAX_TEXT,
    Formatted,
    finish,
    units,
)
from peers.telegram_fake.world import World

_PARSERS: Final = {
    "markdownv2": parse_markdown_v2,
    "markdown": parse_markdown,
    "html": parse_html,
}
_TARGETS: Final = (
    "url callback_data web_app login_url switch_inline_query switch_inline_query_current_chat "
    "switch_inline_query_chosen_chat copy_text callback_game pay disabled"
).split()
_OTHER_KEYBOARDS: Final = ("keyboard", "remove_keyboard", "force_reply")


def open_chat(world: World, params: Mapping[str, Any]) -> Chat:
    """R11, R13, R14: return a chat that the bot may write in."""
    chat = world.chat(params.get("chat_id"))
    if chat.moved_to is not None:
        raise bad("group chat was upgraded to a supergroup chat", migrate_to_chat_id=chat.moved_to)
    if chat.shut:
        raise refusal(403, chat.shut)
    return chat


def open_thread(chat: Chat, params: Mapping[str, Any], *, notice: bool = False) -> int | None:
    """R10: return the topic that something new goes to; ``None`` is the general one.

    A notice may name the general topic, a message must not.
    """
    number = params.get("message_thread_id")
    if number is None:
        return None
    if number == GENERAL and notice and chat.kind == "forum":
        return None
    topic = chat.topics.get(number)
    if topic is None:
        raise bad("message thread not found")
    if topic.closed and not notice and not chat.bot_is_admin:
        raise bad("TOPIC_CLOSED")
    return topic.id


def parse(params: Mapping[str, Any], field: str) -> Formatted:
    """R9: read a text in its parse mode, which comes before all other checks."""
    text, mode = params.get(field, ""), params.get("parse_mode", "")
    if mode and mode.lower() != "none":
        if mode.lower() not in _PARSERS:
            raise bad("unsupported parse_mode")
        return _PARSERS[mode.lower()](text)
    entities = params.get("entities" if field == "text" else "caption_entities") or []
    if not isinstance(entities, list):
        raise bad("can't parse entities JSON object")
    return Formatted(text, tuple(entities))


def parse_text(params: Mapping[str, Any]) -> Formatted:
    """R7: read a message's text; an empty one is refused before anything else."""
    if not params.get("text"):
        raise bad("message text is empty")
    return parse(params, "text")


def fit_text(formatted: Formatted, *, edit: bool = False) -> Formatted:
    """R7, R8: return the text as it will be shown, if it is not too long."""
    done = finish(formatted)
    if units(done.text) > MAX_TEXT:
        raise bad("MESSAGE_TOO_LONG" if edit else "message is too long")
    return done


def fit_caption(formatted: Formatted) -> Formatted:
    """R7, R8: return the caption as it will be shown."""
    done = finish(formatted, may_be_empty=True)
    if units(done.text) > MAX_CAPTION:
        raise bad("message caption is too long")
    return done


def reply_target(world: World, chat: Chat, params: Mapping[str, Any]) -> dict[str, Any]:
    """R11, R30: return what a message says of the one that it replies to.

    A missing one may be tolerated; one in another chat is shown in the message itself.
    """
    wanted = params.get("reply_parameters") or {}
    number = wanted.get("message_id")
    if number is None:
        return {}
    if type(number) is not int:
        raise bad("can't parse ReplyParameters: message_id must be an integer")
    place = chat if wanted.get("chat_id") is None else world.chat(wanted["chat_id"])
    found = world.find(place, number)
    if found is None:
        if wanted.get("allow_sending_without_reply") is True:
            return {}
        raise bad("message to be replied not found")
    more = {"quote": quote(found, _quoted(wanted))} if wanted.get("quote") else {}
    if place is chat:
        return {"reply_to": number, **more}
    return {"service": {"external_reply": external_reply(found)}, **more}


def _quoted(wanted: Mapping[str, Any]) -> Formatted:
    """Read a quotation, which is formatted like any other text."""
    fields = {
        "text": wanted["quote"],
        "parse_mode": wanted.get("quote_parse_mode", ""),
        "entities": wanted.get("quote_entities"),
    }
    return finish(parse(fields, "text"))


def inline_keyboard(params: Mapping[str, Any]) -> Json | None:
    """R21: return an inline keyboard; keyboards of other kinds are not part of a message."""
    markup = params.get("reply_markup")
    if not markup:
        return None
    if not isinstance(markup, dict) or not set(markup) & {"inline_keyboard", *_OTHER_KEYBOARDS}:
        raise bad("object expected as reply markup")
    if "inline_keyboard" not in markup:
        return None
    rows = markup["inline_keyboard"]
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise bad("can't parse inline keyboard: Array of Arrays expected")
    for row in rows:
        for button in row:
            _check_button(button)
    return {"inline_keyboard": [row for row in rows if row]} if any(rows) else None


def _check_button(button: Any) -> None:
    if not isinstance(button, dict) or not button.get("text"):
        raise bad("can't parse inline keyboard button: Text buttons are unallowed")
    if len([name for name in _TARGETS if name in button]) != 1:
        raise bad(
            "can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard"
        )
    data = button.get("callback_data")
    if data is not None and not 1 <= len(str(data).encode()) <= MAX_CALLBACK_DATA:
        raise bad("BUTTON_DATA_INVALID")


def attached(value: str, files: Mapping[str, Upload]) -> Upload | str:
    """R17: return the file that a value stands for: an upload, or one that is known by its id."""
    if not value.startswith("attach://"):
        return value
    upload = files.get(value.removeprefix("attach://"))
    if upload is None:
        raise bad("wrong file identifier/HTTP URL specified")
    return upload
