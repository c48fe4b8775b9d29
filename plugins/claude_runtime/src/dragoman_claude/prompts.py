"""What people have said, as the prompt of a turn: their words, and the files a model can look at."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

import attrs
from anyio import to_thread

from dragoman import Attachment, FetchedFile, FileUnavailable, TurnInput
from dragoman.runtimes import told, well_formed

Block: TypeAlias = dict[str, Any]
"""A content block, in the shape of the model service."""

MAX_IMAGE: Final = 5_000_000
MAX_PDF: Final = 10_000_000
MAX_FILES: Final = 20_000_000
"""Bytes in one prompt. The program hands the prompt back in one line, which it must have room for
(`max_buffer_size`), and the model service takes 32 MB."""
MAX_SHOWN: Final = 20
"""Pictures and PDFs in one prompt."""
MAX_TEXT: Final = 20_000
"""Characters of text files in one prompt."""

_NAMESPACE: Final = uuid.UUID("6f6d1c5e-6d5c-4c0b-9d0e-0d8f5f1f7a11")
_TEXTS: Final = ("json", "xml", "yaml", "toml", "csv", "javascript", "sql", "x-sh", "x-python")
_SUFFIXES: Final = frozenset(
    [
        ".txt",
        ".md",
        ".csv",
        ".tsv",
        ".json",
        ".yaml",
        ".yml",
        ".toml",
        ".xml",
        ".html",
        ".css",
        ".js",
        ".ts",
        ".py",
        ".sh",
        ".sql",
        ".log",
        ".ini",
        ".cfg",
        ".rst",
        ".c",
        ".h",
        ".go",
        ".rs",
        ".java",
        ".rb",
        ".diff",
        ".patch",
    ]
)


class Files(Protocol):
    """What of a `dragoman.TurnHost` is needed to look at files."""

    async def fetch(self, reference: str) -> FetchedFile:
        """Get a file that came with a message."""
        ...

    async def read(self, reference: str, limit: int = MAX_TEXT) -> str:
        """Return a file as text."""
        ...


@attrs.define(eq=False)
class Room:
    """What still fits into a prompt: files, their bytes, characters of text files."""

    shown: int = MAX_SHOWN
    bytes: int = MAX_FILES
    characters: int = MAX_TEXT


def prompt_id(turn_id: str, attempt: int) -> str:
    """Return the uuid of a turn's prompt: another attempt is another prompt.

    The program skips a prompt whose uuid it has seen, without a word.
    """
    return str(uuid.uuid5(_NAMESPACE, f"{turn_id}/{attempt}"))


async def prompt(
    identity: str,
    inputs: Sequence[TurnInput],
    files: Files,
    earlier: Sequence[str] = (),
    room: Room | None = None,
) -> dict[str, Any]:
    """Return a turn's prompt as the SDK sends it.

    ``earlier`` are the words of messages that no prompt has brought yet, because a crash came
    first. Each message is a text block, and behind it come its files.
    """
    room = room or Room()
    content: list[Block] = [_text(well_formed(one)) for one in earlier]
    for message in inputs:
        said, shown = [told(message)], []
        for reference, attachment in message.files:
            try:
                shown += await _looked_at(reference, attachment, files, room)
            except (FileUnavailable, OSError) as error:
                why = error if isinstance(error, FileUnavailable) else "it is not there any more"
                said.append(f"[{reference} cannot be shown: {why}]")
        content += [_text("\n".join(said)), *shown]
    return {
        "type": "user",
        "message": {"role": "user", "content": content},
        "parent_tool_use_id": None,
        "uuid": identity,
    }


async def _looked_at(
    reference: str, attachment: Attachment, files: Files, room: Room
) -> list[Block]:
    """Return what a model is shown of a file; raises where that is less than it could expect.

    What is neither a picture nor a PDF nor text stays the line that the message has of it.
    """
    if attachment.missing or not _worth_fetching(attachment):
        return []
    if _says_text(attachment):
        block: Block | None = await _as_text(reference, files, room)
    else:
        block = await _as_bytes(reference, attachment, files, room)
    return [] if block is None else [_text(f"[{reference}:]"), block]


async def _as_text(reference: str, files: Files, room: Room) -> Block:
    if room.characters <= 0:
        raise FileUnavailable("too much text came at once")
    text = well_formed(await files.read(reference, room.characters))
    room.characters -= len(text)
    return _text(text if text.strip() else "[there is no text in it]")


async def _as_bytes(
    reference: str, attachment: Attachment, files: Files, room: Room
) -> Block | None:
    if room.shown <= 0:
        raise FileUnavailable("too many files came at once")
    if (attachment.size or 0) > max(MAX_IMAGE, MAX_PDF):
        raise FileUnavailable("it is too large")
    found = await files.fetch(reference)
    kind = _kind(await to_thread.run_sync(_head, found.path))
    if kind is None:
        return None
    if found.size > (MAX_PDF if kind == "application/pdf" else MAX_IMAGE):
        raise FileUnavailable("it is too large")
    if found.size > room.bytes:
        raise FileUnavailable("too much came at once")
    data = await to_thread.run_sync(_encoded, found.path)
    room.shown -= 1
    room.bytes -= found.size
    source = {"type": "base64", "media_type": kind, "data": data}
    return {"type": "document" if kind == "application/pdf" else "image", "source": source}


def _worth_fetching(attachment: Attachment) -> bool:
    mime, name = attachment.mime.lower(), attachment.name.lower()
    picture = mime.startswith("image/") or attachment.kind in ("photo", "image")
    pdf = mime == "application/pdf" or name.endswith(".pdf")
    return picture or pdf or _says_text(attachment)


def _says_text(attachment: Attachment) -> bool:
    kind, _, subtype = attachment.mime.lower().partition(";")[0].partition("/")
    return (
        kind == "text"
        or (kind == "application" and subtype.removeprefix("x-").split("+")[-1] in _TEXTS)
        or Path(attachment.name.lower()).suffix in _SUFFIXES
    )


def _kind(head: bytes) -> str | None:
    """Return what a file is by its first bytes: what its sender says may be wrong."""
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    return "application/pdf" if head.startswith(b"%PDF-") else None


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(16)


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def _text(text: str) -> Block:
    return {"type": "text", "text": text}
