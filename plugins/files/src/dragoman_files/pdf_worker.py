"""A program that prints the text of a PDF, page by page, and says by its exit code how it went.

It limits its own memory and time first, so that a hostile file ends it and nothing else.
"""

from __future__ import annotations

import math
import resource
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pypdf import PdfReader

ENCRYPTED: Final = 3
MORE: Final = 4
"""There are more pages than were to be read."""
DAMAGED: Final = 5
"""Some of it, or all, could not be read."""


def main(path: str, pages: int, seconds: float, memory: int) -> int:
    """Print at most ``pages`` pages, as UTF-8."""
    from pypdf import PasswordType, PdfReader

    _limit(seconds, memory)
    try:
        reader = PdfReader(path)
        if reader.is_encrypted and reader.decrypt("") is PasswordType.NOT_DECRYPTED:
            return ENCRYPTED
        total = len(reader.pages)
        failed = [page for page in _printed(reader, min(total, pages)) if page is None]
    except Exception:  # noqa: BLE001 - whatever such a file causes
        return DAMAGED
    if failed:
        return DAMAGED
    return MORE if total > pages else 0


def _printed(reader: PdfReader, pages: int) -> Iterator[str | None]:
    """Print pages and yield them; ``None`` for one that cannot be read."""
    for number in range(pages):
        try:
            text = reader.pages[number].extract_text().strip()
        except Exception:  # noqa: BLE001 - the next page may be well
            yield None
            continue
        if text:
            page = f"[page {number + 1}]\n{text}\n\n"
            sys.stdout.buffer.write(page.encode(errors="replace"))
            sys.stdout.buffer.flush()
        yield text


def _limit(seconds: float, memory: int) -> None:
    limits = (
        (resource.RLIMIT_CPU, math.ceil(seconds)),
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    )
    for kind, most in limits:
        with suppress(ValueError):  # a lower one is in force, or the system has none of this kind
            resource.setrlimit(kind, (most, most))


if __name__ == "__main__":
    given = sys.argv[1:]
    sys.exit(main(given[0], int(given[1]), float(given[2]), int(given[3])))
