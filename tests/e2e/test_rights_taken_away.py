"""Somebody is taken off the access list while what they have asked for waits for a decision."""

import pytest

from dragoman.flow.presses import NOT_ADMITTED
from peers.desk import desk, name_of, until
from peers.wires import ADA, BEN, WIRES

pytestmark = pytest.mark.proof


@pytest.mark.parametrize("platform", WIRES)
def test_who_may_no_more_decides_nothing_and_an_owner_still_does(platform, tmp_path):
    """Invariant 8, B10: neither by a button nor by a command."""
    with desk(tmp_path, WIRES[platform](2), "openai") as made:
        room = next(made.free)
        (card,) = made.ask(room, "ada", "paint")
        made.until_sent()
        ada = made.wire.users[ADA]
        made.gateway.manifest = made.gateway.manifest.replace(f'["{ada}"]', "[]")
        made.restart()
        made.press(room, card, "Approve")
        made.until_told(NOT_ADMITTED)
        made.wire.say(room, f"/approve {name_of(card)}")
        refused = "SELECT count(*) FROM inbound_events WHERE state = 'refused'"
        until(lambda: made.rows(refused) == [(2,)])
        assert made.rows("SELECT verdict FROM approvals") == [("open",)]
        assert made.acted("paint") == 0
        made.press(room, card, "Approve", BEN)
        made.until_said(room, "That was ada.")
        assert made.acted("paint") == 1
