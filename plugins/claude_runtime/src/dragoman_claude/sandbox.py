"""Whether the program's sandbox can hold on this machine: known before anybody relies on it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from dragoman_claude.home import Home

_TRIAL: Final = ("--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev")
_TOOLS: Final = {"bwrap": "bubblewrap", "socat": "socat"}
"""What it needs on Linux, and the package that has it."""


def sandbox_settings(home: Home, hidden: Iterable[Path]) -> dict[str, Any]:
    """Return the SDK's option: commands write in the workspace, and read nothing in ``hidden``.

    What a command needs stays readable there. It runs in the sandbox or not at all: by itself the
    program would only warn and run it outside. Being in the sandbox does not allow it yet.
    The program's own tools for files are not held by it.
    """
    readable = (home.workspace, home.temp, home.config / "shell-snapshots")
    return {
        "enabled": True,
        "failIfUnavailable": True,
        "allowUnsandboxedCommands": False,
        "autoAllowBashIfSandboxed": False,
        "filesystem": {
            "denyRead": [str(path.resolve()) for path in hidden],
            "allowRead": [str(path) for path in readable],
        },
    }


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
