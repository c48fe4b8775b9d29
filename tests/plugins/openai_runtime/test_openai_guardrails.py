"""Input guardrails: what they judge, and what a model sees afterwards of what they refused."""

import pytest

from dragoman import FailureKind, Finished
from dragoman_openai.history import Limits, encode, shape
from dragoman_openai.refused import mark, without_refused

pytestmark = pytest.mark.anyio


def user(text):
    return {"role": "user", "content": text}


def assistant(text):
    return {"role": "assistant", "content": text}


async def test_a_guardrail_judges_what_is_new_and_nothing_else(desk, scenario):
    """D2: all messages of the turn, none of earlier turns."""
    async with desk.open("watching") as runtime:
        await desk.say(runtime, "say hello")
        await desk.say(runtime, "first part", "and again")
    assert scenario.SEEN == [["say hello"], ["first part", "and again"]]


async def test_what_was_refused_is_not_sent_to_the_model_again(desk):
    """D5: the store keeps it, the model learns that there was something."""
    async with desk.open("guarded_input") as runtime:
        [*_, end] = await desk.say(runtime, "hello there", "damn")
        assert end.kind is FailureKind.GUARDRAIL
        assert isinstance((await desk.say(runtime, "say hello"))[-1], Finished)
    assert [item["content"] for item in desk.host.items() if item["role"] == "user"] == [
        "hello there",
        "damn",
        "say hello",
    ]
    sent = [m["content"] for m in desk.model.inputs()[-1] if m["role"] != "system"]
    assert sent[0] == "[A message that a rule refused; it is not shown here.]"
    assert sent[1:] == ["[It was not answered.]", "say hello"]


def test_only_the_messages_that_were_refused_are_replaced():
    """D5: an unanswered message before them stays; tools that had begun are named."""
    items = [user("a"), user("b"), user("c"), assistant("x"), mark(2, ["pay"]), user("d")]
    seen = without_refused(items)
    assert [item["content"] for item in seen] == [
        "a",
        "[A message that a rule refused; it is not shown here.]",
        "[It was not answered. Tools had begun: pay.]",
        "d",
    ]


def test_a_mark_whose_messages_were_cut_away_hides_nothing_else():
    """D5: the limits of the history may fall between the two."""
    stored = [encode(item) for item in (assistant("x"), mark(1, []), user("d"))]
    shown = [item["content"] for item in shape(stored, Limits(3))]
    assert shown[-1] == "d"
    assert "dragoman:" not in str(shown)


def test_a_model_cannot_write_a_mark():
    """D5: it never sees one, and a text that looks nearly like one stays."""
    for text in ("dragoman:refused", "dragoman:refused x", "[It was not answered.]"):
        assert without_refused([user("a"), assistant(text)]) == [user("a"), assistant(text)]
