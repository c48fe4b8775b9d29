"""The manifest's table of the extension."""

from __future__ import annotations

import attrs
from attrs.validators import ge, gt


@attrs.frozen
class FilesConfig:
    """An ``[extensions.files]`` table: how much of a file is read, and what a PDF may cost."""

    characters: int = attrs.field(
        default=1_000_000,
        validator=ge(1),
        metadata={"help": "most characters of a file that are made into text"},
    )
    pdf_pages: int = attrs.field(
        default=500, validator=ge(1), metadata={"help": "most pages of a PDF that are read"}
    )
    pdf_seconds: float = attrs.field(
        default=8.0,
        validator=gt(0),
        metadata={"help": "longest time for a PDF, seconds; keep it below limits.hook_timeout"},
    )
    pdf_memory: int = attrs.field(
        default=512_000_000,
        validator=ge(128_000_000),
        metadata={"help": "most memory of the process that reads a PDF, bytes"},
    )
