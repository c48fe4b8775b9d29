"""However a question ends: on each platform with the OpenAI runtime, and with Claude on one."""

from __future__ import annotations

import pytest

from peers.desk import desk, name_of
from peers.wires import WIRES

COLUMNS = {
    "telegram-openai": (),
    "discord-openai": (),
    "slack-openai": (),
    "telegram-claude": pytest.mark.proof,
}
TAKEN_BACK = {"openai": "the question about this call was taken back", "claude": "withdrawn"}
LATE = "That is over. act: "


@pytest.fixture(
    scope="module", params=[pytest.param(name, marks=mark) for name, mark in COLUMNS.items()]
)
def made(request, tmp_path_factory):
    """One gateway for a column; the test of a kill starts it again."""
    platform, runtime = request.param.split("-")
    with desk(tmp_path_factory.mktemp("desk"), WIRES[platform](9), runtime) as found:
        yield found


@pytest.fixture
def room(made):
    """A room that no other test has."""
    return next(made.free)


def test_what_is_approved_runs_once(made, room):
    """B12, D9, FC-APR-05: the model is told what it did, and a second press that it is over."""
    (card,) = made.ask(room, "ada", "paint")
    assert list(card.buttons) == ["Approve", "Deny", "Always here"]
    assert made.acted("paint") == 0
    made.press(room, card, "Approve")
    made.until_said(room, "That was ada.")
    made.until_ended(room, "act: approved by Ada.")
    assert (made.acted("paint"), made.results("ada")) == (1, ["paint is done."])
    made.press(room, card, "Deny")
    made.until_told(f"{LATE}approved.")
    assert made.acted("paint") == 1


def test_what_is_denied_does_not_run(made, room):
    """B12, D9: by a button without a reason, and by a command with one that the model is told."""
    (card,) = made.ask(room, "ben", "sand")
    made.press(room, card, "Deny")
    made.until_said(room, "That was ben.")
    (first,) = made.results("ben")
    (_, card) = [*made.cards(room), *made.ask(room, "cyd", "saw")]
    made.wire.say(room, f"/deny {name_of(card)} not on a Sunday")
    made.until_said(room, "That was cyd.")
    made.until_ended(room, *["act: denied by Ada."] * 2)
    second = made.results("cyd")[-1]
    assert "Not run: a person was asked about this call, and denied it." in first
    assert 'Their words: "not on a Sunday"' in second
    assert "Their words" not in first
    assert (made.acted("sand"), made.acted("saw")) == (0, 0)


@pytest.mark.proof
def test_what_nobody_decides_in_time_does_not_run(made):
    """FC-APR-04: the model is told that nobody refused, and who comes late that it is over."""
    (card,) = made.ask(made.hasty, "dot", "weld")
    made.until_said(made.hasty, "That was dot.")
    made.until_ended(made.hasty, "act: not decided in time.")
    assert "nobody decided in time" in made.results("dot")[0]
    made.press(made.hasty, card, "Approve")
    made.until_told(f"{LATE}not decided in time.")
    assert made.acted("weld") == 0


def test_what_is_stopped_while_it_waits_does_not_run(made, room):
    """FC-APR-04, B11: the card says so, and the model is told with the next message."""
    (card,) = made.ask(room, "eve", "melt")
    made.wire.say(room, "/stop")
    made.until_said(room, "Stopped.")
    made.until_ended(room, "act: cancelled.")
    made.press(room, card, "Approve")
    made.until_told(f"{LATE}cancelled.")
    made.wire.say(room, "do you remember?")
    made.until_said(room, "Yes.")
    (told,) = made.results("eve")
    assert TAKEN_BACK[made.runtime] in told
    assert made.acted("melt") == 0


@pytest.mark.proof
def test_two_cards_pressed_in_reverse_order_are_told_apart(made, room):
    """B12, FC-APR-05: each decides about its own act. Claude asks about one thing at a time, so
    there the two are of two conversations."""
    if made.runtime == "claude":
        other = next(made.free)
        (first,), (second,) = made.ask(room, "flo", "glue"), made.ask(other, "gil", "drill")
        made.press(other, second, "Approve")
        made.until_said(other, "That was gil.")
        made.press(room, first, "Deny")
        made.until_said(room, "That was flo.")
        told = [*made.results("flo"), *made.results("gil")]
    else:
        first, second = made.ask(room, "flo", "glue", "drill")
        made.press(room, second, "Approve")
        made.until_decided(second)
        assert made.acted("drill") == 0
        made.press(room, first, "Deny")
        made.until_said(room, "That was flo.")
        made.until_ended(room, "act: denied by Ada.", "act: approved by Ada.")
        told = made.results("flo")
    assert "a person was asked about this call, and denied it." in told[0]
    assert told[1:] == ["drill is done."]
    assert (made.acted("glue"), made.acted("drill")) == (0, 1)


@pytest.mark.proof
def test_a_card_outlives_a_kill(made, room):
    """FC-APR-03, B7: pressed in the next process, its first press is no second one."""
    (card,) = made.ask(room, "hal", "carve")
    made.until_sent()
    made.restart()
    assert made.acted("carve") == 0
    made.press(room, card, "Approve")
    made.until_said(room, "That was hal.")
    made.until_ended(room, "act: approved by Ada.")
    assert (made.acted("carve"), made.results("hal")) == (1, ["carve is done."])
    assert not any("restart" in one.text for one in made.wire.shown(room))
