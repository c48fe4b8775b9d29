"""How many tokens a request has, and what of it is sent: by bytes, and by what a provider counted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cost import cpu_seconds, grows_in_proportion
from dragoman import FailureKind, RuntimeFailed
from dragoman_openai.budget import SHORTEST, Counted, Counts, Window, fit, weigh
from dragoman_openai.history import is_user, last_turn, turn_starts

KEY = ("s1", "assistant")


def user(text="q"):
    return {"role": "user", "content": text}


def said(text="a"):
    return {"role": "assistant", "content": text}


def call(number=1):
    return {"type": "function_call", "call_id": f"c{number}", "name": "t", "arguments": "{}"}


def out(text, number=1):
    return {"type": "function_call_output", "call_id": f"c{number}", "output": text}


_turns = st.lists(
    st.tuples(st.text(max_size=40), st.text(max_size=3000), st.text(max_size=40)),
    min_size=1,
    max_size=6,
)


@given(_turns, st.integers(200, 6000), st.integers(0, 2000))
def test_what_is_sent_fits_the_room_or_is_the_shortened_newest_turn(turns, size, around):
    """D6: whole turns go; the newest stays, and only what its tools said is cut."""
    items = [
        item
        for number, (asked, output, answer) in enumerate(turns)
        for item in (user(asked), call(number), out(output, number), said(answer))
    ]
    window, counted = Window(size, size // 4), Counted()
    try:
        kept, sent = fit(items, around, counted, window)
    except RuntimeFailed:
        assert counted.tokens_of(around + sum(map(weigh, last_turn(items)))) > size
        return
    assert sent == around + sum(map(weigh, kept))
    assert counted.tokens_of(sent) <= size
    assert len(items) - len(kept) in turn_starts(items)
    whole = items[-len(kept) :]
    if kept != whole:
        assert kept[0] == last_turn(items)[0]
        assert [i for i in kept if "output" not in i] == [i for i in whole if "output" not in i]
        for short, long in zip(kept, whole, strict=True):
            assert short == long or len(short["output"]) < len(long["output"])
    elif len(kept) < len(items):
        earlier = [start for start in turn_starts(items) if start < len(items) - len(kept)][-1]
        before = around + sum(map(weigh, items[earlier:]))
        assert counted.tokens_of(before) > window.room


@pytest.mark.parametrize("form", [str, lambda text: [{"type": "input_text", "text": text}]])
def test_the_longest_outputs_are_shortened_first_and_keep_both_ends(form):
    """D6: a person's words and short outputs stay as they are."""
    long = "begin " + "x" * 40_000 + " end"
    items = [user("q" * 2000), call(1), out(form("short"), 1), call(2), out(form(long), 2)]
    kept, sent = fit(items, 0, Counted(), Window(5000, 1000))
    assert kept[:4] == items[:4]
    text = kept[4]["output"]
    text = text if isinstance(text, str) else text[0]["text"]
    assert text.startswith("begin ")
    assert text.endswith(" end")
    assert " characters left out …]" in text
    assert 3500 < Counted().tokens_of(sent) <= 4000


def test_a_newest_message_beyond_the_window_is_a_typed_failure_before_the_call():
    """D6, D13: shortening has its end, and a person's words are nobody's to cut."""
    items = [user("x" * 9000), call(), out("y" * 9000)]
    with pytest.raises(RuntimeFailed, match="for a window of 2000") as caught:
        fit(items, 0, Counted(), Window(2000, 500))
    assert caught.value.kind is FailureKind.CONTEXT_OVERFLOW
    assert "x" * 10 not in str(caught.value)


def test_the_reserve_is_given_up_before_a_message_is_refused():
    """D6: what has to be sent may use the room of the answer."""
    items = [user("before"), said(), user("x" * 7000)]
    kept, _ = fit(items, 0, Counted(), Window(2000, 1000))
    assert kept == items[2:]


def test_pictures_count_the_same_whatever_their_bytes():
    picture = {"type": "input_image", "image_url": "data:image/png;base64," + "A" * 900_000}
    assert 4000 < weigh({"role": "user", "content": [picture]}) < 4200


def test_the_last_count_is_the_anchor_of_the_next_estimate():
    """D6: whatever cannot be seen here is in the provider's count, and stays in it."""
    counts = Counts()
    assert counts.of(KEY).tokens_of(4000) == 1000
    counts.learn(KEY, 4000, 6000)
    assert counts.of(KEY).tokens_of(4000) == 6000
    assert counts.of(KEY).tokens_of(8000) == 7000
    assert counts.of(KEY).tokens_of(0) == 5000
    assert counts.of(("s2", "assistant")).tokens_of(4000) == 1000


def test_two_counts_tell_the_bytes_of_a_token():
    """D6: other languages and code need more tokens; steps too small to tell change nothing."""
    counts = Counts()
    counts.learn(KEY, 4000, 6000)
    counts.learn(KEY, 4100, 6100)
    assert counts.of(KEY).bytes_per_token == 4
    counts.learn(KEY, 14_100, 10_100)
    assert counts.of(KEY).bytes_per_token == 2.5
    counts.learn(KEY, 114_100, 10_200)
    assert counts.of(KEY).bytes_per_token == 6
    counts.learn(KEY, 4100, 60_000)
    assert counts.of(KEY).bytes_per_token == 6


def test_a_provider_that_counts_nothing_teaches_nothing_and_what_is_known_is_bounded():
    """Invariant 10."""
    counts = Counts()
    counts.learn(KEY, 4000, 0)
    assert counts.of(KEY) == Counted()
    for number in range(3000):
        counts.learn((f"s{number}", "a"), 1, 1)
    assert len(counts._known) == 1024
    assert counts.of(("s2999", "a")).tokens == 1


def test_a_long_history_is_fitted_in_linear_time():
    def cost(turns):
        items = [i for n in range(turns) for i in (user("q" * 200), call(n), out("o", n), said())]
        kept, _ = fit(items, 0, Counted(), Window(2000, 500))
        assert len(kept) < 100
        return cpu_seconds(lambda: fit(items, 0, Counted(), Window(2000, 500)))

    assert grows_in_proportion(cost(312), cost(2500), 8)


def test_shortening_stops_where_nothing_useful_would_be_left():
    items = [user(), call(), out("y" * 5000)]
    kept, _ = fit(items, 0, Counted(), Window(300, 299))
    assert SHORTEST < len(kept[2]["output"]) < SHORTEST + 60
    assert kept[2]["output"].count("y") == SHORTEST
    assert is_user(kept[0])
