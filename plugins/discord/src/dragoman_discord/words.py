"""What a message says, as text: its words with names in place of ids, or a short stand-in."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import attrs

from dragoman import Attachment, Quote
from dragoman_discord.fields import Json, as_id, as_int, as_list, as_map, as_text, one_line

_MENTION: Final = re.compile(r"<@!?([0-9]{1,20})>|<@&([0-9]{1,20})>|<#([0-9]{1,20})>")
_EMOJI: Final = re.compile(r"<a?(:[A-Za-z0-9_~]{1,64}:)[0-9]{1,20}>")
_VOICE: Final = 1 << 13
_FORWARD: Final = 1


@attrs.frozen
class Names:
    """Who is who in a message: ``me`` is this bot, ``role`` the one that its server gave it."""

    me: str
    role: str = ""
    channel: Callable[[str], str] = lambda _: ""

    def is_me(self, user: str, role: str) -> bool:
        """Whether a mention is one of this bot."""
        return user == self.me or (bool(role) and role == self.role)


def calls(message: Json, names: Names) -> bool:
    """Whether a message mentions this bot, by its name or by the role that is its own."""
    users = [as_id(as_map(user).get("id")) for user in as_list(message.get("mentions"))]
    roles = as_list(message.get("mention_roles"))
    return names.me in users or (bool(names.role) and names.role in roles)


def text_of(message: Json, names: Names) -> str:
    """Return a message's words; else what it is in place of words.

    The bot's own name is left out, unless nothing but that was said.
    """
    content = as_text(message.get("content"))
    words = _named(without_mentions(content, names), message, names)
    if words or as_list(message.get("attachments")):
        return words
    return stand_in(message) or _named(content, message, names)


def _named(content: str, message: Json, names: Names) -> str:
    users = {
        as_id(user.get("id")): label_of(user)
        for user in map(as_map, as_list(message.get("mentions")))
    }

    def name(found: re.Match[str]) -> str:
        user, channel = found[1] or "", found[3] or ""
        if user:
            return f"@{users[user]}" if users.get(user) else found[0]
        known = names.channel(channel) if channel else ""
        return f"#{known}" if known else found[0]

    return _EMOJI.sub(r"\1", _MENTION.sub(name, content)).strip()


def without_mentions(content: str, names: Names) -> str:
    """Return a text less the mentions of this bot, each with the blank that it brought along."""
    kept, end = list[str](), 0
    for found in _MENTION.finditer(content):
        if not names.is_me(found[1] or "", found[2] or ""):
            continue
        before = content[end : found.start()]
        end = found.end()
        starts = not "".join(kept) + before or before.endswith("\n")
        if starts and content[end : end + 1] == " ":
            end += 1
        elif before.endswith(" "):
            before = before[:-1]
        kept.append(before)
    return "".join([*kept, content[end:]])


def stand_in(message: Json) -> str:
    """Return a text for a message without words; empty where its files speak, or nothing does."""
    for sticker in map(as_map, as_list(message.get("sticker_items"))):
        return f"[sticker {_label(as_text(sticker.get('name')))}]".replace(" ]", "]")
    poll = as_map(message.get("poll"))
    if poll:
        question = _label(as_text(as_map(poll.get("question")).get("text")), 300)
        answers = [
            _label(as_text(as_map(as_map(answer).get("poll_media")).get("text")))
            for answer in as_list(poll.get("answers"))
        ]
        return f"[poll {question}: {' / '.join(answers)}]"
    return ""


def quote_of(message: Json, names: Names) -> Quote | None:
    """Return the message that this one answers."""
    reference = as_map(message.get("message_reference"))
    original = as_map(message.get("referenced_message"))
    identity = as_id(original.get("id"))
    if not identity or as_int(reference.get("type")) == _FORWARD:
        return None
    author = as_map(original.get("author"))
    text = text_of(original, names)
    return Quote(text, label_of(author), identity, own=as_id(author.get("id")) == names.me)


def forwarded_of(message: Json) -> Json:
    """Return the message inside a forward, else an empty one. Discord does not say whose it was."""
    if as_int(as_map(message.get("message_reference")).get("type")) != _FORWARD:
        return {}
    for snapshot in as_list(message.get("message_snapshots")):
        return as_map(as_map(snapshot).get("message"))
    return {}


def files_of(message: Json, channel: str, identity: str) -> tuple[Attachment, ...]:
    """Return the files of a message, by the ids under which they can be asked for again."""
    voice = (as_int(message.get("flags")) or 0) & _VOICE
    return tuple(
        _attachment(each, f"{channel}/{identity}/{as_id(each.get('id'))}", voice=bool(voice))
        for each in map(as_map, as_list(message.get("attachments")))
        if as_id(each.get("id"))
    )


def _attachment(item: Json, identity: str, *, voice: bool) -> Attachment:
    mime = one_line(as_text(item.get("content_type")).partition(";")[0], 127)
    size = as_int(item.get("size"))
    family = mime.partition("/")[0]
    kind = family if family in {"image", "audio", "video"} else "file"
    return Attachment(
        identity,
        "voice" if voice else kind,
        name=one_line(as_text(item.get("filename")), 255),
        mime=mime,
        size=size if size is not None and 0 <= size < 2**63 else None,
    )


def label_of(user: Json) -> str:
    """Return the name a person goes by. It is a label: anybody may take any name."""
    return one_line(as_text(user.get("global_name"))) or one_line(as_text(user.get("username")))


def _label(text: str, limit: int = 64) -> str:
    """Return a label that cannot end the brackets around it."""
    return one_line(text, limit).translate({ord("["): "(", ord("]"): ")"})
