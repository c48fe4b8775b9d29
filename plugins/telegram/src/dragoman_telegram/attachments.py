"""The files that came with a message: what Telegram says of them, without fetching any."""

from __future__ import annotations

from typing import Any, Final

from dragoman import Attachment
from dragoman_telegram.fields import Json, as_int, as_list, as_map, as_text, one_line

_KINDS: Final = ("animation", "audio", "document", "video", "video_note", "voice", "sticker")


def attachments_of(message: Json) -> tuple[Attachment, ...]:
    """Return the files of a message: one, or none. An album's files come one per message."""
    photo = _largest(message.get("photo"))
    found = [("photo", photo)] if photo else []
    found += [(kind, as_map(message.get(kind))) for kind in _KINDS if kind in message]
    for kind, item in found:  # the first is the one meant: an animation comes as a document too
        identity = as_text(item.get("file_id"))
        if identity:
            return (_attachment(kind, identity, item),)
    return ()


def _attachment(kind: str, identity: str, item: Json) -> Attachment:
    size = as_int(item.get("file_size"))
    return Attachment(
        identity,
        kind,
        name=one_line(as_text(item.get("emoji" if kind == "sticker" else "file_name")), 255),
        mime=one_line(as_text(item.get("mime_type")), 127),
        size=size if size is not None and 0 <= size < 2**63 else None,
    )


def _largest(sizes: Any) -> Json:
    """Return the largest of a photo's sizes; each is a file of its own."""
    known = [size for size in map(as_map, as_list(sizes)) if as_text(size.get("file_id"))]
    return max(known, key=_area, default={})


def _area(size: Json) -> int:
    return (as_int(size.get("width")) or 0) * (as_int(size.get("height")) or 0)
