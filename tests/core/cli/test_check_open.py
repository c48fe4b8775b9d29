"""``dragoman check --open``: what only opening a component can find."""

import subprocess
import sys
from pathlib import Path

DRAGOMAN = Path(sys.executable).parent / "dragoman"

AGENTS = """
from agents import Agent

careless = Agent(name="twin", instructions="x", handoffs=[Agent(name="twin")])
careful = Agent(name="careful", instructions="x")
"""

MANIFEST = """
manifest = 1
[platforms.console]
[runtimes.careless]
plugin = "openai"
agent = "my_agents:careless"
base_url = "http://127.0.0.1:9/v1"
[runtimes.lost]
plugin = "openai"
agent = "my_agents:nobody"
base_url = "http://127.0.0.1:9/v1"
[runtimes.careful]
plugin = "openai"
agent = "my_agents:careful"
base_url = "http://127.0.0.1:9/v1"
[profiles.default]
runtime = "careless"
[profiles.other]
runtime = "lost"
[profiles.third]
runtime = "careful"
[access]
owners = ["console:local"]
"""


def check(folder, *arguments):
    return subprocess.run(
        [DRAGOMAN, "check", *arguments],
        cwd=folder,
        env={"HOME": str(folder)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )


def test_agents_that_cannot_be_used_are_found_before_anything_starts(tmp_path):
    """D2: what would fail at the first message, whatever it is."""
    (tmp_path / "my_agents.py").write_text(AGENTS)
    (tmp_path / "dragoman.toml").write_text(MANIFEST)
    assert check(tmp_path).returncode == 0
    done = check(tmp_path, "--open")
    assert done.returncode == 2
    lines = done.stderr.splitlines()
    assert len(lines) == 2, done.stderr
    assert "runtimes.careless" in lines[0]
    assert "two agents are named 'twin'" in lines[0]
    assert "runtimes.lost" in lines[1]
    assert not (tmp_path / ".dragoman").exists()


def test_what_opens_is_fine(tmp_path):
    (tmp_path / "my_agents.py").write_text(AGENTS)
    text = MANIFEST.replace("my_agents:careless", "my_agents:careful")
    (tmp_path / "dragoman.toml").write_text(text.replace("my_agents:nobody", "my_agents:careful"))
    done = check(tmp_path, "--open")
    assert done.returncode == 0, done.stderr
    assert "runtimes.careless: openai" in done.stdout
