"""Files that came with messages: got from their platform when an agent asks, and kept for a while.

A copy lies below the session's own folder, under a name of core's making. What a sender called it
is a label, and never part of a path.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO, Final, cast

import anyio
import anyio.to_thread
import attrs

from dragoman import errors
from dragoman.clock import Clock
from dragoman.inputs import FetchedFile, as_size, one_line
from dragoman.messages import Attachment
from dragoman.outbox.files import SLOWEST, safe_name
from dragoman.outbox.outbox import Outbox
from dragoman.plugins.hooktable import HookTable
from dragoman.protocols import Fetches
from dragoman.store.protocol import Store

SESSION_BYTES: Final = 200_000_000
"""Copies of one session; beyond them the oldest go."""
ALL_BYTES: Final = 2_000_000_000
"""Copies of all sessions."""
OLDEST: Final = 7 * 86400.0
"""How long a copy is kept at most, seconds."""
PATIENCE: Final = 60.0
"""How long a file may take, seconds, and a second more for every `SLOWEST` bytes."""
LONGEST_TEXT: Final = 200_000
"""Characters of a file that are given out at once."""

_REFERENCE: Final = re.compile(r"([0-9]{1,18})\.([0-9]{1,3})")
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW


@attrs.define(eq=False)
class Fetched:
    """The copies of a gateway, in one folder. None is larger than ``largest`` bytes."""

    _folder: Path
    _largest: int
    _store: Store
    _outbox: Outbox
    _hooks: HookTable
    _clock: Clock
    _locks: dict[Path, anyio.Lock] = attrs.field(factory=dict)

    async def get(self, session_id: str, reference: str) -> FetchedFile:
        """Return a file of a session's message. Raises `FileUnavailable`."""
        found = _REFERENCE.fullmatch(reference.strip())
        event_id, number = (int(part) for part in found.groups()) if found else (0, 0)
        stored = await self._store.read.event_of(session_id, event_id) if number else None
        if stored is None or number > len(stored.inbound.attachments):
            raise errors.FileUnavailable("there is no such file in this conversation")
        attachment = stored.inbound.attachments[number - 1]
        platform = self._outbox.exit(stored.inbound.address).platform
        limit = largest_of(platform.capabilities.fetch, self._largest)
        if why := missing(attachment, limit):
            raise errors.FileUnavailable(why)
        path = self._folder / session_id / f"{event_id}.{number}"
        lock = self._locks.setdefault(path, anyio.Lock())
        try:
            async with lock:
                if not await anyio.to_thread.run_sync(_is_file, path):
                    await self._download(cast("Fetches", platform), attachment, path, limit)
        finally:
            if not lock.locked():  # nobody has it next
                self._locks.pop(path, None)
        name = safe_name(one_line(attachment.name or attachment.kind, 128))
        return FetchedFile(path, name, attachment.mime, path.stat().st_size)

    async def read(self, session_id: str, reference: str, limit: int) -> str:
        """Return a file as text. Raises `FileUnavailable`."""
        file = await self.get(session_id, reference)
        attachment = Attachment(reference, "file", file.name, file.mime, file.size)
        text = await self._hooks.file_text(file.path, attachment)
        if text is None:
            raise errors.FileUnavailable("nothing here can make text of this kind of file")
        most = min(limit, LONGEST_TEXT)
        return text if len(text) <= most else f"{text[:most]}\n[it goes on: cut here]"

    async def sweep(self) -> None:
        """Delete what is old, and what a crash left unfinished."""
        oldest = self._clock.now().timestamp() - OLDEST
        await anyio.to_thread.run_sync(_sweep, self._folder, oldest)

    async def _download(
        self, platform: Fetches, attachment: Attachment, path: Path, limit: int
    ) -> None:
        part = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
        try:
            with self._clock.move_on_after(PATIENCE + limit / SLOWEST):
                await self._write(platform, attachment, part, limit)
                await anyio.to_thread.run_sync(part.replace, path)
                await anyio.to_thread.run_sync(_make_room, self._folder, path)
                return
        except errors.FileUnavailable:
            raise
        except errors.Gone:
            raise errors.FileUnavailable("it is not there any more") from None
        except errors.Refused:
            raise errors.FileUnavailable("its platform does not hand it out") from None
        except (errors.PlatformError, OSError):
            raise errors.FileUnavailable("it cannot be had at the moment") from None
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(_delete, part)
        raise errors.FileUnavailable("it took too long")

    async def _write(
        self, platform: Fetches, attachment: Attachment, part: Path, limit: int
    ) -> None:
        file = await anyio.to_thread.run_sync(_create, part)
        written = 0
        try:
            async with platform.fetch(attachment) as pieces:
                async for piece in pieces:
                    written += len(piece)
                    if written > limit:
                        raise errors.FileUnavailable(_too_large(None, limit))
                    await anyio.to_thread.run_sync(file.write, piece)
        finally:
            file.close()


def largest_of(platform: int | None, own: int) -> int:
    """Return the size of the largest file that can be had, bytes; zero for none."""
    return min(platform or 0, own)


def missing(attachment: Attachment, limit: int) -> str:
    """Return why a file cannot be had, as far as known before it is asked for."""
    if attachment.missing or not limit:
        return attachment.missing or "files cannot be had from this platform"
    if attachment.size is not None and attachment.size > limit:
        return _too_large(attachment.size, limit)
    return ""


def marked(attachments: Iterable[Attachment], limit: int) -> tuple[Attachment, ...]:
    """Return attachments that say why they cannot be had."""
    return tuple(attrs.evolve(one, missing=missing(one, limit)) for one in attachments)


def _too_large(size: int | None, limit: int) -> str:
    found = f"{as_size(size)}: " if size else ""
    return f"{found}larger than {as_size(limit)}"


def _create(part: Path) -> IO[bytes]:
    part.parent.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part.parent.mkdir(mode=0o700, exist_ok=True)
    return os.fdopen(os.open(part, _NEW, 0o600), "wb")


def _is_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _delete(path: Path) -> None:
    with suppress(OSError):
        path.unlink()


def _sweep(folder: Path, oldest: float) -> None:
    for path in folder.glob("*/*"):
        if path.name.startswith(".") or path.lstat().st_mtime < oldest:
            _delete(path)
    for empty in folder.glob("*"):
        with suppress(OSError):
            empty.rmdir()


def _make_room(folder: Path, newest: Path) -> None:
    """Delete the oldest copies beyond what a session, and all of them, may keep."""
    for pattern, most in ((f"{newest.parent.name}/*", SESSION_BYTES), ("*/*", ALL_BYTES)):
        known = sorted(
            ((path.lstat(), path) for path in folder.glob(pattern)),
            key=lambda pair: pair[0].st_mtime,
        )
        total = sum(status.st_size for status, _ in known)
        for status, path in known:
            if total <= most:
                break
            if path != newest and not path.name.startswith("."):
                _delete(path)
                total -= status.st_size
