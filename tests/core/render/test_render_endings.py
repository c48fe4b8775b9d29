"""How each ending of a turn looks."""

import pytest

from dragoman.render.endings import (
    INTERRUPTED_MARK,
    INTERRUPTED_NOTICE,
    NO_ANSWER,
    STOPPED_MARK,
    final_text,
    interrupted_text,
)
from dragoman.render.split import split
from dragoman.runevents import Cancelled, Failed, FailureKind, Finished, Paused


def test_a_finished_answer_stays_as_it_is():
    assert final_text("```\nopen", Finished()) == "```\nopen"


@pytest.mark.parametrize("text", ["", " \n", "\u200b", "```\n```"])
def test_fc_emp_01_a_blank_answer_is_a_short_visible_notice(text):
    assert final_text(text, Finished()) == NO_ANSWER
    assert split(NO_ANSWER, 64, len) == [NO_ANSWER]


@pytest.mark.parametrize("kind", FailureKind, ids=lambda kind: kind.value)
def test_every_failure_says_so_in_one_line_of_its_own_and_keeps_the_text(kind):
    """Invariant 12: what operators are told does not reach people."""
    end = Failed(kind, "detail-for-operators")
    alone = final_text("", end)
    assert alone.strip()
    assert "\n" not in alone
    assert "detail" not in alone
    assert alone not in {final_text("", Failed(other)) for other in FailureKind if other != kind}
    assert final_text("So far", end) == f"So far\n\n{alone}"


def test_a_stopped_answer_is_marked():
    assert final_text("So far", Cancelled()) == f"So far\n\n{STOPPED_MARK}"
    assert final_text("", Cancelled()) == STOPPED_MARK


def test_an_interrupted_answer_is_marked():
    assert interrupted_text("So far") == f"So far\n\n{INTERRUPTED_MARK}"
    assert interrupted_text(" ") == INTERRUPTED_NOTICE


def test_a_paused_turn_adds_nothing():
    assert final_text("So far", Paused("s")) == "So far"
    assert final_text("", Paused("s")) == ""


def test_a_mark_stands_outside_the_block_that_was_left_open():
    assert final_text("a\n```py\nx = 1\n", Cancelled()) == (
        f"a\n```py\nx = 1\n```\n\n{STOPPED_MARK}"
    )
    assert final_text("a\n```py\n", Cancelled()) == f"a\n\n{STOPPED_MARK}"


def test_marks_fit_into_the_room_that_streamed_parts_leave():
    assert max(len(f"\n\n{mark}") for mark in (STOPPED_MARK, INTERRUPTED_MARK)) <= 40
