"""The extension: looks at what a file holds, not at what its sender called it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
import attrs

from dragoman import Attachment, Clock, hookimpl
from dragoman_files.config import FilesConfig
from dragoman_files.pdf import is_pdf, pdf_text
from dragoman_files.plain import plain_text

CUT: Final = "[it goes on: cut here]"
PDFS_AT_ONCE: Final = 2
_HEAD: Final = 1024
_BYTES_PER_CHARACTER: Final = 4


@attrs.frozen(eq=False)
class FileTexts:
    """Makes text of files for agents."""

    _config: FilesConfig
    _clock: Clock
    _pdfs: anyio.CapacityLimiter = attrs.field(
        factory=lambda: anyio.CapacityLimiter(PDFS_AT_ONCE), init=False
    )

    @hookimpl
    async def dragoman_file_text(self, path: Path, attachment: Attachment) -> str | None:
        """Return a file as text with notes in brackets, or ``None`` if it is neither text nor PDF."""
        if is_pdf(await anyio.to_thread.run_sync(_read, path, _HEAD), attachment):
            text, note = await pdf_text(path, self._config, self._clock, self._pdfs)
        else:
            found = await anyio.to_thread.run_sync(self._plain, path)
            if found is None:
                return None
            text, note = found, "" if found.strip() else "[the file is empty]"
        if len(text) > self._config.characters:
            text, note = text[: self._config.characters], CUT
        return "\n".join(part for part in (text, note) if part.strip())

    def _plain(self, path: Path) -> str | None:
        most = (self._config.characters + 1) * _BYTES_PER_CHARACTER
        data = _read(path, most)
        return plain_text(data, cut=len(data) == most)


def _read(path: Path, most: int) -> bytes:
    with path.open("rb") as file:
        return file.read(most)
