"""Histories that a model service refuses, against one that does: mended, told, and never lost."""

import logging

import anyio
import pytest

from dragoman import Failed, FailureKind, Finished, TextDelta
from dragoman_openai import last_event
from dragoman_openai.last_event import LastEvent
from peers.strict_model import StrictModel, broken

pytestmark = pytest.mark.anyio

LONG = "msg_0123456789abcdef0123456789abcdef"
BEFORE = [{"role": "user", "content": "before"}, {"role": "assistant", "content": "yes"}]


def asked(text="earlier"):
    return {"role": "user", "content": text}


def call(identity="t1", name="get_weather"):
    return {"type": "function_call", "call_id": identity, "name": name, "arguments": "{}"}


def out(identity="t1"):
    return {"type": "function_call_output", "call_id": identity, "output": "x"}


def reasoning(identity="rs_1"):
    return {"type": "reasoning", "id": identity, "summary": []}


def answered(identity="msg_1"):
    text = {"type": "output_text", "text": "yes", "annotations": []}
    message = {"type": "message", "role": "assistant", "id": identity, "status": "completed"}
    return {**message, "content": [text]}


@pytest.fixture
def strict(model_server):
    with StrictModel(behind=model_server.base_url) as server:
        yield server
    assert server.errors == []


NOT_BY_RESPONSES = {"a pair torn by a message", "a pair twice"}
"""What the Responses interface is not known to refuse."""

HISTORIES = {
    "a call at the end": [asked(), call()],
    "an output without its call": [asked(), out("t2")],
    "two calls, one output": [asked(), call("t1"), call("t2"), out("t2")],
    "an output before its call": [asked(), out(), call()],
    "reasoning at the end": [asked(), reasoning()],
    "reasoning before a lost call": [asked(), reasoning(), call()],
    "a pair torn by a message": [asked(), call(), asked("and"), out()],
    "a handoff that was cut": [asked(), call("t1", "transfer_to_billing")],
    "a call and the next after a handoff": [
        asked(),
        call("t1", "transfer_to_billing"),
        out("t1"),
        call("t2"),
    ],
    "an invented tool": [asked(), call("t1", "no_such_tool")],
    "an answer twice": [asked(), answered(LONG), asked("more"), answered(LONG)],
    "an answer and its reasoning twice": [
        asked(),
        reasoning(f"rs_{LONG}"),
        answered(LONG),
        reasoning(f"rs_{LONG}"),
        answered(LONG),
    ],
    "a pair twice": [asked(), call(), out(), call(), out()],
}


@pytest.mark.parametrize("api", ["responses", "chat"])
async def test_fc_rst_04_a_torn_history_is_sent_whole_and_answered(desk, strict, api):
    """FC-SDK-03, D12: at the first request, by a service with the real rules; nothing is deleted."""
    async with desk.open(base_url=strict.base_url, api=api) as runtime:
        for number, (name, history) in enumerate(HISTORIES.items(), start=1):
            desk.host = type(desk.host)()
            desk.host.put(*BEFORE, *history)
            *_, end = await desk.say(runtime, "say hello")
            assert (end, strict.refused) == (Finished(), []), name
            assert len(strict.bodies) == number, name
            assert desk.host.items()[: len(history) + 2] == [*BEFORE, *history], name
            assert len(desk.host.records("openai").generations) == 1, name


def test_fc_rst_04_the_service_of_these_tests_refuses_what_real_ones_do():
    """The rules bite: each of the histories is refused as it is stored."""
    for name, history in HISTORIES.items():
        assert broken(history) or name in NOT_BY_RESPONSES, name
    assert not broken([asked(), reasoning(), call(), out(), answered(), asked()])


async def test_fc_rst_04_a_history_that_the_service_refuses_is_left_behind_once(desk, blocks):
    """D12, D13: the person is answered, the operator told, and nothing stored is deleted."""
    desk.host.put(*BEFORE)
    async with desk.open() as runtime:
        events = await desk.say(runtime, "torn once")
    assert blocks(events) == ["Mended."]
    assert events[-1] == Finished()
    assert desk.host.items()[0]["content"] == "torn once"
    assert desk.host.kinds() == ["user", "assistant"]
    before, _ = desk.host.records("openai").generations
    assert len(before) == 3


