"""Files out: one request in parts, read from the gateway's copy while it is sent."""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncIterator, Mapping
from pathlib import PurePath
from typing import Any, Final

import anyio
import attrs

from dragoman import FileLimits, OutboundFile, Refused

LIMITS: Final = FileLimits(
    size=50_000_000, caption=1024, kinds=frozenset({"image", "voice", "audio", "video"})
)
PHOTO: Final = 10_000_000
"""Bytes of the largest picture that Telegram shows as one."""
CHUNK: Final = 1 << 18

_TYPES: Final[Mapping[str, frozenset[str]]] = {
    "photo": frozenset({"image/jpeg", "image/png", "image/webp", ".jpg", ".jpeg", ".png", ".webp"}),
    "voice": frozenset({"audio/ogg", "audio/opus", "application/ogg", ".ogg", ".oga", ".opus"}),
    "audio": frozenset({"audio/mpeg", "audio/mp4", "audio/x-m4a", "audio/m4a", ".mp3", ".m4a"}),
    "video": frozenset({"video/mp4", ".mp4"}),
}
"""What Telegram shows as such, by type or by the end of the name: which types a name stands for
differs from machine to machine."""
_WAYS: Final[Mapping[str, tuple[str, ...]]] = {
    "image": ("photo",),
    "voice": ("voice", "audio"),
    "audio": ("audio",),
    "video": ("video",),
}
"""What a kind is sent as, if its type fits; otherwise it is a document."""


def way_of(file: OutboundFile) -> str:
    """Return what Telegram is to show a file as: the name of its parameter."""
    marks = {file.mime, PurePath(file.name).suffix.lower()}
    for way in _WAYS.get(file.kind, ()):
        if marks & _TYPES[way] and (way != "photo" or file.size <= PHOTO):
            return way
    return "document"


@attrs.define(eq=False)
class Upload:
    """A request's body with a file in it. It can be read once."""

    file: OutboundFile
    params: Mapping[str, Any] = attrs.field(repr=False)
    whole: bool = False
    """Whether all of it may have left: what was cut short before was not applied."""
    _boundary: str = attrs.field(init=False, factory=lambda: secrets.token_hex(16))

    @property
    def headers(self) -> dict[str, str]:
        """The request's headers: its length is known."""
        length = len(self._head) + self.file.size + len(self._tail)
        return {
            "content-type": f"multipart/form-data; boundary={self._boundary}",
            "content-length": str(length),
        }

    @property
    def _head(self) -> bytes:
        parts = [
            f'--{self._boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{text}\r\n'
            for name, value in self.params.items()
            for text in [value if isinstance(value, str) else json.dumps(value)]
        ]
        name = self.file.name.replace("\\", "\\\\").replace('"', '\\"')
        parts.append(
            f"--{self._boundary}\r\nContent-Disposition: form-data; "
            f'name="{way_of(self.file)}"; filename="{name}"\r\n'
            f"Content-Type: {self.file.mime}\r\n\r\n"
        )
        return "".join(parts).encode()

    @property
    def _tail(self) -> bytes:
        return f"\r\n--{self._boundary}--\r\n".encode()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield the body; raises `dragoman.Refused` where the copy is not what it should be."""
        yield self._head
        left = self.file.size
        try:
            async with await anyio.open_file(self.file.path, "rb") as copy:
                while chunk := await copy.read(CHUNK):
                    left -= len(chunk)
                    yield chunk
        except OSError as error:
            raise Refused(f"the gateway's copy cannot be read: {error.strerror}") from None
        if left:
            raise Refused("the gateway's copy has another size than it had")
        self.whole = True
        yield self._tail
