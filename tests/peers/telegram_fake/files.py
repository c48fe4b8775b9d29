"""Files that people and the bot have sent."""

from __future__ import annotations

from typing import Final

import attrs

from peers.telegram_fake.errors import BotError, Json, bad

MAX_DOWNLOAD: Final = 20 << 20
MAX_PHOTO: Final = 10 << 20
MAX_UPLOAD: Final = 50 << 20


_OF_KIND: Final[Json] = {
    "document": {},
    "voice": {"duration": 1},
    "audio": {"duration": 1},
    "video": {"duration": 1, "width": 320, "height": 240},
    "animation": {"duration": 1, "width": 320, "height": 240},
    "video_note": {"duration": 1, "length": 240},
    "sticker": {
        "type": "regular",
        "width": 512,
        "height": 512,
        "is_animated": False,
        "is_video": False,
        "emoji": "👍",
    },
}
"""What each kind has beside its file."""


@attrs.frozen
class Upload:
    """A file as a request carried it."""

    name: str
    content: bytes = attrs.field(repr=False)
    media_type: str = "application/octet-stream"


@attrs.define(eq=False)
class FileStore:
    """Every file under its id."""

    _files: dict[str, tuple[str, Upload]] = attrs.field(factory=dict)

    def keep(self, upload: Upload, folder: str) -> str:
        """R17: store a file and return its id."""
        if not upload.content:
            raise bad("file must be non-empty")
        if len(upload.content) > MAX_UPLOAD:
            raise BotError(413, "Request Entity Too Large")
        number = len(self._files) + 1
        suffix = "." + upload.name.rpartition(".")[2] if "." in upload.name else ""
        file_id = f"BQACAgIAAxkFAKE{number:06d}"
        self._files[file_id] = (f"{folder}/file_{number}{suffix}", upload)
        return file_id

    def content(self, file_id: str) -> bytes:
        return self._files[file_id][1].content

    def describe(self, file_id: str) -> Json:
        """Return the object ``getFile`` answers with."""
        if file_id not in self._files:
            raise bad("invalid file_id")
        path, upload = self._files[file_id]
        if len(upload.content) > MAX_DOWNLOAD:
            raise bad("file is too big")
        return self._identity(file_id) | {"file_path": path}

    def download(self, path: str) -> Upload | None:
        return next((upload for place, upload in self._files.values() if place == path), None)

    def medium(self, kind: str, content: Upload | str) -> Json:
        """Return a message's part for a file of any kind."""
        return self.photo(content) if kind == "photo" else self.document(content, kind)

    def photo(self, content: Upload | str) -> Json:
        """Return a message's ``photo``: two sizes of one picture."""
        if isinstance(content, Upload) and len(content.content) > MAX_PHOTO:
            raise bad("file is too big")
        file_id = self._resolve(content, "photos")
        sizes = ((90, 90, "s"), (800, 800, "x"))
        found = [
            self._identity(file_id)
            | {"width": width, "height": height, "file_unique_id": f"{file_id[-6:]}{mark}"}
            for width, height, mark in sizes
        ]
        return {"photo": found}

    def document(self, content: Upload | str, kind: str = "document") -> Json:
        """Return a message's ``document``, or ``voice``, ``audio``, ``video`` and the like."""
        file_id = self._resolve(content, "documents")
        upload = self._files[file_id][1]
        more: Json = dict(_OF_KIND[kind])
        if kind not in {"video_note", "sticker"}:
            more["mime_type"] = upload.media_type
        if kind not in {"voice", "video_note", "sticker"}:
            more["file_name"] = upload.name
        return {kind: self._identity(file_id) | more}

    def _resolve(self, content: Upload | str, folder: str) -> str:
        if isinstance(content, Upload):
            return self.keep(content, folder)
        if content not in self._files:
            raise bad("wrong file identifier/HTTP URL specified")
        return content

    def _identity(self, file_id: str) -> Json:
        size = len(self._files[file_id][1].content)
        return {"file_id": file_id, "file_unique_id": f"AgAD{file_id[-6:]}", "file_size": size}