async def test_fc_rst_04_a_repair_that_does_not_help_changes_nothing_and_is_told(desk, caplog):
    """D12, D13: the history stays for a better day, and the person hears of /new."""
    caplog.set_level(logging.WARNING)
    desk.host.put(*BEFORE)
    async with desk.open() as runtime:
        *_, end = await desk.say(runtime, "torn for good")
    assert isinstance(end, Failed)
    assert end.kind is FailureKind.HISTORY
    assert len(desk.model.inputs()) == 2
    assert "goes on from its last turn" in caplog.text
    assert len(desk.host.records("openai").generations) == 1
    assert desk.host.kinds() == ["user", "assistant", "user"]


async def test_fc_rst_04_the_same_refusal_again_is_told_with_a_way_out(desk):
    """D13: whatever the service's reason is, nobody waits in a silent loop."""
    async with desk.open() as runtime:
        ends = [(await desk.say(runtime, "not like this"))[-1].kind for _ in range(3)]
        assert ends == [FailureKind.INTERNAL, FailureKind.HISTORY, FailureKind.HISTORY]
        assert (await desk.say(runtime, "say hello"))[-1] == Finished()
        assert (await desk.say(runtime, "not like this"))[-1].kind is FailureKind.INTERNAL


@pytest.mark.parametrize("how", ["silence", "no connection", "stopped", "failing", "cut off"])
async def test_fc_sdk_04_no_passing_trouble_is_taken_for_a_broken_session(desk, how):
    """D8, D13: the next message goes on with all that was said before."""
    desk.host.put(*BEFORE)
    trouble = {"no connection": {"base_url": "http://127.0.0.1:9/v1"}}
    words = {"failing": "broke for good", "silence": "keep silent", "cut off": "cut me off"}
    changes = {"request_timeout": 0.2} if how == "silence" else trouble.get(how, {})
    async with desk.open(**changes) as runtime:
        if how == "stopped":
            async with desk.turn(runtime, "long story") as events:
                async for event in events:
                    if isinstance(event, TextDelta):
                        break
        else:
            *_, end = await desk.say(runtime, words.get(how, "say hello"))
            kind = FailureKind.TIMEOUT if how == "silence" else FailureKind.TRANSPORT
            assert end.kind is kind
    assert len(desk.host.records("openai").generations) == 1
    async with desk.open() as runtime:
        *_, end = await desk.say(runtime, "and again")
    assert end == Finished()
    said = [m["content"] for m in desk.model.inputs()[-1] if m["role"] == "user"]
    assert said[0] == "before"
    assert said[-1] == "and again"
    assert len(said) == 3


@pytest.mark.parametrize("text", ["say hello", "weather"])
async def test_fc_sdk_02_an_answer_is_whole_with_its_last_event(
    desk, strict, blocks, caplog, monkeypatch, text
):
    """D7, invariant 9: a stream that stays open holds up neither the turn nor its tools."""
    caplog.set_level(logging.WARNING)
    monkeypatch.setattr(last_event, "SECONDS", 0.05)
    strict.hangs = True
    async with desk.open(base_url=strict.base_url) as runtime:
        with anyio.fail_after(60):
            events = await desk.say(runtime, text)
            assert events[-1] == Finished()
            *_, end = await desk.say(runtime, "and again")
    assert end == Finished()
    assert blocks(events)[-1] in {"Hello from the model. Nice to meet you.", "It is warm."}
    assert "left a stream open behind its end" in caplog.text


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize(
    ("stream", "ends"),
    [
        ('event: response.completed\ndata: {"x": 1}\n\n', True),
        ('event: a\ndata: {}\n\nevent: response.completed\r\ndata: {"x": 1}\r\n\r\n', True),
        ('data: {}\n\ndata: {"type": "response.failed", "y": 2}\n\n', True),
        ('event: response.completed\ndata: {"x": 1}\n', False),
        ('event: a\ndata: {"text": "\\nevent: response.completed"}\n\n', False),
        ('event: response.completed_not\n\nevent: a\ndata: "event: response.completed"\n\n', False),
    ],
)
def test_the_last_event_is_found_in_pieces_of_any_size(stream, ends, size):
    """FC-SDK-02: in the bytes of the stream, where no text of the model can look like it."""
    text, look = stream.encode(), LastEvent()
    for start in range(0, len(text), size):
        assert not look.seen or start >= len(text) - 1
        look.feed(text[start : start + size])
    assert look.seen is ends
