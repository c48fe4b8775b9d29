"""Text of the files that people send: plain text of any kind, and PDF."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from dragoman import Component, Host, hookimpl
from dragoman_files.config import FilesConfig
from dragoman_files.reader import FileTexts


@asynccontextmanager
async def _open(config: FilesConfig, host: Host) -> AsyncIterator[object]:
    yield FileTexts(config, host.clock)


@hookimpl
def dragoman_extensions() -> Iterable[Component[FilesConfig, object]]:
    """Register the extension ``files``."""
    yield Component("files", FilesConfig, _open)
