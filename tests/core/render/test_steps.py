"""Lines about tools, handoffs and notices."""

import pytest

from dragoman.render.answer import STEPS, Answer
from dragoman.render.preview import View
from dragoman.render.text import OpenText
from dragoman.runevents import (
    Failed,
    FailureKind,
    Finished,
    Handoff,
    LongToolHint,
    Notice,
    TextBlock,
    TextDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
)


def fed(*events):
    answer = Answer(1 << 20)
    for event in events:
        answer.feed(event)
    return answer


SEARCH = ToolStarted("1", "search")


@pytest.mark.parametrize(
    ("events", "line"),
    [
        ([SEARCH], "*(`search` …)*"),
        ([SEARCH, ToolProgress("1", "3 of 8\npages")], "*(`search`: `3 of 8 pages`)*"),
        ([SEARCH, LongToolHint("1", 45.0)], "*(`search`, 45 s …)*"),
        ([SEARCH, LongToolHint("1", 119.6)], "*(`search`, 2 min …)*"),
        ([SEARCH, ToolStarted("2", "fetch", "scout")], "*(`search` …, `scout` `fetch` …)*"),
        ([SEARCH, ToolFinished("1", "search")], ""),
        ([ToolFinished("9", "never begun"), ToolProgress("9", "x")], ""),
        ([Handoff("triage", "billing")], "*(`triage` → `billing`)*"),
        ([Handoff("triage", "billing"), TextDelta("1", "Hello")], ""),
        ([Notice("the model is busy; trying *again*")], "*(the model is busy; trying ·again·)*"),
        ([Notice("busy"), SEARCH], "*(`search` …)*"),
        ([ToolStarted("1", "a`b\u202e\n"), ToolStarted("2", " ")], "*(`a'b` …, `?` …)*"),
        (
            [ToolStarted(str(n), f"t{n}") for n in range(5)],
            "*(`t0` …, `t1` …, `t2` …, and 2 more)*",
        ),
    ],
)
def test_the_status_line_says_what_happens_now(events, line):
    """B5, B6."""
    assert fed(*events).status == line


def test_foreign_words_are_cut():
    status = fed(ToolStarted("1", "x" * 10_000), ToolProgress("1", "y" * 10_000)).status
    assert len(status) < 200


RUN = [
    TextBlock("1", "I look it up."),
    SEARCH,
    ToolFinished("1", "search"),
    ToolStarted("2", "fetch"),
    ToolFinished("2", "fetch", failed=True),
    Handoff("triage", "billing"),
    TextBlock("2", "It is 42."),
]
ALL = (
    "I look it up.\n\n*(`search` done)*\n*(`fetch` failed)*\n*(`triage` → `billing`)*\n\nIt is 42."
)


@pytest.mark.parametrize(
    ("verbosity", "whole"),
    [
        ("final", "I look it up.\n\nIt is 42."),
        ("status", "I look it up.\n\nIt is 42."),
        ("full", ALL),
    ],
)
def test_what_stays_is_a_matter_of_verbosity(verbosity, whole):
    view = View(verbosity)
    assert view.whole(fed(*RUN), Finished()) == whole


def test_what_grows_shows_what_runs_below_the_text():
    answer = fed(*RUN[:2])
    assert View("status").growing(answer, OpenText()) == "I look it up.\n\n*(`search` …)*"
    assert View("full").growing(answer, OpenText()) == "I look it up.\n\n*(`search` …)*"
    assert View("status", veiled=True).growing(answer, OpenText()) == "*(`search` …)*"


def test_a_status_line_stands_below_code_that_is_still_open():
    answer = fed(TextDelta("1", "```py\nx = 1"), SEARCH)
    assert View("status").growing(answer, OpenText()) == ("```py\nx = 1\n```\n\n*(`search` …)*")


def test_a_failed_turn_keeps_its_steps_and_says_what_became_of_the_last():
    answer = fed(*RUN[:2], Failed(FailureKind.TIMEOUT))
    assert View("full").whole(answer, answer.end) == (
        "I look it up.\n\n*(`search` not finished)*\n\n*(this took too long and was stopped)*"
    )


def test_fc_emp_01_a_run_of_tools_only_says_that_there_is_no_answer():
    answer = fed(SEARCH, ToolFinished("1", "search"))
    assert View("status").whole(answer, Finished()) == "*(no answer)*"
    assert View("full").whole(answer, Finished()) == "*(`search` done)*\n\n*(no answer)*"


SILENT = View("status", ("NO_REPLY", ""))


@pytest.mark.parametrize("text", ["NO_REPLY", " NO_REPLY\n", "", "\n", "\u200b"])
def test_fc_emp_01_an_answer_that_is_a_marker_of_silence_shows_nothing(text):
    answer = fed(TextBlock("1", text))
    assert SILENT.growing(answer, OpenText()).strip() in {"", "\u200b"}
    assert SILENT.whole(answer, Finished()) == ""


def test_text_that_only_begins_like_a_marker_is_shown_once_it_goes_on():
    answer = fed(TextDelta("1", "NO_"))
    assert SILENT.growing(answer, OpenText()) == ""
    answer.feed(TextDelta("1", "ONE knows"))
    assert SILENT.growing(answer, OpenText()) == "NO_ONE knows"
    assert SILENT.whole(fed(TextBlock("1", "NO_")), Finished()) == "NO_"


def test_a_failure_is_never_silent():
    assert SILENT.whole(fed(TextBlock("1", "NO_REPLY")), Failed(FailureKind.TIMEOUT))


def test_invariant_10_a_turn_keeps_so_many_steps():
    answer = fed(
        *(
            event
            for n in range(STEPS * 3)
            for event in (ToolStarted(str(n), "loop"), ToolFinished(str(n), "loop"))
        )
    )
    assert answer.full.count("loop") == STEPS
