"""What a channel's history says: what was missed, and whether a message of ours is shown."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from dragoman import Address, Outbound
from dragoman_discord.fields import Json, as_id, as_list, as_map, as_text
from dragoman_discord.rest import Rest

PAGE: Final = 100
"""Messages of one answer, and so how many of a channel are made up for."""
SKEW: Final = timedelta(seconds=10)
"""By how much this machine's clock may be ahead of Discord's."""


async def after(
    rest: Rest, channel: str, message: str, address: Address | None = None
) -> Sequence[Json]:
    """Return the messages of a channel that follow one, oldest first, one page of them."""
    answer = await rest.call(
        "GET /channels/{channel}/messages",
        channel=channel,
        address=address,
        query={"after": message, "limit": str(PAGE)},
    )
    found = [row for row in map(as_map, as_list(answer)) if as_id(row.get("id"))]
    return sorted(found, key=lambda row: int(row["id"]))


def find(rows: Sequence[Json], me: str, text: str, message: Outbound) -> Json | None:
    """Return the first message of ours that says a text, or shows a file."""
    for row in rows:
        ours = as_id(as_map(row.get("author")).get("id")) == me
        files = [as_map(each) for each in as_list(row.get("attachments"))]
        same = as_text(row.get("content")).strip() == text.strip()
        if ours and same and _same_file(files, message):
            return row
    return None


def _same_file(files: Sequence[Json], message: Outbound) -> bool:
    if message.file is None:
        return not files
    return any(each.get("size") == message.file.size for each in files)
