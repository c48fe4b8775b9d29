"""Files on their way out: copies of the gateway's own, and what people are told instead of them.

Tools hand over bytes. Nothing that a model wrote becomes part of a path.
"""

from __future__ import annotations

import mimetypes
import os
import re
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Final

import anyio.to_thread
import attrs

from dragoman.capabilities import FileLimits
from dragoman.keys import new_id
from dragoman.messages import OutboundFile
from dragoman.store.operations import StoredFile

LONGEST_NAME: Final = 128
LONGEST_SUFFIX: Final = 16
SLOWEST: Final = 1 << 16
"""Bytes per second that a file is given time for."""

_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
_MIME: Final = re.compile(r"[A-Za-z0-9.+-]+/[A-Za-z0-9.+-]+")


@attrs.frozen
class Files:
    """The copies, in one folder, under ids of core's own. None is larger than ``largest`` bytes."""

    _folder: Path
    _largest: int

    async def keep(self, name: str, data: bytes, mime: str, kind: str) -> StoredFile:
        """Make a copy, durable on return. Raises `ValueError` for what cannot be sent."""
        name, size = safe_name(name), memoryview(data).nbytes
        if not 0 < size <= self._largest:
            msg = f"the file {name} has {size:,} bytes, and limits.file_size of the manifest allows"
            raise ValueError(f"{msg} 1 to {self._largest:,}: make a smaller one, or have it raised")
        return await anyio.to_thread.run_sync(self._keep, name, data, mime, kind, size)

    def _keep(self, name: str, data: bytes, mime: str, kind: str, size: int) -> StoredFile:
        if not _MIME.fullmatch(mime):
            mime = mimetypes.guess_type(name, strict=False)[0] or "application/octet-stream"
        file = StoredFile(id=new_id("file"), name=name, mime=mime, kind=kind, size=size)
        path = self._folder / file.id
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with os.fdopen(os.open(path, _NEW, 0o600), "wb") as copy:
                copy.write(data)
                copy.flush()
                os.fsync(copy.fileno())
        except OSError as error:
            _delete(path)
            msg = f"the file {name} cannot be kept until it is sent: {error.strerror}"
            raise OSError(error.errno, msg) from None
        return file

    def outbound(self, file: StoredFile, limits: FileLimits | None) -> OutboundFile | None:
        """Return a file as a platform with these limits is given it, if it can show it."""
        if limits is None or file.size > limits.size:
            return None
        kind = file.kind if file.kind in limits.kinds else "file"
        path = self._folder / file.id
        return OutboundFile(path=path, name=file.name, size=file.size, mime=file.mime, kind=kind)

    async def drop(self, file: StoredFile) -> None:
        """Delete a copy; nothing happens where there is none."""
        await anyio.to_thread.run_sync(_delete, self._folder / file.id)

    async def sweep(self, owed: Collection[str]) -> None:
        """Delete every copy that is not ``owed``: those of turns that a crash cut off."""
        await anyio.to_thread.run_sync(self._sweep, owed)

    def _sweep(self, owed: Collection[str]) -> None:
        for path in self._folder.glob("file_*"):
            if path.name not in owed:
                _delete(path)


def told(file: StoredFile | OutboundFile, caption: str) -> str:
    """Return what is shown instead of a file."""
    size = f"{file.size / 1e6:.1f} MB" if file.size >= 1e5 else f"{file.size / 1e3:.1f} kB"
    return f"*(the file {file.name}, {size}, cannot be shown here)*\n\n{caption}".rstrip()


def safe_name(name: str) -> str:
    """Return a name to show: without folders and invisible characters, never empty, not too long.

    What can be taken for an extension is kept.
    """
    seen = "".join(c for c in re.split(r"[/\\]", name)[-1] if c.isprintable()).strip(" .")
    stem, suffix = Path(seen).stem, Path(seen).suffix[:LONGEST_SUFFIX]
    return f"{stem[: LONGEST_NAME - len(suffix)]}{suffix}" or "file"


def _delete(path: Path) -> None:
    with suppress(OSError):  # what stays here goes at the next start
        path.unlink()
