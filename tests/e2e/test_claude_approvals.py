"""A tool that asks first, in the real program of the Claude Agent SDK, over Telegram."""

import re
import sys

import pytest

from peers.botapi import BotApi
from peers.claude_deployment import deployed, unpaired, until, working_in
from peers.claude_process import ClaudePeer

PEOPLE = ("ada", "ben", "cyd", "gil", "hal")


def plan(who):
    asked = {"call": "delete_files", "with": {"path": who}}
    again = {"call": "delete_files", "with": {"path": f"{who}2"}}
    return {
        f"delete for {who}": [{"say": "I shall."}, asked, {"say": f"That was {who}."}],
        f"delete twice for {who}": [asked, {"say": "And now?"}, again, {"say": "Both."}],
        f"remember {who}": [{"say": f"I know, {who}."}],
    }


@pytest.fixture(scope="module")
def chats(tmp_path_factory):
    folder = tmp_path_factory.mktemp("claude") / "deployment"
    plans = {k: v for who in PEOPLE for k, v in plan(who).items()}
    with BotApi() as api, ClaudePeer(plans) as model:
        chats = deployed(folder, api, model, PEOPLE, {"gil": "hasty"})
        with chats.gateway:
            yield chats
            assert chats.gateway.stop() == 0


def goes_on(chats, who):
    """The next message is answered, and no request was one that the service refuses."""
    chats.say(who, f"remember {who}")
    chats.until(who, f"I know, {who}.")
    assert [one for body in chats.bodies(who) for one in unpaired(body)] == []
    return chats.heard(who)[-1]


def told(chats, who):
    """What the model was told that came of calls."""
    return [text for role, text in chats.heard(who)[-1] if role == "tool"]


def test_invariant_8_a_tool_runs_when_it_is_approved_and_the_history_has_it(chats):
    """B12, D9, FC-SDK-03: asked, approved, run once; the next turn has the call and its output."""
    chats.say("ada", "delete for ada")
    name = chats.question("ada")
    (question,) = [one for one in chats.shown("ada") if "/approve" in one]
    assert "delete_files" in question
    assert re.search(r'"path": "ada"', question)
    assert chats.done("delete-ada") == 0
    chats.say("ada", f"/approve {name}")
    chats.until("ada", "That was ada.")
    assert chats.done("delete-ada") == 1
    assert {"I shall.", "That was ada."} <= {*chats.shown("ada")}
    assert goes_on(chats, "ada") == [
        ("user", "delete for ada"),
        ("assistant", "I shall."),
        ("tool", "ada is gone."),
        ("assistant", "That was ada."),
        ("user", "remember ada"),
    ]


@pytest.mark.proof
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_fc_sdk_01_a_person_may_take_any_time_for_each_of_several_questions(chats):
    """FC-SDK-01, B12: no program waits, so nothing can run out; the second call asks as well."""
    chats.say("hal", "delete twice for hal")
    for count, what in enumerate(("hal", "hal2"), 1):
        name = chats.question("hal", count)
        until(lambda: not chats.model.busy())
        alive = set(working_in(chats.gateway.folder).values())
        workspace = chats.rows("SELECT session_id FROM agent_runs WHERE state = 'waiting'")
        assert len(workspace) == 1
        mine = working_in(chats.gateway.folder / ".dragoman" / workspace[0][0])
        assert mine == {}, alive
        assert chats.done(f"delete-{what}") == 0
        chats.say("hal", f"/approve {name}")
    chats.until("hal", "Both.")
    assert (chats.done("delete-hal"), chats.done("delete-hal2")) == (1, 1)
    assert told(chats, "hal") == ["hal is gone.", "hal2 is gone."]
    goes_on(chats, "hal")


def test_invariant_8_a_tool_that_is_denied_does_not_run_and_the_model_knows_why(chats):
    """B12, D9, FC-SDK-03: the reason reaches the model as a person's words."""
    chats.say("ben", "delete for ben")
    chats.say("ben", f"/deny {chats.question('ben')} not that folder")
    chats.until("ben", "That was ben.")
    assert chats.done("delete-ben") == 0
    (why,) = told(chats, "ben")
    assert "Not run: a person was asked" in why
    assert "not that folder" in why
    goes_on(chats, "ben")


@pytest.mark.proof
def test_a_question_that_nobody_answers_in_time_counts_as_no(chats):
    """B12, FC-SDK-03: the model is told that nobody did."""
    chats.say("gil", "delete for gil")
    chats.until("gil", "That was gil.")
    assert chats.done("delete-gil") == 0
    (why,) = told(chats, "gil")
    assert "nobody decided in time" in why
    goes_on(chats, "gil")


@pytest.mark.proof
def test_a_stop_while_a_person_is_asked(chats):
    """B12, FC-SDK-03, FC-RST-04: the call never runs, and no later turn fails for it."""
    chats.say("cyd", "delete twice for cyd")
    name = chats.question("cyd")
    chats.say("cyd", "/stop")
    chats.until("cyd", "Stopped.")
    chats.say("cyd", f"/approve {name}")
    chats.say("cyd", "delete for cyd")
    chats.say("cyd", f"/approve {chats.question('cyd', 2)}")
    chats.until("cyd", "That was cyd.")
    assert chats.done("delete-cyd") == 1
    assert "withdrawn" in told(chats, "cyd")[0]
    goes_on(chats, "cyd")
