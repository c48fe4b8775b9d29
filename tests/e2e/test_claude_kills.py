"""Telegram, a gateway, the real program of the Claude Agent SDK and a model server, through kills."""

import os
import signal
import sys
import time

import pytest

from peers.botapi import BotApi
from peers.claude_deployment import PATIENCE, deployed, unpaired, until, working_in
from peers.claude_process import ClaudePeer

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
PEOPLE = ("ada", "ben", "cyd", "dot", "eve", "flo", "gil", "hal")
PROFILES = {"flo": "again", "gil": "again"}
"""Whose turns are run again when a kill has cut them off; the others are told."""
BEGUN, REST = "It was a dark and stormy night.", " Then the sun rose."
SHELL = "echo begun >> shell; sleep 300 & (setsid sleep 301 &); nohup sleep 302"
ENDED = "(something went wrong, and the answer could not be finished)"
RESTART = "(interrupted by a restart)"


def plan(who):
    measured = [
        {"say": "Let me see."},
        {"call": "measure", "with": {"place": who}},
        {"say": f"It is 21 degrees, {who}."},
    ]
    deleted = [
        {"say": "I shall."},
        {"call": "delete_files", "with": {"path": who}},
        {"say": f"That was {who}."},
    ]
    return {
        f"measure for {who}": measured,
        f"delete for {who}": deleted,
        f"tell {who}": [{"say": [BEGUN]}, {"hold": True}, {"say": [REST]}],
        f"work for {who}": [{"call": "Bash", "with": {"command": SHELL}}, {"say": "Worked."}],
        f"remember {who}": [{"say": f"I know, {who}."}],
    }


@pytest.fixture(scope="module")
def chats(tmp_path_factory):
    folder = tmp_path_factory.mktemp("claude") / "deployment"
    with (
        BotApi() as api,
        ClaudePeer({k: v for who in PEOPLE for k, v in plan(who).items()}) as model,
    ):
        chats = deployed(folder, api, model, PEOPLE, PROFILES)
        with chats.gateway:
            yield chats
            assert chats.gateway.stop() == 0
        until(lambda: not working_in(folder), 1)


@pytest.fixture(scope="module")
def killed(chats):
    """The chats after a kill that met text, tools and a question; and what lived 1 s after it."""
    gateway = chats.gateway
    chats.model.hold()
    chats.say("eve", "delete for eve")
    chats.question("eve")
    chats.until_sent()
    (gateway.folder / "hold").touch()
    for who in ("ben", "flo"):
        chats.say(who, f"tell {who}")
    for who in ("ben", "flo"):
        chats.until(who, BEGUN[:10])
    for who in ("cyd", "gil"):
        chats.say(who, f"measure for {who}")
    chats.say("dot", "work for dot")
    workspaces = gateway.folder / ".dragoman"
    until(lambda: chats.done("measure-cyd") and chats.done("measure-gil"))
    until(lambda: [*workspaces.rglob("shell")])
    until(lambda: list(working_in(gateway.folder).values()).count("sleep") == 3)
    lived = working_in(gateway.folder)
    gateway.kill()
    time.sleep(1)  # what is promised is a second
    left = working_in(gateway.folder)
    (gateway.folder / "hold").unlink()
    chats.model.release()
    gateway.start()
    return chats, lived, left


def test_two_turns_with_a_tool(chats):
    """D11, D5: the second turn is told of the first one's call and its result."""
    chats.say("ada", "measure for ada")
    chats.until("ada", "It is 21 degrees, ada.")
    chats.say("ada", "remember ada")
    chats.until("ada", "I know, ada.")
    assert chats.done("measure-ada") == 1
    assert chats.shown("ada") == ["Let me see.\n\nIt is 21 degrees, ada.", "I know, ada."]
    assert chats.heard("ada")[-1] == [
        ("user", "measure for ada"),
        ("assistant", "Let me see."),
        ("tool", "It is 21 degrees in ada."),
        ("assistant", "It is 21 degrees, ada."),
        ("user", "remember ada"),
    ]


