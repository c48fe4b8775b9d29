"""R19: the parameters of each method, by type, as in the Bot API reference (10.3)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from peers.telegram_fake.errors import Json, bad
from peers.telegram_fake.files import Upload

_SEND: Final = (
    "chat_id:chat message_thread_id:int business_connection_id:text direct_messages_topic_id:int "
    "disable_notification:flag protect_content:flag allow_paid_broadcast:flag "
    "message_effect_id:text reply_parameters:json "
)
_ALONE: Final = (
    _SEND + "suggested_post_parameters:json reply_markup:json ephemeral_message_parameters:json "
)
_CAPTION: Final = "caption:text parse_mode:text caption_entities:json "
_EDIT: Final = (
    "business_connection_id:text chat_id:chat message_id:int inline_message_id:text "
    "reply_markup:json "
)
_HOOK: Final = (
    "url:text certificate:file ip_address:text max_connections:int allowed_updates:json "
    "drop_pending_updates:flag secret_token:text"
)

_TABLE: Final[Mapping[str, str]] = {
    "getMe": "",
    "getUpdates": "offset:int limit:int timeout:int allowed_updates:json",
    "setWebhook": _HOOK,
    "deleteWebhook": "drop_pending_updates:flag",
    "getWebhookInfo": "",
    "sendMessage": _ALONE + "text:text parse_mode:text entities:json link_preview_options:json",
    "sendPhoto": _ALONE + _CAPTION + "photo:file show_caption_above_media:flag has_spoiler:flag",
    "sendDocument": _ALONE
    + _CAPTION
    + "document:file thumbnail:file disable_content_type_detection:flag",
    "sendVoice": _ALONE + _CAPTION + "voice:file duration:int",
    "sendAudio": _ALONE
    + _CAPTION
    + "audio:file duration:int performer:text title:text thumbnail:file",
    "sendVideo": _ALONE
    + _CAPTION
    + "video:file duration:int width:int height:int thumbnail:file cover:file start_timestamp:int "
    "show_caption_above_media:flag has_spoiler:flag supports_streaming:flag",
    "sendAnimation": _ALONE
    + _CAPTION
    + "animation:file duration:int width:int height:int thumbnail:file "
    "show_caption_above_media:flag has_spoiler:flag",
    "sendVideoNote": _ALONE + "video_note:file duration:int length:int thumbnail:file",
    "sendMediaGroup": _SEND + "media:json",
    "sendMessageDraft": "chat_id:chat message_thread_id:int draft_id:int text:text parse_mode:text "
    "entities:json can_stop:flag keep_on_stop:flag",
    "sendRichMessage": _ALONE + "rich_message:json",
    "sendRichMessageDraft": "chat_id:chat message_thread_id:int draft_id:int rich_message:json "
    "can_stop:flag keep_on_stop:flag",
    "sendChatAction": "business_connection_id:text chat_id:chat message_thread_id:int action:text",
    "editMessageText": _EDIT
    + "text:text parse_mode:text entities:json link_preview_options:json rich_message:json",
    "editMessageCaption": _EDIT + _CAPTION + "show_caption_above_media:flag",
    "editMessageReplyMarkup": _EDIT,
    "deleteMessage": "chat_id:chat message_id:int",
    "deleteMessages": "chat_id:chat message_ids:json",
    "setMessageReaction": "chat_id:chat message_id:int reaction:json is_big:flag",
    "answerCallbackQuery": "callback_query_id:text text:text show_alert:flag url:text "
    "cache_time:int",
    "setMyCommands": "commands:json scope:json language_code:text",
    "getMyCommands": "scope:json language_code:text",
    "deleteMyCommands": "scope:json language_code:text",
    "setChatMenuButton": "chat_id:int menu_button:json",
    "getChatMenuButton": "chat_id:int",
    "setMyName": "name:text language_code:text",
    "getMyName": "language_code:text",
    "getFile": "file_id:text",
    "getChat": "chat_id:chat",
    "createForumTopic": "chat_id:chat name:text icon_color:int icon_custom_emoji_id:text",
    "editForumTopic": "chat_id:chat message_thread_id:int name:text icon_custom_emoji_id:text",
    "closeForumTopic": "chat_id:chat message_thread_id:int",
    "reopenForumTopic": "chat_id:chat message_thread_id:int",
    "deleteForumTopic": "chat_id:chat message_thread_id:int",
}

PARAMETERS: Final[Mapping[str, Mapping[str, str]]] = {
    method: dict(item.split(":") for item in row.split()) for method, row in _TABLE.items()
}
FIELDS: Final[Mapping[str, frozenset[str]]] = {
    "rich_message": frozenset("html markdown is_rtl skip_entity_detection blocks media".split()),
    "link_preview_options": frozenset(
        "is_disabled url prefer_small_media prefer_large_media show_above_text".split()
    ),
    "reply_parameters": frozenset(
        "message_id chat_id allow_sending_without_reply quote quote_parse_mode quote_entities "
        "quote_position checklist_task_id poll_option_id ephemeral_message_id".split()
    ),
}
"""The fields of structures that are checked as a whole."""

_NAMES: Final = {name.lower(): name for name in PARAMETERS}
_TRUE: Final = frozenset({"true", "yes", "1"})


def canonical(method: str) -> str | None:
    """R20: return a method's name as in the reference, however it is spelled."""
    return _NAMES.get(method.lower())


def read(method: str, raw: Mapping[str, Any], files: Mapping[str, Upload], *, strict: bool) -> Json:
    """Return a method's parameters with their types; absent ones are left out."""
    known, found = PARAMETERS[method], dict[str, Any]()
    for name, value in raw.items():
        kind = known.get(name)
        if kind is None:
            if strict:
                raise bad(f'unknown parameter "{name}" of {method}')
        elif value is not None and (value != "" or name == "text"):
            found[name] = _READERS[kind](name, value)
            if strict:
                _check_fields(name, found[name])
    for name in files:
        if known.get(name) == "file":
            found[name] = f"attach://{name}"
    return found


def _check_fields(name: str, value: Any) -> None:
    fields = FIELDS.get(name)
    if fields is None:
        return
    unknown = set(value) - fields if isinstance(value, dict) else {name}
    if unknown:
        raise bad(f"unknown field {sorted(unknown)} in {name}")


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise bad(f'parameter "{name}" must be a string')
    return value


def _int(name: str, value: Any) -> int:
    if isinstance(value, str) and re.fullmatch(r"\s*-?\d+\s*", value):
        return int(value)
    if type(value) is not int:
        raise bad(f'parameter "{name}" must be an integer')
    return value


def _flag(name: str, value: Any) -> bool:
    return value if isinstance(value, bool) else str(value).lower() in _TRUE


def _chat(name: str, value: Any) -> int | str:
    if isinstance(value, str) and value.startswith("@"):
        return value
    return _int(name, value)


def _json(name: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        raise bad(f"can't parse {name} JSON object") from None


_READERS: Final = {
    "text": _text,
    "file": _text,
    "int": _int,
    "flag": _flag,
    "chat": _chat,
    "json": _json,
}
