"""Files out: three calls, of which only the last shows something; the bytes come from a copy."""

from __future__ import annotations

import html
import re
from collections.abc import AsyncIterator
from typing import Final

import anyio
import attrs

from dragoman import Address, FileLimits, Outbound, OutboundFile, Receipt, Refused, Unknown
from dragoman_slack.api import WebApi
from dragoman_slack.dialect import SlackDialect
from dragoman_slack.failures import Failed
from dragoman_slack.fields import Json, as_list, as_map, as_text

LIMITS: Final = FileLimits(
    size=1_000_000_000, caption=3000, kinds=frozenset({"image", "voice", "audio", "video"})
)
CHUNK: Final = 1 << 18
_KEPT: Final = 256
_BOLD: Final = re.compile(r"\*\*(?=\S)(.+?)(?<=\S)\*\*")


@attrs.define(eq=False)
class Upload:
    """A file as a request's body. It can be read once."""

    file: OutboundFile

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return self.file.size

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield the bytes; raises `dragoman.Refused` where the copy is not what it should be."""
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


@attrs.define(eq=False)
class Uploads:
    """Shows files; one that may be shown already is looked for before it is shown again."""

    _api: WebApi
    _dialect: SlackDialect
    _doubtful: dict[str, str] = attrs.field(factory=dict)
    """Files whose last call had no answer, by delivery."""

    async def send(self, address: Address, message: Outbound, file: OutboundFile) -> Receipt:
        """Show a file with its caption."""
        known = self._doubtful.get(message.delivery_id)
        if known and (shown := await self._shared(known, address)) is not None:
            del self._doubtful[message.delivery_id]
            return Receipt(shown)
        granted = await self._api.call(
            "files.getUploadURLExternal", address=address, filename=file.name, length=file.size
        )
        url, file_id = as_text(granted.get("upload_url")), as_text(granted.get("file_id"))
        if not (url and file_id):
            msg = "the answer names no place for the file"
            raise Unknown(msg)
        await self._api.put(url, Upload(file))
        self._remember(message.delivery_id, file_id)
        answer = await self._api.call(
            "files.completeUploadExternal",
            address=address,
            files=[{"id": file_id, "title": file.name}],
            channel_id=address.channel,
            thread_ts=address.thread or None,
            initial_comment=self._caption(message.text) or None,
        )
        self._doubtful.pop(message.delivery_id, None)
        shared = next(map(as_map, as_list(answer.get("files"))), {})
        return Receipt(share_of(shared, address.channel) or file_id)

    def _caption(self, markdown: str) -> str:
        """Return a caption in Slack's older marks: here it reads no Markdown."""
        text = self._dialect.sent(markdown)
        escaped = text if self._dialect.mentions else html.escape(text, quote=False)
        return _BOLD.sub(r"*\1*", escaped)

    async def _shared(self, file_id: str, address: Address) -> str | None:
        """Return what names a file's message, if there is one by now; Slack may name it late."""
        try:
            answer = await self._api.call("files.info", address=address, file=file_id)
        except Failed:
            return None
        return share_of(as_map(answer.get("file")), address.channel) or file_id

    def _remember(self, delivery_id: str, file_id: str) -> None:
        self._doubtful[delivery_id] = file_id
        if len(self._doubtful) > _KEPT:
            del self._doubtful[next(iter(self._doubtful))]


def share_of(file: Json, channel: str) -> str:
    """Return the ``ts`` of the newest message in a channel that shows a file; or nothing."""
    shares = as_map(file.get("shares"))
    for kind in ("private", "public"):
        found = as_list(as_map(shares.get(kind)).get(channel))
        if found:
            return max(as_text(as_map(one).get("ts")) for one in found)
    return ""


def holds(message: Json, file: OutboundFile) -> bool:
    """Whether a message shows a file of that name and size."""
    files = map(as_map, as_list(message.get("files")))
    return any(
        one.get("size") == file.size and as_text(one.get("name")) == file.name for one in files
    )
