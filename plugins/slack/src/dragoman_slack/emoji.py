"""Emoji: Slack names them, others use the characters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from dragoman import Refused

_NAMES: Final[Mapping[str, str]] = {
    "👍": "+1",
    "👎": "-1",
    "👀": "eyes",
    "✅": "white_check_mark",
    "❌": "x",
    "⏳": "hourglass_flowing_sand",
    "⌛": "hourglass",
    "🎉": "tada",
    "🙏": "pray",
    "👏": "clap",
    "👋": "wave",
    "👌": "ok_hand",
    "💯": "100",
    "🔥": "fire",
    "❤️": "heart",
    "❤": "heart",
    "😀": "grinning",
    "😂": "joy",
    "😄": "smile",
    "😊": "blush",
    "😍": "heart_eyes",
    "😎": "sunglasses",
    "😢": "cry",
    "😭": "sob",
    "😡": "rage",
    "😮": "open_mouth",
    "😱": "scream",
    "🤔": "thinking_face",
    "🤖": "robot_face",
    "🤷": "shrug",
    "🚀": "rocket",
    "⭐": "star",
    "🌟": "star2",
    "💡": "bulb",
    "⚠️": "warning",
    "⚠": "warning",
    "🚫": "no_entry_sign",
    "⛔": "no_entry",
    "🛑": "octagonal_sign",
    "❓": "question",
    "❗": "exclamation",
    "📌": "pushpin",
    "📎": "paperclip",
    "📝": "memo",
    "🔁": "repeat",
    "🔄": "arrows_counterclockwise",
    "🆗": "ok",
    "✍️": "writing_hand",
    "✍": "writing_hand",
    "⏸️": "double_vertical_bar",
    "▶️": "arrow_forward",
    "⏹️": "black_square_for_stop",
    "🐛": "bug",
    "💬": "speech_balloon",
    "🕐": "clock1",
}
_ALIASES: Final[Mapping[str, str]] = {
    "thumbsup": "+1",
    "thumbsdown": "-1",
    "thinking": "thinking_face",
    "robot": "robot_face",
    "heavy_check_mark": "white_check_mark",
    "hourglass_not_done": "hourglass_flowing_sand",
    "pencil": "memo",
}
_CHARACTERS: Final = {name: character for character, name in reversed(list(_NAMES.items()))}
_NAME: Final = re.compile(r":?([a-z0-9_+'-]{1,100}(?:::skin-tone-[2-6])?):?")


def name_of(emoji: str) -> str:
    """Return Slack's name of an emoji; a name stays one. Raises `dragoman.Refused`."""
    if emoji in _NAMES:
        return _NAMES[emoji]
    found = _NAME.fullmatch(emoji)
    if found is None:
        raise Refused("no name is known for this emoji")
    return found[1]


def emoji_of(name: str) -> str:
    """Return the emoji that Slack names so, and ``:name:`` for one that is only known by name."""
    base = name.partition("::")[0]
    return _CHARACTERS.get(_ALIASES.get(base, base), f":{name}:")
