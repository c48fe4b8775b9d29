"""The judge and the explanations, without any gateway; and that the mutants still fit."""

import pytest

from crash.conductor import Conductor
from crash.explain import Scar, explain
from crash.judge import judge
from crash.ledger import Ledger
from crash.mutants import MUTANTS
from crash.points import Passed, Point, common, each_passage, one_per_site
from crash.scene import Said, Seen

ANN = Said("1", "hello", "one two three")
BIS = Said("1", "again", "four")
CUT = "*(interrupted by a restart)*"
NOTICE = "*(a restart interrupted this before there was an answer; please ask again)*"
REPEAT = "*(this may be a repeat)*"


def judged(*texts, said=(ANN,)):
    return judge(said, [Seen("1", str(number), text) for number, text in enumerate(texts)])


def test_an_answer_shown_once_is_no_fault():
    assert judged("one two three") == judge((), ())


def test_silence_is_a_loss():
    assert judged().lost
    assert judged("four", said=(ANN, BIS)).lost == ("1: 'hello'",)


def test_an_answer_in_another_chat_is_none():
    judgement = judge((ANN,), [Seen("2", "1", "one two three")])
    assert judgement.lost
    assert judgement.stray


def test_a_second_showing_is_doubled_and_a_marked_one_is_counted():
    assert judged("one two three", "one two three").doubled
    repeated = judged("one two three", f"{REPEAT}\n\none two three")
    assert not repeated.doubled
    assert len(repeated.marked) == 1


def test_a_marked_repeat_alone_is_an_answer():
    assert not judged(f"{REPEAT}\n\none two three").lost


def test_a_cut_answer_counts_only_with_its_mark():
    cut = judged(f"one two\n\n{CUT}")
    assert (cut.lost, cut.stray, cut.interrupted) == ((), (), 1)
    bare = judged("one two")
    assert bare.lost
    assert bare.stray


def test_what_ran_last_may_stand_above_the_mark():
    cut = judged(f"one two\n\n*(`note` …)*\n\n{CUT}")
    assert (cut.lost, cut.stray, cut.interrupted) == ((), (), 1)
    bare = judged(f"*(`note` …, `helper` `fetch`, 45 s …)*\n\n{CUT}")
    assert (bare.lost, bare.stray, bare.interrupted) == ((), (), 1)
    assert judged("*(`note` …)*").stray
    assert judged(CUT).stray


def test_a_notice_stands_for_one_unanswered_message():
    assert judged(NOTICE).interrupted == 1
    assert judged(NOTICE, said=(ANN, BIS)).lost == ("1: 'again'",)
    assert judged("one two three", NOTICE).doubled


DRAWN = Said("1", "draw", "one two three", "a.png")


def test_a_whole_answer_owes_its_file_once():
    assert judged("one two three", "a.png", said=(DRAWN,)) == judge((), ())
    assert judged("one two three", said=(DRAWN,)).lost == ("1: 'draw': its file",)
    assert judged("one two three", "a.png", "a.png", said=(DRAWN,)).doubled
    marked = judged("one two three", "a.png", f"{REPEAT}\n\na.png", said=(DRAWN,))
    assert (marked.lost, marked.doubled, len(marked.marked)) == ((), (), 1)


def test_a_cut_answer_owes_no_file():
    assert judged(f"one\n\n{CUT}", said=(DRAWN,)).lost == ()
    assert judged(NOTICE, said=(DRAWN,)).lost == ()


def test_a_placeholder_is_stray():
    assert judged("one two three", "…").stray


def explained(*, certain, point="call.send:1:applied", doubtful=1, stray=()):
    scar = Scar(Ledger(doubtful=doubtful), (Seen("1", "m1", "…"),))
    return explain(
        Point.parse(point),
        [scar],
        certain=certain,
        marked=("repeat",),
        uncertain=1,
        stray=stray,
    )


def test_a_mark_is_explained_only_where_nobody_could_know():
    assert [one.allowed for one in explained(certain=False)] == [True, True]
    assert [one.allowed for one in explained(certain=True)] == [False, True]
    assert [one.allowed for one in explained(certain=False, doubtful=0)] == [False, False]


def test_more_stray_messages_than_the_kill_left_behind_are_not_explained():
    assert explained(certain=False, stray=("…",))[-1].allowed
    assert not explained(certain=False, stray=("…", "…"))[-1].allowed


def test_a_point_is_read_as_it_is_written():
    point = Point("commit.Finish", 2, "after")
    assert Point.parse(str(point)) == point
    with pytest.raises(ValueError, match="no such stage"):
        Point.parse("commit.Finish:2:later")


def test_only_points_that_every_recording_passed_are_used():
    first, second = Passed(), Passed()
    both = Point("call.edit", 1, "arrived")
    first.add([both, Point("call.edit", 2, "arrived")])
    second.add([both])
    assert common([first, second]) == [both]


def test_a_sample_has_one_point_for_each_site_and_stage():
    points = [Point("call.send", number, "arrived") for number in (1, 2, 3)]
    points.append(Point("call.send", 1, "applied"))
    assert one_per_site(points) == [points[1], points[3]]


def test_a_larger_sample_cuts_each_passage_at_least_once():
    stages = ("after", "before")
    points = [Point("commit.EndSend", number, stage) for number in (1, 2, 3) for stage in stages]
    points.append(Point("commit.Pause", 1, "after"))
    chosen = each_passage(points)
    assert [(one.ordinal, one.stage) for one in chosen if one.site == "commit.EndSend"] == [
        (1, "before"),
        (2, "after"),
        (2, "before"),
        (3, "before"),
    ]
    assert points[-1] in chosen


def test_the_gateway_is_killed_once_and_then_left_alone():
    kills = []
    conductor = Conductor(lambda: kills.append("killed"))
    conductor.begin(Point("call.send", 2, "applied"))
    assert conductor.at_call("send", conductor.call("send"), "applied")
    assert not conductor.at_call("send", conductor.call("send"), "applied")
    conductor.stand_back()
    assert conductor.at_call("send", 2, "applied")
    assert kills == ["killed"]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_each_mutant_still_fits_the_product(mutant, tmp_path):
    """What a mutant replaces is there exactly once: else it would break nothing, unnoticed."""
    written = mutant.write(tmp_path) / "dragoman" / mutant.file
    assert mutant.new in written.read_text()