def goes_on(chats, who):
    """What a person says next is answered by a model that knows all that people have said."""
    said = [text for role, text in chats.heard(who)[-1] if role == "user"]
    before = len(chats.shown(who))
    chats.say(who, f"remember {who}")
    chats.api.wait_for(lambda: len(chats.shown(who)) > before, PATIENCE)
    assert chats.shown(who)[before:] == [f"I know, {who}."]
    known = [text for role, text in chats.heard(who)[-1] if role == "user"]
    assert known == [*said, f"remember {who}"]
    assert [one for body in chats.bodies(who) for one in unpaired(body)] == []


def kill_programs(chats):
    """Kill every program, as the kernel does when it needs memory."""
    for pid, name in working_in(chats.gateway.folder).items():
        if name == "claude":
            os.kill(pid, signal.SIGKILL)


def test_a_program_that_is_killed_alone(chats):
    """FC-LEK-01, D11: people are told of a turn that it cuts off; idle ones nobody misses."""
    chats.model.hold()
    chats.say("hal", "tell hal")
    chats.until("hal", BEGUN[:10])
    kill_programs(chats)
    chats.until("hal", ENDED)
    chats.model.release()
    goes_on(chats, "hal")
    kill_programs(chats)
    components = chats.gateway.folder / ".dragoman" / "components"
    until(lambda: not [*components.glob("*/runs/*")])
    goes_on(chats, "hal")


@pytest.mark.proof
def test_nothing_lives_a_second_after_the_kill(killed):
    """FC-LEK-01, D11: no program, no guardian, and no command of a shell, whatever it detached."""
    _, lived, left = killed
    assert sorted(lived.values()).count("claude") >= 4
    assert left == {}


@pytest.mark.proof
def test_invariant_5_a_kill_in_the_text(killed):
    """B7, D11: what was shown stays, and says that it was cut off."""
    chats, *_ = killed
    chats.until("ben", RESTART)
    assert chats.shown("ben") == [f"{BEGUN}\n\n{RESTART}"]
    goes_on(chats, "ben")
    assert len(chats.shown("ben")) == 2


@pytest.mark.proof
def test_invariant_5_a_kill_in_the_text_of_a_turn_that_is_run_again(killed):
    """B7, D11: the same message becomes the whole answer; the model was told once what people said."""
    chats, *_ = killed
    chats.until("flo", REST)
    assert chats.shown("flo") == [BEGUN + REST]
    goes_on(chats, "flo")


@pytest.mark.proof
@pytest.mark.parametrize("who", ["cyd", "gil"])
def test_invariant_7_a_kill_in_a_tool(killed, who):
    """B7, D7, FC-RST-04: it ran once, people are told, and no later turn fails for it."""
    chats, *_ = killed
    chats.until(who, "restart")
    goes_on(chats, who)
    assert chats.done(f"measure-{who}") == 1


@pytest.mark.proof
def test_invariant_7_a_kill_in_a_command_of_the_program(killed):
    """B7, D7, FC-RST-04: the same holds for tools of the SDK."""
    chats, *_ = killed
    chats.until("dot", "restart")
    goes_on(chats, "dot")
    shells = list((chats.gateway.folder / ".dragoman").rglob("shell"))
    assert [one.read_text() for one in shells] == ["begun\n"]


@pytest.mark.proof
def test_invariant_8_a_kill_while_a_person_is_asked(killed):
    """B7, B12, D9: nothing lived for it; it is decided in the next life, and run once."""
    chats, *_ = killed
    name = chats.question("eve")
    assert chats.done("delete-eve") == 0
    chats.say("eve", f"/approve {name}")
    chats.until("eve", "That was eve.")
    assert chats.done("delete-eve") == 1
    assert chats.questions("eve") == [name]
    goes_on(chats, "eve")
