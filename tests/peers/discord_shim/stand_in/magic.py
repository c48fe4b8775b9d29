"""Stands in for python-magic in YEPCord's process, so that no system library is needed.

YEPCord asks it whether uploaded bytes are a picture, and what a file without a type is.
"""

SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"%PDF-", "application/pdf"),
)


def from_buffer(buffer: bytes, mime: bool = False) -> str:
    """Return the media type of a file's beginning, whatever ``mime`` says."""
    if buffer[:4] == b"RIFF" and buffer[8:12] == b"WEBP":
        return "image/webp"
    known = (kind for beginning, kind in SIGNATURES if buffer.startswith(beginning))
    return next(known, "text/plain" if b"\x00" not in buffer else "application/octet-stream")
