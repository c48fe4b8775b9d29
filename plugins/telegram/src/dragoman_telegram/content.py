"""What a message says, as text: its words, or a short stand-in for what is not words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dragoman_telegram.fields import Json, as_int, as_map, as_text, one_line, whole
from dragoman_telegram.richtext import lines_of


def words_of(message: Json) -> str:
    """Return the text or the caption, or what a rich message says; empty where there is none."""
    words = as_text(message.get("text")) or as_text(message.get("caption"))
    if words or "rich_message" not in message:
        return words
    blocks = as_map(message["rich_message"]).get("blocks")
    return whole("\n".join(line for line in lines_of(blocks) if line))


def stand_in(message: Json) -> str:
    """Return a text for a message without words; empty for service messages."""
    for field, describe in _KINDS.items():
        if field in message:
            return f"[{describe(as_map(message[field]))}]"
    return ""


def forwarded_from(message: Json) -> str:
    """Return a label of whose words a forwarded message holds; empty for a message of one's own."""
    if "forward_origin" not in message and message.get("is_automatic_forward") is not True:
        return ""
    return origin_name(as_map(message.get("forward_origin"))) or "unknown"


def origin_name(origin: Json) -> str:
    """Return what Telegram calls the origin of a message, a label; empty where it does not say."""
    source = (
        person_name(as_map(origin.get("sender_user")))
        or as_text(origin.get("sender_user_name"))
        or chat_name(as_map(origin.get("sender_chat")))
        or chat_name(as_map(origin.get("chat")))
    )
    return _label(source)


def person_name(user: Json) -> str:
    """Return the name a person goes by. It is a label: anybody may take any name."""
    full = f"{as_text(user.get('first_name'))} {as_text(user.get('last_name'))}"
    return one_line(full) or one_line(as_text(user.get("username")))


def chat_name(chat: Json) -> str:
    """Return a chat's title, else its public name."""
    return one_line(as_text(chat.get("title"))) or one_line(as_text(chat.get("username")))


def _label(text: str) -> str:
    """Return a label that cannot end the brackets around it."""
    return one_line(text).translate({ord("["): "(", ord("]"): ")"})


def _lasting(name: str) -> Callable[[Json], str]:
    def describe(item: Json) -> str:
        seconds = as_int(item.get("duration"))
        return name if seconds is None else f"{name}, {seconds} s"

    return describe


def _called(name: str, *fields: str) -> Callable[[Json], str]:
    def describe(item: Json) -> str:
        label = _label(" ".join(as_text(item.get(field)) for field in fields))
        return f"{name} {label}".rstrip()

    return describe


def _location(item: Json) -> str:
    places = (item.get("latitude"), item.get("longitude"))
    numbers = [f"{p:.6f}".rstrip("0").rstrip(".") for p in places if type(p) in (int, float)]
    return f"location {', '.join(numbers)}" if len(numbers) == len(places) else "location"


def _dice(item: Json) -> str:
    value = as_int(item.get("value"))
    shown = _called("dice", "emoji")(item)
    return shown if value is None else f"{shown}: {value}"


# Looked through in this order: an animation also has a document, a venue also a location.
_KINDS: Final[dict[str, Callable[[Json], str]]] = {
    "animation": _called("animation", "file_name"),
    "audio": _lasting("audio"),
    "document": _called("file", "file_name"),
    "live_photo": _called("photo"),
    "photo": _called("photo"),
    "sticker": _called("sticker", "emoji"),
    "story": _called("story"),
    "video": _lasting("video"),
    "video_note": _lasting("video message"),
    "voice": _lasting("voice message"),
    "paid_media": _called("paid media"),
    "checklist": _called("checklist", "title"),
    "contact": _called("contact", "first_name", "last_name"),
    "dice": _dice,
    "game": _called("game", "title"),
    "poll": _called("poll", "question"),
    "venue": _called("venue", "title", "address"),
    "location": _location,
    "invoice": _called("invoice", "title"),
    "giveaway": _called("giveaway"),
}
