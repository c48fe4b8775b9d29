"""R9: files of messages, behind links that stop to work."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

import attrs

from peers.clock import Clock
from peers.discord_fake.checks import PARTS, known, many, table, text
from peers.discord_fake.errors import Json, invalid, refusal
from peers.discord_fake.journal import Upload
from peers.discord_fake.messages import Attachment
from peers.discord_fake.snowflakes import Snowflakes

MAX_FILE: Final = 10 << 20
LIFE: Final = 24 * 3600.0


@attrs.define(eq=False)
class Shelf:
    """Every file under the path of its link."""

    _clock: Clock
    _ids: Snowflakes
    life: float = LIFE
    """How long a link works, in seconds of the fake's clock."""
    base: str = ""
    _kept: dict[str, Attachment] = attrs.field(factory=dict)

    def keep(self, channel: int, upload: Upload, description: str | None = None) -> Attachment:
        """Store a file; blanks in its name become underscores."""
        name = upload.name.replace(" ", "_") or "unknown"
        made = Attachment(self._ids.next(), name, upload.content, upload.media_type, description)
        self._kept[f"{channel}/{made.id}/{name}"] = made
        return made

    def take(
        self, channel: int, data: Json, files: Mapping[str, Upload], *, most: int
    ) -> list[Attachment]:
        """Return a form's new files, in order; each entry of ``attachments`` describes one."""
        if any(len(one.content) > most for one in files.values()):
            raise refusal(40005)
        told = {}
        for index, item in enumerate(many(data.get("attachments") or [], "attachments", 10)):
            entry = table(item, f"attachments.{index}")
            known(entry, PARTS["attachment"], f"attachments.{index}")
            text(entry.get("description") or "", f"attachments.{index}.description", 1024)
            told[str(entry.get("id"))] = entry
        made = []
        for field, upload in sorted(files.items(), key=lambda pair: _number(pair[0])):
            entry = told.get(str(_number(field)), {})
            named = attrs.evolve(upload, name=entry.get("filename") or upload.name)
            made.append(self.keep(channel, named, entry.get("description")))
        return made

    def json(self, channel: int, one: Attachment) -> Json:
        """Return an attachment with a link that works from now on."""
        url = self.link(f"{channel}/{one.id}/{one.name}")
        found: Json = {
            "id": str(one.id),
            "filename": one.name,
            "size": len(one.content),
            "url": url,
            "proxy_url": url,
            "content_type": one.media_type,
        }
        if one.description is not None:
            found["description"] = one.description
        return found

    def link(self, path: str) -> str:
        now = int(self._clock.time())
        until = f"{int(now + self.life):x}"
        query = f"ex={until}&is={now:x}&hm={_signature(path, until)}&"
        return f"{self.base}/attachments/{quote(path)}?{query}"

    def download(self, path: str, query: Mapping[str, str]) -> Attachment | None:
        """Return what a link is for, unless it is too old or is not one of ours."""
        until = query.get("ex", "")
        if query.get("hm") != _signature(path, until) or int(until, 16) < self._clock.time():
            return None
        return self._kept.get(path)


def _signature(path: str, until: str) -> str:
    return hashlib.sha256(f"link {path} {until}".encode()).hexdigest()


def _number(field: str) -> int:
    """Return n of ``files[n]``."""
    digits = field.removeprefix("files[").removesuffix("]")
    if not digits.isdigit():
        raise invalid(field, "UNKNOWN_FIELD", f'Unknown field "{field}".')
    return int(digits)


def kept_files(data: Json, present: list[Attachment]) -> list[Attachment]:
    """Return which files an edit keeps: all, unless ``attachments`` lists them."""
    if data.get("attachments") is None:
        return present
    ids: set[Any] = {str(item.get("id")) for item in data["attachments"]}
    return [one for one in present if str(one.id) in ids]
