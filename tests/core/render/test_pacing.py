"""When a growing answer is shown next."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.render.pacing import Pace

PACE = Pace(interval=3.0, first_chars=80, first_delay=1.0)


def due(now, pace=PACE, **facts):
    return pace.due(now, **{"pending": 1, "since": 10.0, "shown": False, **facts})


def test_fc_edt_04_nothing_is_due_when_nothing_visible_changed():
    assert due(99.0, pending=0, shown=True, changed=1.0) is None
    assert due(99.0, pending=0, ended=True) is None


def test_a_first_text_waits_for_enough_characters_or_a_second():
    assert due(10.2) == 11.0
    assert due(10.2, pending=80) == 10.2
    assert due(12.0) == 12.0


def test_a_first_text_keeps_its_distance_from_what_the_chat_showed_before():
    assert due(10.2, pending=80, changed=9.0) == 12.0


def test_the_next_edit_waits_from_the_end_of_the_one_before():
    assert due(10.2, shown=True, changed=10.0) == 13.0
    assert due(14.0, shown=True, changed=10.0) == 14.0


def test_a_rate_limit_wins_over_everything():
    assert due(12.0, pending=999, not_before=200.0) == 200.0
    assert due(12.0, shown=True, changed=1.0, ended=True, not_before=200.0) == 200.0
    assert due(12.0, not_before=5.0) == 12.0


def test_an_answer_that_has_ended_waits_for_no_more_characters():
    assert due(10.2, ended=True) == 10.2
    assert due(10.2, ended=True, shown=True, changed=10.0) == 13.0


@given(st.lists(st.tuples(st.floats(0, 2), st.integers(0, 50)), max_size=60), st.floats(0, 5))
def test_edits_keep_their_distance_and_the_last_text_is_always_shown(arrivals, latency):
    """B6: throttled to the platform's rate, and the last edit always lands."""
    now, since, changed, pending, shown = 0.0, 0.0, None, 0, False
    ends = []
    for gap, count in [*arrivals, (0.0, 0)]:
        arrival = now + gap
        while (
            at := PACE.due(now, pending=pending, since=since, shown=shown, changed=changed)
        ) and (at <= arrival):
            assert changed is None or at - changed >= PACE.interval - 1e-9
            now = changed = at + latency
            shown, pending = True, 0
            ends.append(changed)
        now = max(now, arrival)
        since = since if pending else now
        pending += count
    last = PACE.due(now, pending=pending, since=since, shown=shown, changed=changed, ended=True)
    assert (last is None) == (pending == 0)


def test_an_impossible_pace_is_refused():
    for field in ("interval", "first_chars", "first_delay"):
        with pytest.raises(ValueError, match=field):
            attrs.evolve(PACE, **{field: -1})
