"""R9: whether blocks are such that Slack takes them, and what they say."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

from peers.slack_fake.errors import Json, SlackError
from peers.slack_fake.markdown import read
from peers.slack_fake.text import accept, called

MAX_BLOCKS: Final = 50
MAX_MARKDOWN: Final = 12_000
"""Characters of ``markdown_text``, and of all blocks of Markdown in one message together."""

_Problems = Iterator[tuple[str, str]]
"""Where something is wrong, as a JSON pointer below the block, and what."""


def parse(value: Any) -> list[Json]:
    """Return blocks from an argument that may be a string of JSON."""
    found = value
    if isinstance(value, str):
        try:
            found = json.loads(value)
        except ValueError:
            raise SlackError("invalid_blocks_format") from None
    if not isinstance(found, list) or not all(isinstance(block, dict) for block in found):
        raise SlackError("invalid_blocks_format")
    return found


def accept_blocks(blocks: list[Json], *, first: int = 1) -> list[Json]:
    """Return blocks as Slack keeps them, with ids, or refuse them with every reason."""
    problems = [f"{what} [json-pointer:/blocks{where}]" for where, what in _check(blocks)]
    if problems:
        messages = [f"[ERROR] {problem}" for problem in problems]
        raise SlackError(
            "invalid_blocks", errors=problems, response_metadata={"messages": messages}
        )
    if sum(len(b["text"]) for b in blocks if b["type"] == "markdown") > MAX_MARKDOWN:
        raise SlackError("msg_blocks_too_long")
    return [kept for n, block in enumerate(blocks, first) for kept in _kept(block, n)]


def buttons(blocks: list[Json]) -> list[Json]:
    """Return the elements that people can press, each with its block's id."""
    return [
        {**element, "block_id": block.get("block_id", "")}
        for block in blocks
        if block["type"] in {"actions", "context_actions", "section"}
        for element in [*block.get("elements", []), *_only(block.get("accessory"))]
        if element.get("action_id")
    ]


def mentioned(value: Any) -> set[str]:
    """Return whom a structure of blocks calls."""
    if isinstance(value, list):
        return set().union(*(mentioned(one) for one in value))
    if not isinstance(value, dict):
        return set()
    if value.get("type") == "mrkdwn":
        return called(str(value.get("text", "")))
    if value.get("type") in {"user", "broadcast"}:
        return {str(value.get("user_id") or value.get("range"))}
    return set().union(*(mentioned(one) for one in value.values()))


def summary(blocks: list[Json]) -> str:
    """Return the text that Slack builds for blocks that came without one."""
    found = []
    for block in blocks:
        if block["type"] in {"section", "header"} and block.get("text"):
            found.append(accept(block["text"]["text"]))
        elif block["type"] == "markdown":
            found.append(read(block["text"]).text)
        elif block["type"] == "rich_text":
            found.append(accept(words(block)))
    return " ".join(found) or "This message contains interactive elements."


def words(value: Any) -> str:
    """Return all the words in a structure of rich text, in order."""
    if isinstance(value, list):
        return "".join(words(one) for one in value)
    if not isinstance(value, dict):
        return ""
    if isinstance(value.get("text"), str) and "elements" not in value:
        return str(value["text"])
    if value.get("type") == "user":
        return f"<@{value['user_id']}>"
    if value.get("type") == "broadcast":
        return f"<!{value['range']}>"
    return words(value.get("elements") or value.get("text")) or str(value.get("url", ""))


def _only(one: Any) -> list[Any]:
    return [one] if one else []


def _kept(block: Json, number: int) -> list[Json]:
    """A block of Markdown becomes rich text, and keeps no id of its own."""
    if block["type"] == "markdown":
        return [{**found, "block_id": f"b{number}"} for found in read(block["text"]).blocks]
    elements = [
        {"action_id": f"a{number}.{n}", **one} if _interactive(one) else one
        for n, one in enumerate(block.get("elements", []), 1)
    ]
    more = {"elements": elements} if elements else {}
    return [{"block_id": f"b{number}", **block, **more}]


def _interactive(element: Any) -> bool:
    kinds = ("button", "_select", "overflow", "datepicker", "checkboxes", "radio_buttons")
    return isinstance(element, dict) and str(element.get("type", "")).endswith(kinds)


