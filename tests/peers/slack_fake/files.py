"""R18: files that people and the app have sent, and the way of an upload in three steps."""

from __future__ import annotations

import mimetypes
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import quote

import attrs

from peers.slack_fake.errors import Json

if TYPE_CHECKING:
    from peers.slack_fake.world import World

MAX_UPLOAD: Final = 1 << 30
Mode = Literal["hosted", "snippet", "external", "tombstone"]


@attrs.define(eq=False)
class File:
    """A file, or what stands for one that is elsewhere or gone."""

    id: str
    name: str
    user: str
    created: float
    size: int
    """As it was announced; the content has to have it."""
    content: bytes | None = attrs.field(default=None, repr=False)
    title: str = ""
    mode: Mode = "hosted"
    media_type: str = ""
    complete: bool = False
    external_url: str = ""
    shares: dict[str, list[str]] = attrs.field(factory=dict)
    """The ``ts`` of the messages that show it, by channel."""


@attrs.define(eq=False)
class FileStore:
    """Every file under its id."""

    _files: dict[str, File] = attrs.field(factory=dict)

    def add(self, file: File) -> File:
        file.media_type = file.media_type or _media_type(file.name)
        self._files[file.id] = file
        return file

    def get(self, file_id: Any) -> File | None:
        return self._files.get(str(file_id))

    def content(self, file_id: str) -> bytes:
        found = self._files[file_id].content
        if found is None:
            raise LookupError(f"{file_id} has no content here")
        return found

    def json(self, file_id: str, world: World) -> Json:
        """Return a file's object; of one that is gone it only says that."""
        file = self._files[file_id]
        if file.mode == "tombstone":
            return {"id": file.id, "mode": "tombstone"}
        extension = file.name.rpartition(".")[2].lower() if "." in file.name else ""
        base = f"{world.root_url}/files-pri/{world.team.id}-{file.id}"
        found: Json = {
            "id": file.id,
            "created": int(file.created),
            "timestamp": int(file.created),
            "name": file.name,
            "title": file.title or file.name,
            "mimetype": file.media_type,
            "filetype": extension or "text",
            "pretty_type": extension.upper() or "Plain Text",
            "user": file.user,
            "user_team": world.team.id,
            "editable": file.mode == "snippet",
            "size": file.size,
            "mode": file.mode,
            "is_external": file.mode == "external",
            "external_type": "gdrive" if file.mode == "external" else "",
            "is_public": True,
            "public_url_shared": False,
            "display_as_bot": False,
            "username": "",
            "url_private": file.external_url or f"{base}/{quote(file.name)}",
            "permalink": f"https://{world.team.domain}.example.com/files/{file.user}/{file.id}",
            "has_rich_preview": False,
            "file_access": "visible",
        }
        if file.mode != "external":
            found["url_private_download"] = f"{base}/download/{quote(file.name)}"
        if file.shares:
            shared = {c: [{"ts": ts} for ts in all_ts] for c, all_ts in file.shares.items()}
            found["shares"] = {"public": shared}
        return found


def _media_type(name: str) -> str:
    more: Mapping[str, str] = {"md": "text/markdown", "webp": "image/webp"}
    extension = name.rpartition(".")[2].lower()
    guess = more.get(extension) or mimetypes.guess_type(name)[0]
    return guess or "application/octet-stream"
