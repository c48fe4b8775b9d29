"""R27: rich messages: reading what a bot wrote, and sending it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import attrs

from peers.telegram_fake.checks import attached, open_chat
from peers.telegram_fake.errors import Json, bad, refusal
from peers.telegram_fake.files import Upload
from peers.telegram_fake.journal import Call
from peers.telegram_fake.rich_html import parse_rich_html
from peers.telegram_fake.rich_markdown import parse_rich_markdown
from peers.telegram_fake.rich_shapes import MEDIA, detect, lines, read_blocks
from peers.telegram_fake.rich_size import check_size
from peers.telegram_fake.sending import place, put
from peers.telegram_fake.text import Formatted
from peers.telegram_fake.world import World

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_WAYS: Final = ("markdown", "html", "blocks")


def send_rich_message(world: World, call: Call) -> Json:
    check_known(world)
    content = read_rich(world, call)
    chat = open_chat(world, call.params)
    more = place(world, chat, call.params)
    world.gate.send(chat)
    return put(world, chat, body=rich_body(content), rich=content, **more)


def check_known(world: World) -> None:
    """Refuse what a server does that is too old for rich messages, or that wants none."""
    if world.rich == "unknown":
        raise refusal(404, "method not found")
    if world.rich == "refused":
        raise bad("rich messages are not supported")


def rich_body(content: Json) -> Formatted:
    """Return what a rich message says, as a text."""
    return Formatted("\n".join(line for line in lines(content["blocks"]) if line))


def read_rich(world: World, call: Call, *, draft: bool = False) -> Json:
    """Return a message's ``rich_message``; this comes before the chat is looked at."""
    given = call.params.get("rich_message")
    if not isinstance(given, dict):
        raise bad("can't parse InputRichMessage: expected an Object")
    ways = [way for way in _WAYS if given.get(way) is not None]
    if world.rich == "markup" and ways == ["blocks"]:
        raise bad("rich message must be non-empty")
    if len(ways) > 1:
        raise bad("exactly one of markdown, html and blocks is to be used in a rich message")
    shelf = _Shelf(world, call.files, _named(given.get("media") or []), draft)
    if ways == ["blocks"]:
        blocks = read_blocks(given["blocks"], shelf.block, strict=world.strict)
    else:
        blocks = _read_markup(ways[0] if ways else "markdown", given, shelf)
    if not given.get("skip_entity_detection"):
        blocks = detect(blocks)
    check_size(blocks, draft=draft)
    return {"blocks": blocks} | ({"is_rtl": True} if given.get("is_rtl") else {})


def _read_markup(way: str, given: Json, shelf: _Shelf) -> list[Json]:
    source = given.get(way) or ""
    if not isinstance(source, str) or not source.strip():
        raise bad(f"RICH_MESSAGE_{way.upper()}_INVALID")
    parse = parse_rich_html if way == "html" else parse_rich_markdown
    try:
        return parse(source, shelf.find)
    except (KeyError, ValueError):  # an attribute that is missing or no number
        raise bad(f"RICH_MESSAGE_{way.upper()}_INVALID") from None


def _named(media: Any) -> dict[str, Json]:
    found = {}
    for item in media:
        name, medium = item.get("id"), item.get("media")
        if not isinstance(name, str) or not _NAME.fullmatch(name) or not isinstance(medium, dict):
            raise bad("RICH_MESSAGE_MEDIA_INVALID")
        found[name] = medium
    return found


@attrs.frozen
class _Shelf:
    """The media that a rich message may show."""

    _world: World
    _files: Mapping[str, Upload]
    _named: Mapping[str, Json]
    _draft: bool

    def find(self, kind: str, source: str) -> Json | None:
        """Return the block for a link in markup: to a medium by its name, or to the web."""
        url = urlsplit(source)
        if url.scheme == "tg":
            name = parse_qs(url.query).get("id", [""])[0]
            if name not in self._named:
                raise bad("RICH_MESSAGE_MEDIA_INVALID")
            medium = self._named[name]
            return self.block(str(medium.get("type")), medium)
        if url.scheme not in {"http", "https"}:
            return None
        return self.block(kind, {"media": source})

    def block(self, kind: str, medium: Json) -> Json:
        """Return a block for a medium as a method got it: uploaded, known, or somewhere on the web."""
        source = medium.get("media") if isinstance(medium, dict) else None
        if kind not in MEDIA or not isinstance(source, str):
            raise bad("RICH_MESSAGE_MEDIA_INVALID")
        content: Upload | str
        if source.startswith(("http://", "https://")):
            content = Upload(source.rpartition("/")[2] or "file", source.encode())
        else:
            content = attached(source, self._files)
        if self._draft and isinstance(content, Upload) and source.startswith("attach://"):
            raise bad("RICH_MESSAGE_MEDIA_INVALID")
        of = "voice" if kind == "voice_note" else kind
        shown = self._world.files.medium(of, content)[of]
        found: Json = {"type": kind, kind: shown}
        return found | ({"has_spoiler": True} if medium.get("has_spoiler") else {})
