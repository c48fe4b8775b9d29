"""How turns of the real program of the Claude Agent SDK are ended: by people, and with the gateway."""

import sys

import pytest

from peers.botapi import BotApi
from peers.claude_deployment import deployed, unpaired, until, working_in
from peers.claude_process import ClaudePeer

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
PEOPLE = ("ada", "ben", "cyd")
INSIST = "trap '' TERM INT HUP; while :; do echo again >> beats; sleep 0.1; done"
PLAN = {
    "beat": [{"call": "Bash", "with": {"command": INSIST}}, {"say": "It ended."}],
    "tell": [{"say": ["It was a dark night."]}, {"hold": True}, {"say": [" The sun rose."]}],
    "endless": [{"say": ["And so on,"]}, {"pause": 300}, {"say": [" and so on."]}],
    "soon": [{"say": ["Wait for it."]}, {"pause": 1.0}, {"say": [" Here it is."]}],
    "remember": [{"say": "I know."}],
}


@pytest.fixture(scope="module")
def chats(tmp_path_factory):
    folder = tmp_path_factory.mktemp("claude") / "deployment"
    with BotApi() as api, ClaudePeer(PLAN) as model:
        chats = deployed(folder, api, model, PEOPLE, {}, "[limits]\ngrace = 3")
        with chats.gateway:
            yield chats


def test_fc_con_04_nothing_works_once_people_are_told_that_it_stopped(chats):
    """FC-CON-04, D8, invariant 9: a command that takes no hint is dead when "Stopped." is shown."""
    chats.say("ada", "beat")
    folder = chats.gateway.folder / ".dragoman"
    until(lambda: [*folder.rglob("beats")])
    (beats,) = folder.rglob("beats")
    until(lambda: beats.read_text().count("again") > 3)
    chats.say("ada", "/stop")
    chats.until("ada", "Stopped.")
    shells = [one for one in working_in(chats.gateway.folder).values() if one != "dragoman"]
    written = beats.read_text()
    assert "bash" not in shells
    assert "sleep" not in shells
    chats.say("ada", "remember ada")
    chats.until("ada", "I know.")
    assert beats.read_text() == written
    assert unpaired(chats.bodies("ada")[-1]) == []


@pytest.mark.proof
def test_a_stop_in_the_text_keeps_what_was_shown(chats):
    """FC-CON-04, D8: the model is told what people have seen, and is not asked any more."""
    chats.say("ben", "tell ben")
    chats.until("ben", "It was a dark")
    chats.say("ben", "/stop")
    chats.until("ben", "Stopped.")
    assert chats.model.busy() == 0
    assert "It was a dark night.\n\n(stopped)" in chats.shown("ben")
    chats.say("ben", "remember ben")
    chats.until("ben", "I know.")
    assert any("It was a dark night." in text for _, text in chats.heard("ben")[-1])


@pytest.mark.proof
def test_invariant_9_a_gateway_that_is_asked_to_end_lets_turns_finish(chats):
    """B9, D11: what is answered within the grace is shown whole, and no program is left."""
    chats.say("ben", "endless for ben")
    chats.until("ben", "And so on,")
    chats.say("cyd", "soon for cyd")
    chats.until("cyd", "Wait")
    assert chats.gateway.stop() == 0
    assert working_in(chats.gateway.folder) == {}
    assert chats.shown("cyd") == ["Wait for it. Here it is."]
    assert chats.shown("ben")[-1] == "And so on,\n\n(interrupted by a restart)"
    chats.gateway.start()
    chats.say("ben", "remember ben again")
    until(lambda: chats.shown("ben").count("I know.") == 2)
    assert any("And so on," in text for _, text in chats.heard("ben")[-1])
