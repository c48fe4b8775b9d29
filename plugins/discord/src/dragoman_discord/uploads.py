"""Files out: one request in parts, read from the gateway's copy while it is sent."""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncGenerator, Mapping
from typing import Any, Final

import anyio
import attrs

from dragoman import FileLimits, OutboundFile, Refused
from dragoman_discord.dialect import MAX_TEXT

LIMITS: Final = FileLimits(
    size=10 * 1024 * 1024, caption=MAX_TEXT, kinds=frozenset({"image", "audio", "video"})
)
CHUNK: Final = 1 << 18


@attrs.define(eq=False)
class Upload:
    """A request's body with a file in it. It can be read once."""

    file: OutboundFile
    message: Mapping[str, Any] = attrs.field(repr=False)
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
        message = {**self.message, "attachments": [{"id": "0", "filename": self.file.name}]}
        name = self.file.name.replace("\\", "\\\\").replace('"', '\\"')
        return (
            f"--{self._boundary}\r\nContent-Disposition: form-data; "
            f'name="payload_json"\r\nContent-Type: application/json\r\n\r\n'
            f"{json.dumps(message)}\r\n--{self._boundary}\r\nContent-Disposition: form-data; "
            f'name="files[0]"; filename="{name}"\r\nContent-Type: {self.file.mime}\r\n\r\n'
        ).encode()

    @property
    def _tail(self) -> bytes:
        return f"\r\n--{self._boundary}--\r\n".encode()

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """Yield the body; whoever stops early closes this. Raises `dragoman.Refused` where the copy is not what it should be."""
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
