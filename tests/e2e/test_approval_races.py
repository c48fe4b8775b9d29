"""Two people who press at once: what was approved ran once, and nothing else did."""

from __future__ import annotations

import threading

import pytest

from peers.desk import desk, plain, until
from peers.wires import ADA, BEN, WIRES

pytestmark = [pytest.mark.proof, pytest.mark.alone]

ROOMS, ROUNDS = 10, 10
COLUMNS = ("telegram-openai", "discord-openai", "slack-openai", "telegram-claude")
OUTCOMES = {"act: approved by Ada.": 1, "act: denied by Ben.": 0}


@pytest.mark.parametrize("column", COLUMNS)
def test_fc_apr_05_a_hundred_races_have_one_winner_each(column, tmp_path):
    """FC-APR-05, invariant 8: Ada approves and Ben denies, and whoever comes second is told."""
    platform, runtime = column.split("-")
    with desk(tmp_path, WIRES[platform](1 + ROOMS), runtime) as made:
        outcomes = [one for number in range(ROUNDS) for one in races(made, number)]
        until(lambda: len(told(made)) == len(outcomes))
        assert all(plain(one).startswith("That is over. act: ") for one in told(made))
    assert len(outcomes) == ROOMS * ROUNDS
    assert set(outcomes) == set(OUTCOMES)


def told(made):
    """Return what people were told whose press came second."""
    return [text for who in (ADA, BEN) for text in made.wire.told(who)]


def races(made, number):
    """Let two people press in each room at once; return what the cards say in the end."""
    rooms = made.wire.rooms[1:]
    names = {room: f"{number} in {place}" for place, room in enumerate(rooms)}
    for room, name in names.items():
        made.want(room, name, name)
    until(lambda: all(len(made.cards(room)) == number + 1 for room in rooms))
    cards = {room: made.cards(room)[-1] for room in rooms}
    together = threading.Barrier(2 * ROOMS)

    def press(room, label, who):
        together.wait(30)
        made.press(room, cards[room], label, who)

    pairs = [("Approve", ADA), ("Deny", BEN)]
    threads = [
        threading.Thread(target=press, args=(room, *one))
        for place, room in enumerate(rooms)
        for one in pairs[:: 1 if place % 2 else -1]
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    for room, name in names.items():
        made.until_said(room, f"That was {name}.")
    until(lambda: not any(one.buttons for room in rooms for one in made.cards(room)))
    said = {room: plain(made.cards(room)[-1].text).splitlines()[-1] for room in rooms}
    assert {room: made.acted(names[room]) for room in rooms} == {
        room: OUTCOMES[outcome] for room, outcome in said.items()
    }
    return said.values()
