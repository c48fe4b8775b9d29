"""The judge of the soak sees each kind of harm, and nothing where there is none."""

from collections import Counter

import attrs
import pytest

from soak.campaign import Plan, Result
from soak.judge import Judgement, Lane, judge

HERE, THERE = Lane(1, 1), Lane(-100, 2, 3)
SAID = {HERE: ["0 a", "1 b", "2 c"], THERE: ["0 x"]}
REPEAT = "(this may be a repeat)\n\n"
NOTICE = "(a restart interrupted this before there was an answer; please ask again)"


def seen(*here, there=("echo: 0 x",)):
    return judge(SAID, {HERE: list(enumerate(here)), THERE: list(enumerate(there))})


def test_each_answer_once_and_in_order_is_sound():
    assert seen("echo: 0 a", "echo: 1 b", "echo: 2 c") == Judgement()


@pytest.mark.parametrize(
    ("shown", "field", "found"),
    [
        (["echo: 0 a", "echo: 2 c"], "lost", ("1/None 1",)),
        (["echo: 0 a", "echo: 1 b", "echo: 1 b", "echo: 2 c"], "doubled", ("1/None 1: 2 times",)),
        (["echo: 1 b", "echo: 0 a", "echo: 2 c"], "disordered", ("1/None: [1, 0, 2]",)),
        (["echo: 0 a", "echo: 1", "echo: 1 b", "echo: 2 c"], "strange", ("1/None: 'echo: 1'",)),
    ],
)
def test_harm_is_seen(shown, field, found):
    judgement = seen(*shown)
    assert not judgement.sound
    assert getattr(judgement, field) == found


def test_marks_placeholders_and_notices_are_counted():
    judgement = seen(
        "echo: 0 a", f"{REPEAT}echo: 0 a", "…", f"{REPEAT}echo: 1 b", "echo: 2 c", NOTICE
    )
    assert judgement.sound
    assert judgement.marked == Counter({(HERE, "echo: 0 a"): 1, (HERE, "echo: 1 b"): 1})
    assert judgement.twice == 1
    assert judgement.placeholders == Counter({HERE: 1})
    assert judgement.notices == 1


GOOD = Result(
    plan=Plan(conversations=2, messages=4, kills=1, limit=1),
    seconds=1.0,
    judgement=Judgement(),
    in_flight=(20,),
    turns=Counter(succeeded=4),
    unfinished=Counter(),
    faults=Counter(),
    doubts=Counter({(HERE, "echo: 0 a"): 1}),
    orphans=Counter({HERE: 1}),
    memory=((0, 1.0),),
    code=0,
)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"in_flight": ()}, "killed 0 times only"),
        ({"turns": Counter(succeeded=3, failed=1)}, "1 turns failed"),
        ({"unfinished": Counter({"deliveries pending": 2})}, "2 rows deliveries pending"),
        ({"judgement": Judgement(lost=("1/None 1",))}, "1/None 1"),
        ({"judgement": Judgement(notices=1)}, "1 people were told of an interruption"),
        (
            {"judgement": Judgement(marked=Counter({(HERE, "echo: 0 a"): 2}))},
            f"marked without a doubt: {(HERE, 'echo: 0 a')}",
        ),
        (
            {"judgement": Judgement(placeholders=Counter({THERE: 1}))},
            f"a placeholder is left over: {THERE}",
        ),
        ({"code": 70}, "the gateway ended with 70"),
    ],
)
def test_each_problem_is_named(changes, problem):
    assert GOOD.problems == []
    assert attrs.evolve(GOOD, **changes).problems == [problem]


def test_growth_compares_the_last_quarter_with_the_second():
    grown = attrs.evolve(GOOD, memory=((0, 10.0), (1, 50.0), (2, 52.0), (3, 54.0), (4, 56.0)))
    assert grown.growth == pytest.approx(0.1)
    assert attrs.evolve(GOOD, memory=(*grown.memory[:3], (4, 50.0), (4, 50.0))).growth == 0
