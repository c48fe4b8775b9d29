"""The recordings themselves, and what holds for each of them."""

import re

import pytest
from claude_agent_sdk import _cli_version

from dragoman import Failed, Finished, TextDelta, ToolStarted
from plugins.claude_runtime.recordings import RECORDED, Played, raw
from plugins.claude_runtime.scenes import SCENES

HOST = re.compile(r"127\.0\.0\.1|localhost|/somewhere|canary|ECONNREFUSED|settings|variable")


def test_they_are_of_the_program_that_is_installed():
    """Another version may say other things: record again, and look at what differs."""
    heard = [one for scene in SCENES for one in raw(scene)]
    versions = {one["claude_code_version"] for one in heard if one.get("subtype") == "init"}
    assert versions == {_cli_version.__cli_version__}
    assert {path.stem for path in RECORDED.iterdir()} == set(SCENES)


def test_they_tell_nothing_of_the_machine():
    for path in RECORDED.iterdir():
        assert not re.search(r'"/(?!somewhere)\w+/|/home/|/root|/tmp', path.read_text()), path


@pytest.mark.parametrize("scene", SCENES)
def test_each_turn_keeps_the_rules_and_quotes_nobody(scene):
    """D13, FC-SDK-02: the program's own words, of hosts, settings and messages, reach nobody."""
    played = Played(scene, thinking=True)
    if scene == "unknown_session":
        assert played.events == []
        return
    end = played.end
    if isinstance(end, Failed | Finished):
        played.grammar.feed(end)
    assert not HOST.search(" ".join(played.texts))
    assert not HOST.search(getattr(end, "detail", ""))
    told = [one.tool for one in played.of(ToolStarted)]
    assert not [tool for tool in told if "mcp__" in tool or tool == "StructuredOutput"]
    deltas = "".join(one.text for one in played.of(TextDelta))
    assert deltas or not played.texts or scene == "shape"
