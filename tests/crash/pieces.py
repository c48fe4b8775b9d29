"""Makes the tests' plugin package known to a gateway, as an installer would, in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Final

PLUGIN: Final = Path(__file__).parent / "plugin"

METADATA: Final = "Metadata-Version: 2.1\nName: crashkit\nVersion: 1.0\n"
ENTRY_POINTS: Final = "[dragoman]\ncrash = crashkit\n"


def installed(folder: Path) -> str:
    """Write the distribution's metadata; return the import path that has it and its code."""
    metadata = folder / "crashkit-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(METADATA)
    (metadata / "entry_points.txt").write_text(ENTRY_POINTS)
    return f"{folder}:{PLUGIN}"
