"""Whether the program's sandbox can hold on this machine: known before anybody relies on it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import Any, Final

SETTINGS: Final[dict[str, Any]] = {
    "enabled": True,
    "failIfUnavailable": True,
    "allowUnsandboxedCommands": False,
}
"""The SDK's option: without the second line a sandbox that cannot start is only warned about."""
_TRIAL: Final = ("--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev")
_TOOLS: Final = {"bwrap": "bubblewrap", "socat": "socat"}
"""What it needs on Linux, and the package that has it."""


def why_no_sandbox() -> str | None:
    """Return why commands cannot be kept in a sandbox here, and what helps; None if they can.

    It blocks for some milliseconds: bubblewrap is tried, since systems forbid it in many ways.
    """
    if sys.platform == "darwin":
        return None if shutil.which("sandbox-exec") else "sandbox-exec is missing"
    if sys.platform != "linux":
        return f"the program has no sandbox on {sys.platform}"
    if os.geteuid() == 0:
        return "the gateway runs as root, whom no sandbox holds: run it as a user of its own"
    missing = [package for tool, package in _TOOLS.items() if shutil.which(tool) is None]
    if missing:
        return f"{' and '.join(missing)} missing: install {'them' if missing[1:] else 'it'}"
    return _tried()


def _tried() -> str | None:
    command = ["bwrap", *_TRIAL, "true"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=10, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bwrap cannot be run: {error}"
    if done.returncode == 0:
        return None
    said = done.stderr.decode(errors="replace").strip().splitlines()
    return (
        f"bwrap cannot make a sandbox ({said[-1] if said else done.returncode}): allow it user "
        "namespaces (kernel.unprivileged_userns_clone, an AppArmor profile, the container's rights)"
    )
