"""What starting and installing costs, in counts: times are measured in ``benchmarks/start_up.py``."""

import json
import subprocess
import sys

import importlib_metadata
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

VENDORS = ("agents", "openai", "httpx2", "httpcore2", "mcp", "pydantic", "markdown_it")
HEAVY = ("aiosqlite", "asyncio", "cattrs", "regex", "sqlite3", "dragoman.testing")

MANIFEST = """
manifest = 1

[platforms.telegram]
token = { env = "TELEGRAM_TOKEN" }

[runtimes.assistant]
plugin = "openai"
instructions = "Help."
api_key = { env = "MODEL_KEY" }

[profiles.default]
runtime = "assistant"

[access]
owners = ["telegram:700000001"]
"""

SCRIPT = """
import sys, json
from dragoman.cli.main import main
sys.stdout, out = sys.stderr, sys.stdout
try:
    code = main(sys.argv[1:])
except SystemExit as end:
    code = end.code or 0
print(json.dumps([code, sorted(sys.modules)]), file=out)
"""


def closure(name):
    """The distribution and everything that installing it brings, on this Python."""
    found, waiting = set(), [canonicalize_name(name)]
    while waiting:
        current = waiting.pop()
        if current in found:
            continue
        found.add(current)
        for line in importlib_metadata.distribution(current).requires or ():
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                waiting.append(canonicalize_name(requirement.name))
    return found


def test_core_and_telegram_are_at_most_19_distributions():
    """E2: who runs a Telegram bot installs no other platform and no model SDK."""
    distributions = closure("dragoman-telegram")
    assert len(distributions) <= 19, sorted(distributions)
    assert not distributions & {"openai", "openai-agents", "dragoman-openai"}


def test_core_and_discord_are_at_most_18_distributions():
    """E2: nor does who runs a Discord bot; signatures are checked by an extra."""
    distributions = closure("dragoman-discord")
    assert len(distributions) <= 18, sorted(distributions)
    assert not distributions & {"cryptography", "dragoman-telegram", "openai"}


def test_core_and_slack_are_at_most_18_distributions():
    """E2: the same, and none of Slack's own kits."""
    distributions = closure("dragoman-slack")
    assert len(distributions) <= 18, sorted(distributions)
    assert not distributions & {"slack-sdk", "slack-bolt", "aiohttp", "dragoman-telegram"}


@pytest.mark.parametrize("command", [["--help"], ["plugins"], ["check"], ["schema"]])
def test_commands_that_only_look_import_no_vendor_sdk(command, tmp_path):
    """E2, E5: a command that starts nothing imports nothing that runs."""
    (tmp_path / "dragoman.toml").write_text(MANIFEST)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *command],
        cwd=tmp_path,
        env={
            "HOME": str(tmp_path),
            "TELEGRAM_TOKEN": "123456789:" + "A" * 35,
            "MODEL_KEY": "sk-dummy-key",
        },
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    code, modules = json.loads(done.stdout)
    assert code == 0, done.stderr
    assert not [module for module in modules if module.partition(".")[0] in VENDORS]


def test_importing_dragoman_imports_little():
    """Only values, protocols and hook specs: no event loop, no database, no converter."""
    script = "import sys, json, dragoman; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=110, check=True
    )
    assert not set(HEAVY) & set(json.loads(done.stdout))
