"""The translator by itself: what servers send that the scripted one does not."""

from types import SimpleNamespace as Thing

import pytest

from dragoman import (
    RuntimeFailed,
    TextBlock,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from dragoman_openai import stream
from dragoman_openai.stream import Translator


def raw(kind, **fields):
    return Thing(type="raw_response_event", data=Thing(type=kind, **fields))


def item(name, **fields):
    return Thing(type="run_item_stream_event", name=name, item=Thing(**fields))


def message(text):
    return Thing(type="message", content=[Thing(text=text)])


def delta(text, output=0):
    return raw("response.output_text.delta", output_index=output, delta=text)


def run(*events, handoffs=()):
    translator = Translator(frozenset(handoffs))
    return translator, [out for event in events for out in translator.translate(event)]


def test_blocks_of_two_responses_differ_though_their_items_do_not():
    """D7: some servers call every item the same."""
    _, out = run(
        raw("response.created"),
        delta("a"),
        raw("response.completed"),
        delta("b"),
        raw("response.completed"),
    )
    assert out == [TextDelta("1.0", "a"), TextDelta("2.0", "b")]


def test_a_response_that_begins_again_does_not_mix_with_the_broken_one():
    _, out = run(raw("response.created"), delta("a"), raw("response.created"), delta("b"))
    assert [event.block for event in out] == ["1.0", "2.0"]


def test_a_message_that_was_never_streamed_is_shown_whole():
    """D7: the authoritative layer alone is enough."""
    translator, out = run(
        raw("response.created"),
        raw("response.completed"),
        item("message_output_created", raw_item=message("whole")),
    )
    assert [event.text for event in out] == ["whole"]
    assert isinstance(out[0], TextBlock)
    assert translator.texts() == ["whole"]


def test_the_authoritative_text_replaces_the_deltas_once():
    """D7: said twice by the service, shown once."""
    translator, out = run(
        raw("response.created"),
        delta("helo"),
        raw("response.output_item.done", output_index=0, item=message("hello")),
        raw("response.completed"),
        item("message_output_created", raw_item=message("hello")),
    )
    assert out == [TextDelta("1.0", "helo"), TextBlock("1.0", "hello")]
    assert translator.texts() == ["hello"]


def test_several_messages_of_one_response_stay_apart():
    translator, out = run(
        raw("response.created"),
        delta("a", 0),
        delta("b", 2),
        raw("response.completed"),
        item("message_output_created", raw_item=message("A")),
        item("message_output_created", raw_item=message("B")),
    )
    assert out[2:] == [TextBlock("1.0", "A"), TextBlock("1.2", "B")]
    assert translator.texts(skip=1) == ["B"]


def test_a_refusal_is_text_too():
    """D13: people see what the model said before they are told why it ended."""
    _, out = run(
        raw("response.refusal.delta", output_index=0, delta="I will not"),
        raw(
            "response.output_item.done",
            output_index=0,
            item=Thing(type="message", content=[Thing(refusal="I will not.")]),
        ),
    )
    assert out == [TextDelta("1.0", "I will not"), TextBlock("1.0", "I will not.")]


def test_a_hosted_call_ends_when_the_service_says_so():
    """B3: there is no output of ours to wait for."""
    search = Thing(type="web_search_call", id="ws_1", status="completed")
    _, out = run(
        raw("response.output_item.added", item=search),
        raw("response.output_item.done", output_index=0, item=search),
    )
    assert out == [ToolStarted("ws_1", "web_search"), ToolFinished("ws_1", "web_search")]


def test_a_call_is_announced_once_whichever_layer_names_it_first():
    call = Thing(type="function_call", call_id="c1", name="t", id="fc")
    called = item("tool_called", raw_item=call)
    _, out = run(called, raw("response.output_item.added", item=call), called)
    assert out == [ToolStarted("c1", "t")]


def test_a_handoff_is_no_tool():
    call = Thing(type="function_call", call_id="c1", name="transfer_to_x", id="fc")
    translator, out = run(raw("response.output_item.added", item=call), handoffs=["transfer_to_x"])
    assert out == []
    assert translator.calls() == {}


def test_a_model_that_never_stops_is_stopped(monkeypatch):
    """Invariant 10: text and reasoning are bounded, whoever reads them."""
    monkeypatch.setattr(stream, "MAX_CHARACTERS", 10)
    with pytest.raises(RuntimeFailed, match="too_long"):
        run(delta("12345"), raw("response.reasoning_text.delta", delta="67890"), delta("1"))
