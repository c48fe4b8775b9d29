"""PDF as text, in a process of its own: whatever a file does to that, the gateway lives."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio
from anyio.abc import Process

from dragoman import Attachment, Clock
from dragoman_files import pdf_worker
from dragoman_files.config import FilesConfig

WORKER: Final = Path(__file__).with_name("pdf_worker.py")
"""Started by its path: this package, and dragoman, are not loaded there."""
NO_TEXT: Final = "[this PDF holds no text: its pages may be pictures]"
TOO_LONG: Final = "[what follows is missing: reading it took too long]"
DAMAGED: Final = "[some or all is missing: this PDF is damaged, or too costly to read]"
ENCRYPTED: Final = "[this PDF is protected by a password]"

_KEPT: Final = ("LANG", "LD_LIBRARY_PATH")
"""All that the worker gets of the gateway's environment, which holds secrets."""
_BYTES_PER_CHARACTER: Final = 4
_BEFORE: Final = b"\xef\xbb\xbf \t\r\n\0"


def is_pdf(head: bytes, attachment: Attachment) -> bool:
    """Whether a file's first 1024 bytes are those of a PDF; some begin with something else."""
    before, sign, _ = head.partition(b"%PDF-")
    named = attachment.mime == "application/pdf" or attachment.name.lower().endswith(".pdf")
    return bool(sign) and (named or not before.strip(_BEFORE))


async def pdf_text(
    path: Path, config: FilesConfig, clock: Clock, limiter: anyio.CapacityLimiter
) -> tuple[str, str]:
    """Return the text of a PDF and what has to be said about it; never raises for its content."""
    output, note = bytearray(), TOO_LONG
    with clock.move_on_after(config.pdf_seconds):
        async with limiter, _worker(path, config) as process:
            assert process.stdout is not None
            async for piece in process.stdout:
                output += piece
                if len(output) > config.characters * _BYTES_PER_CHARACTER:
                    break
            else:
                note = _note(await process.wait(), config)
    text = output.decode(errors="ignore").rstrip()
    return text, note or ("" if text else NO_TEXT)


def _note(code: int, config: FilesConfig) -> str:
    known = {
        0: "",
        pdf_worker.ENCRYPTED: ENCRYPTED,
        pdf_worker.MORE: f"[it goes on: only the first {config.pdf_pages} pages were read]",
    }
    return known.get(code, DAMAGED)


@asynccontextmanager
async def _worker(path: Path, config: FilesConfig) -> AsyncIterator[Process]:
    """Start the worker; it does not outlive this context, nor its time if the gateway dies."""
    limits = (config.pdf_pages, config.pdf_seconds, config.pdf_memory)
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    async with await anyio.open_process(
        [sys.executable, "-s", "-P", WORKER, path, *map(str, limits)],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
    ) as process:
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
