"""The answer as a state machine over run events."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.render.answer import Answer
from dragoman.render.split import split
from dragoman.runevents import (
    Cancelled,
    Failed,
    FailureKind,
    Finished,
    Paused,
    TextBlock,
    TextDelta,
    Thinking,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    Usage,
)


def fed(*events, limit=1 << 20):
    answer = Answer(limit)
    for event in events:
        answer.feed(event)
    return answer


def deltas(*texts, block="b"):
    return [TextDelta(block, text) for text in texts]


def test_deltas_make_the_text_of_their_block():
    assert fed(*deltas("Hel", "lo", " you")).text == "Hello you"


def test_blocks_stand_in_order_of_first_appearance_with_a_blank_line_between():
    answer = fed(
        TextDelta("one", "first\n"), TextDelta("two", "\nsecond"), TextDelta("one", "more")
    )
    assert answer.text == "first\nmore\n\nsecond"


def test_an_authoritative_block_replaces_its_deltas():
    answer = fed(*deltas("draf", "t"), TextDelta("c", "tail"), TextBlock("b", "final"))
    assert answer.text == "final\n\ntail"


def test_an_empty_authoritative_block_takes_the_text_away():
    assert fed(*deltas("draft"), TextBlock("b", ""), TextDelta("c", "x")).text == "x"


def test_fc_emp_01_blank_deltas_show_nothing_until_there_is_a_word():
    answer = Answer(1000)
    seen = []
    for event in deltas("", "\n", " ", "Hello"):
        answer.feed(event)
        seen.append((answer.version, split(answer.text, 64, len)))
    assert seen == [(0, []), (0, []), (0, []), (1, ["Hello"])]


def test_the_indentation_of_a_list_at_the_beginning_is_kept():
    assert fed(*deltas("\n  - a\n", "  - b")).text == "  - a\n  - b"


def test_fc_i18_01_a_pair_split_over_two_deltas_is_joined():
    answer = fed(*deltas("ok \ud83c"))
    assert answer.text == "ok"
    answer.feed(TextDelta("b", "\udf78 done"))
    assert answer.text == "ok \U0001f378 done"


def test_fc_i18_01_lone_halves_become_replacement_characters():
    assert fed(*deltas("bad \udc88 end")).text == "bad \ufffd end"
    assert fed(*deltas("cut \ud83c", " on")).text == "cut \ufffd on"
    assert fed(*deltas("cut \ud83c"), Finished()).text == "cut \ufffd"
    assert fed(TextDelta("a", "x\ud83c"), TextDelta("b", "\udf78"), Finished()).text == (
        "x\ufffd\n\n\ufffd"
    )


@given(st.text(max_size=40), st.lists(st.integers(0, 80), max_size=6))
def test_however_a_text_is_cut_into_deltas_it_is_the_same(text, cuts):
    halves = text.encode("utf-16-le")
    places = sorted({0, len(halves), *(2 * min(cut, len(halves) // 2) for cut in cuts)})
    pieces = [
        halves[a:b].decode("utf-16-le", "surrogatepass") for a, b in itertools.pairwise(places)
    ]
    assert fed(*deltas(*pieces), Finished()).text == fed(TextBlock("b", text), Finished()).text


def test_the_text_is_capped_and_says_so():
    answer = fed(*deltas("\u00e9" * 10, "b"), limit=21)
    assert (answer.text, answer.overflow) == ("\u00e9" * 10 + "b", False)
    before = answer.version
    for event in deltas("\u00e9", "more", "\n\n"):
        answer.feed(event)
    assert (answer.text, answer.overflow, answer.version) == ("\u00e9" * 10 + "b", True, before)


def test_the_cap_never_cuts_a_character_in_two():
    family = "\N{MAN}\N{ZERO WIDTH JOINER}\N{WOMAN}"
    assert fed(*deltas("ab" + family), limit=9).text == "ab"
    assert fed(*deltas("ab\u00e9"), limit=3).text == "ab"


@given(
    st.lists(
        st.builds(TextDelta, st.sampled_from("abc"), st.text(max_size=9))
        | st.builds(TextBlock, st.sampled_from("abc"), st.text(max_size=9)),
        max_size=20,
    )
)
def test_whatever_comes_the_text_stays_below_the_cap(events):
    """DESIGN 7: memory is bounded by the answer."""
    answer = fed(*events, Finished(), limit=24)
    assert len(answer.text.encode()) <= 24


def test_a_replaced_block_gives_its_room_back():
    answer = fed(*deltas("a" * 20), TextBlock("b", "short"), TextDelta("b", "er" * 7), limit=20)
    assert (answer.text, answer.overflow) == ("short" + "er" * 7, False)


def test_the_size_grows_with_the_text():
    assert Answer(99).size == 0
    assert fed(*deltas("\u00e9", "x")).size == 3


def test_tools_run_from_their_start_to_their_end():
    answer = fed(ToolStarted("1", "search"), ToolStarted("2", "fetch"))
    assert answer.status == "*(`search` …, `fetch` …)*"
    answer.feed(ToolFinished("1", "search"))
    assert answer.status == "*(`fetch` …)*"
    answer.feed(Cancelled())
    assert not answer.in_tool


def test_usage_is_the_latest():
    found = fed(Usage(1, 10, 5), Usage(1, 7, 3, "small"), Usage(2, 30, 9)).usage
    assert found == (Usage(2, 30, 9), Usage(1, 7, 3, "small"))


@pytest.mark.parametrize(
    "event",
    [
        TextDelta("b", ""),
        TextDelta("b", "  \n"),
        TextDelta("b", "\ud83c"),
        TextBlock("b", "text"),
        TextBlock("b", "text \n"),
        TextBlock("new", ""),
        Usage(1),
        Thinking("hm"),
        ToolProgress("1", "half"),
        ToolFinished("unknown", "x"),
    ],
    ids=repr,
)
def test_fc_edt_04_what_nobody_can_see_is_no_new_version(event):
    answer = fed(*deltas("text"))
    before = (answer.version, answer.text)
    answer.feed(event)
    assert (answer.version, answer.text) == before


@pytest.mark.parametrize(
    "event",
    [
        TextDelta("b", "x"),
        TextDelta("c", "x"),
        TextBlock("b", "tex"),
        ToolStarted("2", "t"),
        ToolFinished("1", "t"),
        Finished(),
    ],
    ids=repr,
)
def test_what_can_be_seen_is_a_new_version(event):
    answer = fed(*deltas("text"), ToolStarted("1", "t"))
    before = answer.version
    answer.feed(event)
    assert answer.version > before


@pytest.mark.parametrize(
    "end", [Finished(), Paused("s"), Failed(FailureKind.TOOL), Cancelled()], ids=repr
)
def test_exactly_one_end_and_nothing_after_it(end):
    answer = fed(*deltas("x"), end)
    assert answer.end is end
    for late in (TextDelta("b", "y"), Finished()):
        with pytest.raises(ValueError, match=f"event after the end: {type(late).__name__}"):
            answer.feed(late)
    assert answer.text == "x"


def test_invariant_12_the_text_is_not_in_the_repr():
    """Invariant 12: message text does not reach logs through a representation."""
    answer = fed(*deltas("private words"), TextDelta("b", "\ud83c"))
    assert answer.text == "private words"
    assert "private" not in repr(answer)
