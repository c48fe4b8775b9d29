"""The files that came with a message: what Slack says of them, without fetching any."""

from __future__ import annotations

from dragoman import Attachment
from dragoman_slack.fields import Json, as_int, as_list, as_map, as_text, one_line


def attachments_of(message: Json) -> tuple[Attachment, ...]:
    """Return the files of a message that Slack has, in order."""
    files = map(as_map, as_list(message.get("files")))
    return tuple(_attachment(file) for file in files if _kept(file))


def notes_of(message: Json) -> tuple[str, ...]:
    """Return a note for each file that is not at Slack, or not any more."""
    files = map(as_map, as_list(message.get("files")))
    return tuple(_note(file) for file in files if not _kept(file))


def is_external(file: Json) -> bool:
    """Whether a file lies at another service, to which Slack only links."""
    return file.get("is_external") is True or as_text(file.get("mode")) == "external"


def _kept(file: Json) -> bool:
    gone = as_text(file.get("mode")) in {"tombstone", "hidden_by_limit"}
    return bool(as_text(file.get("id"))) and not gone and not is_external(file)


def _note(file: Json) -> str:
    name = one_line(as_text(file.get("title")) or as_text(file.get("name")), 255)
    if is_external(file):
        url = one_line(as_text(file.get("external_url")) or as_text(file.get("url_private")), 500)
        return f"[a file at another service: {' '.join(filter(None, (name, url)))}]"
    return f"[a file that is not there any more: {name}]" if name else "[a file that was deleted]"


def _attachment(file: Json) -> Attachment:
    size, mime = as_int(file.get("size")), one_line(as_text(file.get("mimetype")), 127)
    return Attachment(
        as_text(file["id"]),
        _kind(file, mime),
        name=one_line(as_text(file.get("name")) or as_text(file.get("title")), 255),
        mime=mime,
        size=size if size is not None and 0 <= size < 2**63 else None,
    )


def _kind(file: Json, mime: str) -> str:
    if as_text(file.get("subtype")) == "slack_audio":
        return "voice"
    family = mime.partition("/")[0]
    return {"image": "photo", "audio": "audio", "video": "video"}.get(family, "file")
