"""What a message is sent as: blocks, and metadata by which it is found again. Pure.

Blocks are given always and in full: what an update leaves out may stay as it was.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Sequence
from typing import Any, Final

from dragoman import Button, Outbound
from dragoman_slack.dialect import SlackDialect, preview
from dragoman_slack.fields import Json, as_list, as_map, as_text
from dragoman_slack.interactions import ACTION

EVENT_TYPE: Final = "dragoman_delivery"
BUTTONS: Final = 25
"""How many a block of actions takes."""
_SPACE: Final = uuid.UUID("6f2b1c52-54a7-4d60-a1d5-2f0f0a8f6a3e")


def message_id(platform: str, delivery_id: str) -> str:
    """Return what names a message to Slack, the same on every attempt."""
    return str(uuid.uuid5(_SPACE, f"{platform}:{delivery_id}"))


def body_of(message: Outbound, dialect: SlackDialect) -> dict[str, Any]:
    """Return the parameters that say what a message shows."""
    text = message.text if message.plain else dialect.sent(message.text)
    block = _verbatim(text) if message.plain else {"type": "markdown", "text": text}
    blocks = [block, *actions(message.buttons)]
    short = preview(message.text, mentions=dialect.mentions and not message.plain)
    return {"text": short, "blocks": blocks, "metadata": metadata_of(message)}


def whispered(text: str, dialect: SlackDialect) -> dict[str, Any]:
    """Return the parameters of what one person sees: nobody looks for it again."""
    blocks = [{"type": "markdown", "text": dialect.sent(text)}]
    return {"text": preview(text, mentions=dialect.mentions), "blocks": blocks}


def actions(buttons: Sequence[Button]) -> list[dict[str, Any]]:
    """Return the block of buttons, if there are any."""
    if not buttons:
        return []
    elements = [_button(number, one) for number, one in enumerate(buttons[:BUTTONS])]
    return [{"type": "actions", "block_id": "dragoman", "elements": elements}]


def metadata_of(message: Outbound) -> dict[str, Any]:
    """Return what everybody in the workspace may read: which delivery it is, and a check sum."""
    payload = {"id": message.delivery_id, "sum": checksum(message)}
    return {"event_type": EVENT_TYPE, "event_payload": payload}


def checksum(message: Outbound) -> str:
    """Return what differs where a message shows something else."""
    said = (message.text, message.plain, *((one.label, one.data) for one in message.buttons))
    return hashlib.sha256(repr(said).encode("utf-8", "replace")).hexdigest()[:16]


def delivery_of(found: Json) -> tuple[str, str]:
    """Return the delivery that a message of ours was sent for, and its check sum; or nothing."""
    metadata = as_map(found.get("metadata"))
    if metadata.get("event_type") != EVENT_TYPE:
        return "", ""
    payload = as_map(metadata.get("event_payload"))
    return as_text(payload.get("id")), as_text(payload.get("sum"))


def shown_of(found: Json) -> str | None:
    """Return the text of a message that was sent as it is; what becomes of Markdown is not told."""
    for block in map(as_map, as_list(found.get("blocks"))):
        for section in map(as_map, as_list(block.get("elements"))):
            parts = list(map(as_map, as_list(section.get("elements"))))
            if parts and all(part.get("type") == "text" for part in parts):
                return "".join(as_text(part.get("text")) for part in parts)
    return None


def _verbatim(text: str) -> dict[str, Any]:
    """Return a block that shows a text as it is: no marks, no mentions and no links are read."""
    section = {"type": "rich_text_section", "elements": [{"type": "text", "text": text}]}
    return {"type": "rich_text", "elements": [section]}


def _button(number: int, button: Button) -> dict[str, Any]:
    element: dict[str, Any] = {
        "type": "button",
        "action_id": f"{ACTION}{number}",
        "text": {"type": "plain_text", "text": button.label[:75] or " "},
        "value": button.data,
    }
    return element | ({"style": button.style} if button.style else {})
