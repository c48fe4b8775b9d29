"""Whether a sandbox can hold is known before anybody relies on it."""

import os
import sys
from pathlib import Path

import pytest

from dragoman_claude.home import Homes
from dragoman_claude.sandbox import sandbox_settings, why_no_sandbox

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="what Linux needs for a sandbox")


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with the named programs, and no others; the gateway is not root's."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    def install(**scripts):
        for name, script in scripts.items():
            (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
            (tmp_path / name).chmod(0o700)

    return install


def test_a_sandbox_holds_or_stops_the_program(tmp_path):
    """D11: and hides the store and all other sessions, whatever link leads there."""
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "data")
    home = Homes(tmp_path / "link" / "claude", Path("/bin/true")).home("ses_1")
    settings = sandbox_settings(home, [tmp_path / "link"])
    assert settings["enabled"]
    assert settings["failIfUnavailable"]
    assert not settings["allowUnsandboxedCommands"]
    assert not settings["autoAllowBashIfSandboxed"]
    files = settings["filesystem"]
    assert files["denyRead"] == [str(tmp_path / "data")]
    assert str(home.workspace) in files["allowRead"]
    assert str(home.config) not in files["allowRead"]
    assert all(path.startswith(f"{tmp_path}/data/") for path in files["allowRead"])


def test_what_is_missing_is_named(machine):
    """D11, D13: all of it, and what to do."""
    assert why_no_sandbox() == "bubblewrap and socat missing: install them"
    machine(bwrap="exit 0")
    assert why_no_sandbox() == "socat missing: install it"
    machine(socat="exit 0")
    assert why_no_sandbox() is None


def test_root_is_refused(machine, monkeypatch):
    """D11: whatever is installed."""
    machine(bwrap="exit 0", socat="exit 0")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert "run it as a user of its own" in why_no_sandbox()


def test_a_system_that_forbids_it_is_told(machine):
    """D11, D13: bubblewrap's own words, and where to look."""
    machine(bwrap="echo 'bwrap: No permissions to create namespace' >&2; exit 1", socat="exit 0")
    said = why_no_sandbox()
    assert said.startswith(
        "bwrap cannot make a sandbox (bwrap: No permissions to create namespace): allow it user "
    )
    machine(bwrap="exit 3")
    assert why_no_sandbox().startswith("bwrap cannot make a sandbox (3)")
