"""Bytes as text, where they are text. Pure."""

from __future__ import annotations

import codecs
import re
from typing import Final

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
"""The longer of two that begin alike is first."""
_CONTROL: Final = re.compile("[\\x00-\\x08\\x0e-\\x1a\\x1c-\\x1f\\x7f]")
_FEW: Final = 100
"""One control character, or one that is wrong, in so many is still text."""


def plain_text(data: bytes, *, cut: bool) -> str | None:
    """Return ``data`` as text with ``\\n`` at the ends of lines, or ``None`` if it is none.

    A byte order mark says how it is encoded. Without one it is UTF-8, UTF-16 if every other byte
    is often zero, and else what Western systems used before. ``cut`` says that more would follow,
    so that a character whose end is missing is no error.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _supposed(data[len(mark) :], encoding, cut=cut)
    if b"\0" in data:
        found = _utf_16(data)
        return found and _supposed(data, found, cut=cut)
    for encoding in ("utf-8", "cp1252"):
        try:
            return _cleaned(_decoded(data, encoding, cut=cut))
        except UnicodeDecodeError:
            continue
    return _cleaned(data.decode("latin-1"))


def _utf_16(data: bytes) -> str | None:
    """Return the byte order of UTF-16 without a mark; zeros in both halves are something else."""
    even, odd = data[::2].count(0), data[1::2].count(0)
    if (even and odd) or 8 * (even + odd) < len(data):
        return None
    return "utf-16-be" if even else "utf-16-le"


def _supposed(data: bytes, encoding: str, *, cut: bool) -> str | None:
    """Return ``data`` in an encoding that is likely; a few errors are forgiven."""
    text = _decoded(data, encoding, cut=cut, errors="replace")
    return None if text.count("\ufffd") * _FEW > len(text) else _cleaned(text)


def _decoded(data: bytes, encoding: str, *, cut: bool, errors: str = "strict") -> str:
    return codecs.getincrementaldecoder(encoding)(errors).decode(data, final=not cut)


def _cleaned(text: str) -> str | None:
    plain, controls = _CONTROL.subn("", text)
    if controls * _FEW > len(text):
        return None
    return plain.replace("\r\n", "\n").replace("\r", "\n")
