"""The translator by itself: what servers send that the scripted one does not."""

from types import SimpleNamespace as Thing

import pytest

from dragoman import (
    RuntimeFailed,
    TextBlock,
    TextDelta,
    ToolFinished,
    ToolProgress,
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


def test_a_long_input_is_progress_and_none_of_its_words():
    """B3: people see that a tool is being prepared; a short input is not worth a word."""
    call = Thing(type="function_call", call_id="c1", name="write", id="fc")
    other = Thing(type="function_call", call_id="c2", name="look", id="fc")
    kind = "response.function_call_arguments.delta"
    _, out = run(
        raw("response.created"),
        raw("response.output_item.added", item=call, output_index=0),
        raw("response.output_item.added", item=other, output_index=1),
        *(raw(kind, output_index=0, delta="canary" * 50) for _ in range(8)),
        raw(kind, output_index=1, delta="{}"),
        raw("response.output_item.done", item=other, output_index=1),
        raw("response.output_item.done", item=call, output_index=0),
    )
    assert out == [
        ToolStarted("c1", "write"),
        ToolStarted("c2", "look"),
        ToolProgress("c1", "1200 characters of input"),
        ToolProgress("c1", "2100 characters of input"),
        ToolProgress("c1", ""),
    ]


def test_inputs_of_another_response_are_not_taken_for_this_one():
    """D7: outputs are numbered anew in each response, and handoffs are no tools."""
    call = Thing(type="function_call", call_id="c1", name="write", id="fc")
    over = Thing(type="function_call", call_id="c2", name="transfer_to_x", id="fc")
    kind = "response.function_call_arguments.delta"
    _, out = run(
        raw("response.created"),
        raw("response.output_item.added", item=call, output_index=0),
        raw("response.completed"),
        raw("response.created"),
        raw(kind, output_index=0, delta="x" * 2000),
        raw("response.output_item.added", item=over, output_index=0),
        raw(kind, output_index=0, delta="x" * 2000),
        handoffs=["transfer_to_x"],
    )
    assert out == [ToolStarted("c1", "write")]


def test_a_call_of_a_hosted_server_has_its_name_and_its_failure():
    """B3: of MCP servers that the model service asks itself."""
    server = {"type": "mcp_call", "id": "mcp_1", "name": "search", "server_label": "docs"}
    _, out = run(
        raw("response.output_item.added", item=Thing(**server), output_index=0),
        raw(
            "response.output_item.done",
            item=Thing(**server, status="completed", error="no such page"),
            output_index=0,
        ),
    )
    assert out == [
        ToolStarted("mcp_1", "docs.search"),
        ToolFinished("mcp_1", "docs.search", failed=True),
    ]


def test_what_a_hosted_call_is_doing_is_progress():
    """B3."""
    search = Thing(type="web_search_call", id="ws_1", status="completed")
    _, out = run(
        raw("response.output_item.added", item=search, output_index=0),
        raw("response.web_search_call.in_progress", item_id="ws_1"),
        raw("response.web_search_call.searching", item_id="ws_1"),
        raw("response.web_search_call.completed", item_id="ws_1"),
        raw("response.output_item.done", output_index=0, item=search),
        raw("response.web_search_call.searching", item_id="ws_1"),
    )
    assert out == [
        ToolStarted("ws_1", "web_search"),
        ToolProgress("ws_1", "searching"),
        ToolFinished("ws_1", "web_search"),
    ]


def test_a_model_that_never_stops_writing_an_input_is_stopped(monkeypatch):
    """Invariant 10: it is bounded as its text is."""
    monkeypatch.setattr(stream, "MAX_CHARACTERS", 10)
    with pytest.raises(RuntimeFailed, match="too_long"):
        run(raw("response.function_call_arguments.delta", output_index=0, delta="x" * 11))
