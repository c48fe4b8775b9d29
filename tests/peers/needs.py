"""What a test needs of this machine: skipped by name without it, and a failure in CI."""

import os
from importlib.util import find_spec

import pytest

from peers.databases import missing


def absent(*modules: str, servers: bool = False) -> str | None:
    """Return what is missing: libraries, or the database servers."""
    lacking = [module for module in modules if find_spec(module) is None]
    if lacking:
        return f"{', '.join(lacking)} not installed: `make setup` does so"
    return missing() if servers else None


def need(*modules: str, servers: bool = False) -> None:
    """Leave the test where something is missing."""
    leave(absent(*modules, servers=servers))


def leave(reason: str | None) -> None:
    """Leave the test for a reason, if there is one."""
    if reason is not None and os.environ.get("CI"):
        pytest.fail(reason)
    if reason is not None:
        pytest.skip(reason)
