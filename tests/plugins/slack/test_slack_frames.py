"""Which connections there should be, without any."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_slack.frames import LONGEST, Envelope, Hello, Leave, Roster, parse


@pytest.mark.parametrize(
    ("frame", "read"),
    [
        ({"type": "hello", "num_connections": 1}, Hello()),
        ({"type": "disconnect", "reason": "warning"}, Leave("warning")),
        ({"type": "disconnect"}, Leave("disconnect")),
        (
            {"type": "events_api", "envelope_id": "e", "payload": {"a": 1}, "retry_attempt": 2},
            Envelope("e", "events_api", {"a": 1}, 2),
        ),
        ({"type": "events_api"}, None),
        ([], None),
        (None, None),
    ],
)
def test_frames_are_what_they_say(frame: Any, read: Any) -> None:
    assert parse(json.dumps(frame)) == read


@given(st.text(max_size=30) | st.recursive(st.none() | st.text(), st.lists).map(json.dumps))
def test_no_frame_breaks_the_reader(text: str) -> None:
    parse(text)
    parse(json.dumps({"type": text, "envelope_id": text, "payload": text, "retry_attempt": text}))


def test_a_connection_that_announced_its_end_is_replaced_before_and_at_once() -> None:
    roster = Roster(1)
    first = roster.begin()
    assert roster.missing == 0
    first.since = 0.0
    first.leaving = True
    assert (roster.missing, roster.alive, roster.staying) == (1, True, 0)
    second = roster.begin()
    second.since = 1.0
    roster.lost(first, 2.0)
    assert (roster.missing, roster.staying, roster.not_before) == (0, 1, 0.0)


def test_connections_that_fail_early_are_replaced_later_each_time() -> None:
    roster, now, waits = Roster(1), 0.0, []
    for _ in range(8):
        one = roster.begin()
        one.since = now
        roster.lost(one, now + 1)
        waits.append(roster.not_before - now - 1)
        now = max(now + 1, roster.not_before)
    assert waits[0] <= 0
    assert waits[1:] == [1, 2, 4, 8, 16, LONGEST, LONGEST]
    steady = roster.begin()
    steady.since = now
    roster.lost(steady, now + 60)
    assert roster.not_before <= now + 60


def test_slacks_own_not_before_wins() -> None:
    roster = Roster(2)
    roster.lost(roster.begin(), 10.0, 45.0)
    assert roster.not_before == 55.0


STEPS = st.lists(
    st.tuples(st.sampled_from(["open", "leave", "lose", "refuse"]), st.integers(0, 3)), max_size=30
)


@given(st.integers(1, 4), STEPS)
def test_there_are_never_more_connections_than_wanted_and_always_one_on_its_way(
    wanted: int, steps: list[tuple[str, int]]
) -> None:
    roster, alive, now = Roster(wanted), [], 0.0
    for step, which in steps:
        while roster.missing > 0:
            alive.append(roster.begin())
        staying = [one for one in alive if not one.leaving]
        assert 1 <= len(staying) <= wanted
        one = alive[which % len(alive)]
        now += 1
        if step == "open" and one.since is None:
            one.since = now
        elif step == "leave" and one.since is not None:
            one.leaving = True
        elif step == "lose":
            alive.remove(one)
            roster.lost(one, now)
        elif step == "refuse" and one.since is None:
            alive.remove(one)
            roster.refused(one)
        assert 1 <= roster.wanted <= wanted
