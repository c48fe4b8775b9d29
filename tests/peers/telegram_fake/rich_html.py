"""R27: rich messages that are written in HTML."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import attrs

from peers.telegram_fake.errors import BotError, Json
from peers.telegram_fake.links import check_link
from peers.telegram_fake.rich_tree import (
    BLOCK_TAGS,
    HEADINGS,
    MEDIA_TAGS,
    Node,
    characters,
    first,
    parse_tree,
)

_SILENT: Final = frozenset({"script", "style", "input"})
_STYLES: Final = {
    "b": "bold",
    "strong": "bold",
    "i": "italic",
    "em": "italic",
    "u": "underline",
    "ins": "underline",
    "s": "strikethrough",
    "strike": "strikethrough",
    "del": "strikethrough",
    "code": "code",
    "mark": "marked",
    "sub": "subscript",
    "sup": "superscript",
    "tg-spoiler": "spoiler",
}
Source = Callable[[str, str], Json | None]
"""Finds the block for a medium: by its kind and where it is; ``None`` where there is none."""


def parse_rich_html(source: str, media: Source) -> list[Json]:
    """Return the blocks that HTML describes."""
    return _Reader(media).blocks(parse_tree(source))


@attrs.frozen
class _Reader:
    media: Source

    def blocks(self, nodes: list[Node | str]) -> list[Json]:
        """Return blocks; what stands between them becomes paragraphs."""
        found: list[Json] = []
        loose: list[Node | str] = []
        for node in [*nodes, Node("hr")]:
            if isinstance(node, str) or node.tag not in BLOCK_TAGS:
                loose.append(node)
                continue
            text = rich_text(loose)
            if text:
                found.append({"type": "paragraph", "text": text})
            loose = []
            found += self.block(node)
        return found[:-1]

    def block(self, node: Node) -> list[Json]:
        tag, inside = node.tag, node.children
        if tag in {"p", "div"}:
            return self.blocks(inside)
        if tag in HEADINGS:
            text = rich_text(inside)
            return [{"type": "heading", "text": text, "size": int(tag[1])}] if text else []
        if tag in MEDIA_TAGS or tag == "figure":
            return self.medium(node)
        if tag in {"ul", "ol"}:
            return [{"type": "list", "items": self.items(node)}]
        if tag == "details":
            return [self.details(node)]
        if tag == "blockquote" and "collapsed" not in node.attributes:
            content = [one for one in inside if isinstance(one, str) or one.tag != "cite"]
            return [{"type": "blockquote", "blocks": self.blocks(content)} | _credit(node)]
        if tag in {"tg-collage", "tg-slideshow"}:
            return [{"type": tag.removeprefix("tg-"), "blocks": self.blocks(inside)}]
        return [_plain_block(node)]

    def items(self, node: Node) -> list[Json]:
        number = int(node.attributes.get("start") or 1)
        found = []
        for offset, item in enumerate(node.all("li")):
            one: Json = {"label": "•", "blocks": self.blocks(item.children)}
            if node.tag == "ol":
                one |= {"label": f"{number + offset}.", "value": number + offset, "type": "1"}
            box = first(item, "input")
            if box is not None:
                one["has_checkbox"] = True
                one |= {"is_checked": True} if "checked" in box.attributes else {}
            found.append(one)
        return found

    def details(self, node: Node) -> Json:
        summary = first(node, "summary")
        content = [one for one in node.children if one is not summary]
        found: Json = {
            "type": "details",
            "summary": rich_text(summary.children) if summary else "",
            "blocks": self.blocks(content),
        }
        return found | ({"is_open": True} if "open" in node.attributes else {})

    def medium(self, node: Node) -> list[Json]:
        inner = next((n for n in node.all(*MEDIA_TAGS)), None) if node.tag == "figure" else node
        if inner is None:
            return self.blocks(node.children)
        found = self.media(MEDIA_TAGS[inner.tag], inner.attributes.get("src", ""))
        caption = first(node, "figcaption")
        if found is not None and caption is not None:
            found["caption"] = {"text": rich_text(caption.children)}
        return [] if found is None else [found]


def _plain_block(node: Node) -> Json:
    """Return a block that has no other blocks inside."""
    tag, of = node.tag, node.attributes
    match tag:
        case "pre":
            return _preformatted(node)
        case "hr":
            return {"type": "divider"}
        case "table":
            return _table(node)
        case "tg-math-block":
            return {"type": "mathematical_expression", "expression": characters(node).strip()}
        case "tg-map":
            place = {"latitude": float(of["lat"]), "longitude": float(of["long"])}
            zoom = int(of.get("zoom") or 15)
            return {"type": "map", "location": place, "zoom": zoom, "width": 600, "height": 300}
        case "tg-button-row":
            buttons = [_button(one) for one in node.all("tg-button")]
            return {"type": "buttons", "buttons": buttons}
        case "blockquote" | "aside":
            kind = "pullquote" if tag == "aside" else "expandable_blockquote"
            content = [one for one in node.children if isinstance(one, str) or one.tag != "cite"]
            return {"type": kind, "text": rich_text(content)} | _credit(node)
    return {"type": tag.removeprefix("tg-"), "text": rich_text(node.children)}


def _preformatted(node: Node) -> Json:
    found: Json = {"type": "pre", "text": characters(node).removesuffix("\n")}
    code = first(node, "code")
    language = (code.attributes if code else {}).get("class", "").removeprefix("language-")
    return found | ({"language": language} if language else {})


def _table(node: Node) -> Json:
    rows = [[_cell(cell) for cell in row.all("td", "th")] for row in node.all("tr")]
    found: Json = {"type": "table", "cells": rows}
    caption = first(node, "caption")
    return found | ({"caption": rich_text(caption.children)} if caption else {})


def _cell(node: Node) -> Json:
    styled = re.search(r"text-align:\s*(\w+)", node.attributes.get("style", ""))
    align = node.attributes.get("align") or (styled[1] if styled else "left")
    found: Json = {"align": align, "valign": node.attributes.get("valign") or "middle"}
    found |= {"is_header": True} if node.tag == "th" else {}
    found |= {n: int(node.attributes[n]) for n in ("colspan", "rowspan") if node.attributes.get(n)}
    text = rich_text(node.children)
    return found | ({"text": text} if text else {})


def _credit(node: Node) -> Json:
    cite = first(node, "cite")
    return {"credit": rich_text(cite.children)} if cite else {}


def _button(node: Node) -> Json:
    of, kind = node.attributes, node.attributes.get("type", "disabled")
    found: Json = {"text": rich_text(node.children)}
    found |= {"style": of["style"]} if of.get("style") else {}
    values: Json = {
        "url": of.get("url", ""),
        "callback_data": of.get("data", ""),
        "copy_text": {"text": of.get("text", "")},
        "disabled": {},
    }
    return found | {kind: values.get(kind, of.get("query", ""))}


def rich_text(nodes: list[Node | str]) -> Any:
    """Return a rich text without blanks around it; ``""`` where there is none."""
    pieces = _pieces(nodes)
    while pieces and isinstance(pieces[0], str) and not (start := pieces[0].lstrip()):
        pieces.pop(0)
    if pieces and isinstance(pieces[0], str):
        pieces[0] = start
    while pieces and isinstance(pieces[-1], str) and not pieces[-1].strip():
        pieces.pop()
    if pieces and isinstance(pieces[-1], str):
        pieces[-1] = pieces[-1].rstrip()
    return (pieces[0] if len(pieces) == 1 else pieces) if pieces else ""


def _pieces(nodes: list[Node | str]) -> list[Any]:
    found: list[Any] = []
    for node in nodes:
        for piece in _inline(node):
            if isinstance(piece, str) and found and isinstance(found[-1], str):
                found[-1] += piece
            elif piece != "":
                found.append(piece)
    return found


def _inline(node: Node | str) -> list[Any]:
    if isinstance(node, str):
        return [re.sub(r"\s+", " ", node)]
    if node.tag in _SILENT:
        return []
    if node.tag == "br":
        return ["\n"]
    inside = _pieces(node.children)
    if node.tag in _STYLES and not inside:
        return []
    text = inside[0] if len(inside) == 1 else inside
    if node.tag in _STYLES:
        return [{"type": _STYLES[node.tag], "text": text}]
    special = _special(node, text)
    return inside if special is None else special


def _special(node: Node, text: Any) -> list[Any] | None:
    """Return what an element with a meaning of its own stands for."""
    of = node.attributes
    match node.tag:
        case "a":
            return [{"type": "anchor", "name": of["name"]}] if "name" in of else _link(of, text)
        case "tg-emoji":
            known = {"custom_emoji_id": of.get("emoji-id", ""), "alternative_text": text or ""}
            return [{"type": "custom_emoji", **known}]
        case "tg-math":
            return [{"type": "mathematical_expression", "expression": characters(node)}]
        case "tg-time":
            when = {"unix_time": int(of["unix"]), "date_time_format": of.get("format", "")}
            return [{"type": "date_time", "text": text, **when}]
        case "tg-button":
            return [{"type": "button", "button": _button(node)}]
    return None


def _link(of: dict[str, str], text: Any) -> list[Any]:
    href = of.get("href", "")
    if href.startswith("#"):
        return [{"type": "anchor_link", "text": text, "anchor_name": href[1:]}]
    if href.startswith("mailto:"):
        return [{"type": "email_address", "text": text, "email_address": href[7:]}]
    if href.startswith("tel:"):
        return [{"type": "phone_number", "text": text, "phone_number": href[4:]}]
    number = parse_qs(urlsplit(href).query).get("id", [""])[0]
    if href.startswith("tg://user?") and number.isdecimal():
        user = {"id": int(number), "is_bot": False, "first_name": f"Person {number}"}
        return [{"type": "text_mention", "text": text, "user": user}]
    try:
        check_link(href)
    except BotError:
        return text if isinstance(text, list) else [text]
    return [{"type": "url", "text": text, "url": href}]