def _check(blocks: list[Json]) -> _Problems:
    if len(blocks) > MAX_BLOCKS:
        yield "", f"no more than {MAX_BLOCKS} items allowed"
    ids = [block["block_id"] for block in blocks if block.get("block_id")]
    if len(set(ids)) < len(ids):
        yield "", "block_id must be unique"
    for number, block in enumerate(blocks):
        kind = block.get("type")
        check = _CHECKS.get(str(kind))
        if check is None:
            yield f"/{number}/type", f"unsupported type: {kind}"
            continue
        yield from _length(f"/{number}/block_id", block.get("block_id", "x"), 255)
        for where, what in check(block):
            yield f"/{number}{where}", what


def _length(where: str, value: Any, most: int) -> _Problems:
    if not isinstance(value, str):
        yield where, "must be a string"
    elif not value:
        yield where, "must be more than 0 characters"
    elif len(value) > most:
        yield where, f"must be less than {most + 1} characters"


def _words(where: str, value: Any, most: int, kinds: tuple[str, ...]) -> _Problems:
    """Check a text object."""
    if not isinstance(value, dict) or value.get("type") not in kinds:
        yield where, "failed to match all allowed schemas"
    else:
        yield from _length(f"{where}/text", value.get("text"), most)


_ANY: Final = ("mrkdwn", "plain_text")


def _section(block: Json) -> _Problems:
    fields = block.get("fields") or []
    if block.get("text") is None and not fields:
        yield "", "missing required field: text"
    if block.get("text") is not None:
        yield from _words("/text", block["text"], 3000, _ANY)
    if len(fields) > 10:
        yield "/fields", "no more than 10 items allowed"
    for number, one in enumerate(fields):
        yield from _words(f"/fields/{number}", one, 2000, _ANY)
    if block.get("accessory"):
        yield from _element("/accessory", block["accessory"])


def _header(block: Json) -> _Problems:
    yield from _words("/text", block.get("text"), 150, ("plain_text",))


def _markdown(block: Json) -> _Problems:
    yield from _length("/text", block.get("text"), MAX_MARKDOWN)


def _context(block: Json) -> _Problems:
    yield from _count(block, 10)
    for number, one in enumerate(block.get("elements") or []):
        if isinstance(one, dict) and one.get("type") != "image":
            yield from _words(f"/elements/{number}", one, 3000, _ANY)


def _actions(block: Json) -> _Problems:
    yield from _count(block, 25)
    for number, one in enumerate(block.get("elements") or []):
        yield from _element(f"/elements/{number}", one)


def _count(block: Json, most: int) -> _Problems:
    elements = block.get("elements")
    if not isinstance(elements, list) or not elements:
        yield "/elements", "no fewer than 1 items allowed"
    elif len(elements) > most:
        yield "/elements", f"no more than {most} items allowed"


def _element(where: str, element: Any) -> _Problems:
    if not isinstance(element, dict) or not element.get("type"):
        yield where, "failed to match all allowed schemas"
        return
    if "action_id" in element:
        yield from _length(f"{where}/action_id", element["action_id"], 255)
    if element["type"] == "button":
        yield from _words(f"{where}/text", element.get("text"), 75, ("plain_text",))
        if "value" in element:
            yield from _length(f"{where}/value", element["value"], 2000)
        if element.get("style") not in {None, "primary", "danger"}:
            yield f"{where}/style", "failed to match all allowed schemas"


def _image(block: Json) -> _Problems:
    yield from _length("/alt_text", block.get("alt_text"), 2000)
    if "slack_file" not in block:
        yield from _length("/image_url", block.get("image_url"), 3000)


def _rich(block: Json) -> _Problems:
    if not isinstance(block.get("elements"), list):
        yield "/elements", "must provide an array"


def _anything(block: Json) -> _Problems:
    yield from ()


_CHECKS: Final[dict[str, Callable[[Json], _Problems]]] = {
    "section": _section,
    "header": _header,
    "markdown": _markdown,
    "context": _context,
    "actions": _actions,
    "context_actions": _actions,
    "image": _image,
    "rich_text": _rich,
    **dict.fromkeys(
        "alert card carousel container divider file input plan table task_card video".split(),
        _anything,
    ),
}
