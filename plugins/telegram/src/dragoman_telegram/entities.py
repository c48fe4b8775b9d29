"""Message entities: which part of a text speaks to the bot.

Telegram counts offsets and lengths in UTF-16 units; everything after `read_entities` counts in
characters.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import attrs

from dragoman_telegram.account import Account
from dragoman_telegram.fields import Json, as_int, as_list, as_map, as_text
from dragoman_telegram.richtext import called


@attrs.frozen
class Entity:
    """A marked part of a text, from character ``start`` up to ``end``."""

    kind: str
    start: int
    end: int
    user: int | None = None


@attrs.frozen
class Reading:
    """A text as the bot understands it.

    ``text`` is without the bot's own name. ``addressed`` says whether the text names the bot or
    begins with a command that it takes; ``foreign`` whether it begins with another bot's.
    """

    text: str
    addressed: bool = False
    foreign: bool = False


def read_entities(text: str, raw: Any) -> list[Entity]:
    """Return the entities that lie inside ``text``, in its characters."""
    index = [i for i, c in enumerate(text) for _ in range(2 if ord(c) > 0xFFFF else 1)]
    index.append(len(text))
    found = []
    for item in map(as_map, as_list(raw)):
        offset, length = as_int(item.get("offset")), as_int(item.get("length"))
        if offset is None or length is None or offset < 0 or length < 1:
            continue
        if offset + length < len(index):
            user = as_int(as_map(item.get("user")).get("id"))
            kind = as_text(item.get("type"))
            found.append(Entity(kind, index[offset], index[offset + length], user))
    return found


def read_rich(text: str, message: Json, me: Account) -> list[Entity]:
    """Return where a rich message, whose words are ``text``, names the bot; of others, nothing."""
    name = f"@{me.username}"
    if name.casefold() not in called(as_map(message.get("rich_message")).get("blocks")):
        return []
    found = re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE)
    return [Entity("mention", match.start(), match.end()) for match in found]


def read_text(text: str, entities: Sequence[Entity], me: Account, *, commands: bool) -> Reading:
    """Find what names the bot, and take it out. ``commands`` is false for others' words."""
    name = me.username.casefold()
    spans: list[tuple[int, int]] = []
    addressed = foreign = False
    for entity in entities:
        word = text[entity.start : entity.end]
        named = entity.kind == "mention" and name and word.casefold() == f"@{name}"
        if named or (entity.kind == "text_mention" and entity.user == me.id):
            spans.append((entity.start, entity.end))
        elif entity.kind == "bot_command" and commands:
            first = not text[: entity.start].strip()
            command, at, bot = word.partition("@")
            if at and name and bot.casefold() == name:
                spans.append((entity.start + len(command), entity.end))
            elif at:
                foreign = foreign or first
            elif me.commands is None or command[1:].casefold() in me.commands:
                addressed = addressed or first
    rest = without(text, spans)
    return Reading(rest or text, addressed or bool(spans), foreign)


def without(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """Take the spans out of ``text``, with the blanks that only they needed."""
    if not spans:
        return text
    for start, end in sorted(set(spans), reverse=True):
        head, tail = text[:start], text[end:]
        if not head.strip() or head.endswith("\n"):  # "@bot, do it" is said to the bot: "do it"
            tail = re.sub(r"\A[ \t]*[,:]?[ \t]*", "", tail)
        elif head[-1] in " \t" and not tail[:1].isalnum():
            head = head.rstrip(" \t")
        text = head + tail
    return text.strip()
