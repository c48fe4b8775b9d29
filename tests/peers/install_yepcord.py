"""Install the Discord-compatible server YEPCord into an environment of its own.

Its old pins build on Python 3.11 and 3.12 only. The interpreter that runs this file is taken if it
is one of these, else one of that name on the path. Without any of them the server is left out, and
said to be: an error where ``CI`` is set, and nothing worse elsewhere, since its tests are then
skipped by name.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGET = ROOT / ".venv-yepcord"
REQUIREMENTS = ROOT / "requirements" / "yepcord.txt"
STAMP = TARGET / ".ready"
SUITABLE = ((3, 12), (3, 11))


def interpreter() -> str | None:
    """Return a Python that can build the server, or None."""
    if sys.version_info[:2] in SUITABLE:
        return sys.executable
    names = (shutil.which(f"python{major}.{minor}") for major, minor in SUITABLE)
    return next((name for name in names if name is not None and _starts(name)), None)


def _starts(name: str) -> bool:
    """Whether a command on the path is more than a name that some version manager left there."""
    return subprocess.run([name, "-c", ""], check=False, capture_output=True).returncode == 0


def main() -> int:
    """Make the environment; return the exit code."""
    python = interpreter()
    if python is None:
        here = f"{sys.version_info[0]}.{sys.version_info[1]}"
        print(f"yepcord is left out: it needs Python 3.11 or 3.12, and this is {here}")
        return int(bool(os.environ.get("CI")))
    subprocess.run([python, "-m", "venv", "--clear", TARGET], check=True)
    pip = [TARGET / "bin" / "python", "-m", "pip", "install", "--quiet", "--require-hashes"]
    subprocess.run([*pip, "-r", REQUIREMENTS], check=True)
    STAMP.touch()
    return 0


if __name__ == "__main__":
    sys.exit(main())
