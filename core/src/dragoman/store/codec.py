"""Values of the contract as the columns that hold them, and back."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final

import attrs

from dragoman.messages import Address, Attachment, Inbound, Lane, Place, Sender


def dump(value: Any) -> str:
    """Return compact JSON, all ASCII."""
    return json.dumps(value, separators=(",", ":"))


def storable(text: str) -> str:
    """Return ``text`` as a column can hold it.

    SQLite's JSON ends a text at a NUL, and keeps half a surrogate pair as bytes that nobody can
    read back: one such row would make whole queries fail. Both become U+FFFD.
    """
    if text.isascii() and "\0" not in text:
        return text
    return _UNSTORABLE.sub("\ufffd", text)


_UNSTORABLE: Final = re.compile("[\0\ud800-\udfff]")


def dump_rows(rows: Iterable[Sequence[Any]]) -> str:
    """Return rows of columns as one JSON array, all texts `storable`."""
    return dump(
        [[storable(value) if isinstance(value, str) else value for value in row] for row in rows]
    )


def lane_column(lane: Lane) -> str:
    """Return the column text of a lane: injective, and never parsed."""
    return dump(lane)


def address_to_json(address: Address) -> dict[str, str]:
    """Return an address as JSON data."""
    return {
        "platform": address.platform,
        "workspace": address.workspace,
        "channel": address.channel,
        "thread": address.thread,
        "place": address.place.value,
    }


def address_from_json(data: dict[str, str]) -> Address:
    """Return the address that `address_to_json` wrote."""
    return Address(
        platform=data["platform"],
        channel=data["channel"],
        thread=data["thread"],
        workspace=data["workspace"],
        place=Place(data["place"]),
    )


def event_to_json(event: Inbound) -> str:
    """Return an event as the text of its column."""
    return dump(
        {
            "native_id": event.native_id,
            "address": address_to_json(event.address),
            "sender": {
                "id": event.sender.id,
                "name": event.sender.name,
                "bot": event.sender.bot,
            },
            "text": event.text,
            "sent_at": event.sent_at.isoformat(),
            "message_id": event.message_id,
            "addressed": event.addressed,
            "attachments": [attrs.asdict(one) for one in event.attachments],
            "album": event.album,
            "continues": event.continues,
            "edits": event.edits,
        }
    )


def event_from_json(text: str) -> Inbound:
    """Return the event that `event_to_json` wrote."""
    data = json.loads(text)
    return Inbound(
        native_id=data["native_id"],
        address=address_from_json(data["address"]),
        sender=Sender(**data["sender"]),
        text=data["text"],
        sent_at=datetime.fromisoformat(data["sent_at"]),
        message_id=data["message_id"],
        addressed=data["addressed"],
        attachments=tuple(Attachment(**one) for one in data.get("attachments", ())),
        album=data.get("album", ""),
        continues=data.get("continues", False),
        edits=data.get("edits", False),
    )


def bound(sql: str, parameters: Sequence[Any]) -> Sequence[Any] | dict[str, Any]:
    """Return parameters as the database module wants them for ``sql``.

    Numbered placeholders (``?1``) count as named: newer Pythons take a mapping for them only.
    """
    if "?1" in sql:
        return {str(number): value for number, value in enumerate(parameters, 1)}
    return parameters
