"""Messages of the real program, and some of other versions, as run events."""

from claude_agent_sdk import (
    AssistantMessage,
    ResultMessage,
    ServerToolResultBlock,
    ServerToolUseBlock,
    StreamEvent,
    SystemMessage,
    ThinkingBlock,
    ToolUseBlock,
)
from claude_agent_sdk import TextBlock as Said

from dragoman import (
    Notice,
    TextBlock,
    TextDelta,
    Thinking,
    ToolFinished,
    ToolProgress,
    ToolStarted,
)
from dragoman_claude.stream import COMPACTS, RETRIES, Translator
from dragoman_claude.toolcalls import STEP, tool_name
from plugins.claude_runtime.recordings import Played, messages
from plugins.claude_runtime.scenes import SESSION, identity


def event(kind, index=0, **fields):
    return StreamEvent("u", "s", {"type": kind, "index": index, **fields})


def start(name="m"):
    return event("message_start", message={"id": name, "model": "a model"})


def delta(text, index=0):
    return event("content_block_delta", index, delta={"type": "text_delta", "text": text})


def begins(kind, index=0, **fields):
    return event("content_block_start", index, content_block={"type": kind, **fields})


def said(*content, name="m", parent=None):
    return AssistantMessage(list(content), "a model", parent, message_id=name)


def result(**fields):
    given = {"subtype": "success", "duration_ms": 1, "duration_api_ms": 1, "is_error": False}
    return ResultMessage(**(given | {"num_turns": 1, "session_id": "s"} | fields))


def run(*heard, translator=None):
    translator = translator or Translator()
    return translator, [out for message in heard for out in translator.translate(message)]


def test_text_streams_and_is_then_said_whole():
    """D7: what a service cuts into blocks, with nothing in between, is one text."""
    played = Played("text")
    assert [one.text for one in played.of(TextDelta)][:2] == ["Hello,", " you t"]
    assert played.of(TextBlock) == [TextBlock("1", "Hello, you there.A second block.")]
    assert played.events[-1] == TextBlock("1", "Hello, you there.A second block.")


def test_what_the_model_thinks_is_told_to_who_wants_it():
    assert Played("text").of(Thinking) == []
    assert Played("text", thinking=True).of(Thinking) == [Thinking("hm, well")]


def test_a_turn_hears_its_own_prompt_only():
    """D11: two prompts for one program are two turns, each with its own end."""
    first, second = Played("live", 1), Played("live", 2)
    assert (first.texts, second.texts) == (["The first."], ["The second."])
    assert len(first.translator.background) == len(second.translator.background) == 1


def test_tools_are_told_by_their_own_names():
    played = Played("tools")
    assert played.of(ToolStarted) == [
        ToolStarted("toolu_1_1", "note"),
        ToolStarted("toolu_1_2", "note"),
    ]
    assert played.of(ToolFinished) == [
        ToolFinished("toolu_1_1", "note"),
        ToolFinished("toolu_1_2", "note", failed=True),
    ]
    assert played.texts == ["I note.", "It is done."]
    assert [tool_name(name) for name in ("mcp__a_b__c__d", "Bash", "mcp__odd")] == [
        "c__d",
        "Bash",
        "mcp__odd",
    ]


def test_text_of_a_broken_connection_is_replaced_once_there_is_other():
    """D7, D11: the program asks again, and nothing is there twice."""
    for scene in ("cut_text", "cut_retried", "error_in_stream"):
        played = Played(scene)
        assert played.texts == ["Hello, once more."], scene
        kinds = [type(one) for one in played.events]
        taken_back = played.events.index(TextBlock("1", ""))
        assert TextDelta in kinds[:taken_back], scene
        assert played.translator.lost == ""


def test_whole_blocks_of_a_broken_message_stay_and_only_the_rest_is_lost():
    """The program keeps what came whole, and lets the model go on behind it."""
    played = Played("cut_second_block")
    assert played.texts == ["Hello, you there.", "Hello, once more.And so on."]
    assert Played("cut_end").texts == ["Hello, you there.", "Hello, once more."]


def test_a_call_that_was_cut_off_never_runs():
    played = Played("cut_call")
    assert played.of(ToolFinished) == [
        ToolFinished("toolu_1_1", "note", failed=True),
        ToolFinished("toolu_2_1", "note"),
    ]


def test_what_was_shown_stays_where_nothing_comes_after_it():
    """And who keeps histories is told that the program has forgotten it."""
    played = Played("cut_for_good")
    assert played.texts == ["Hello, you there."]
    assert played.translator.lost == "Hello, you there."


def test_an_answer_cut_at_its_greatest_length_goes_on_in_the_middle_of_a_word():
    assert Played("max_tokens").texts == ["It goes on" * 4]
    thinks = begins("thinking")
    _, out = run(
        start(),
        delta("in the mid"),
        said(Said("in the mid")),
        event("message_delta", delta={"stop_reason": "max_tokens"}),
        event("message_stop"),
        start("n"),
        thinks,
        said(ThinkingBlock("where was I", "s"), name="n"),
        delta("dle", 1),
        said(Said("dle"), name="n"),
        event("message_stop"),
    )
    assert out[-1] == TextBlock("1", "in the middle")


def test_the_text_of_a_stopped_turn_is_what_the_program_keeps_of_it():
    played = Played("stopped_text")
    assert played.texts == ["Hello, you there."]
    assert played.translator.lost == ""
    assert Played("stopped_tool").of(ToolFinished) == [
        ToolFinished("toolu_1_1", "wait", failed=True)
    ]


def test_a_result_that_names_no_prompt_ends_a_turn_that_was_stopped():
    """The program says of a stopped turn now and then that it took in nothing."""
    ours = Translator(identity(1))
    stopped = result(is_error=True, terminal_reason="aborted_streaming", user_message_uuids=[])
    run(stopped, translator=ours)
    assert ours.result is stopped


def test_what_helpers_do_is_told_and_what_they_say_is_not():
    """D11: no text of a helper is in the answer."""
    played = Played("helper")
    assert played.of(ToolStarted) == [
        ToolStarted("toolu_1_1", "Agent"),
        ToolStarted("toolu_2_1", "note", "helper"),
    ]
    assert len(played.of(ToolFinished)) == 2
    assert played.texts == ["I ask for help.", "It is done."]
    assert Played("helper_behind").texts == ["I ask for help.", "One way or the other."]


def test_a_turn_of_the_programs_own_neither_ends_ours_nor_shows():
    """FC-SDK-02: the end that comes first need not be the one that is waited for."""
    behind = messages("helper_behind")
    first = next(n for n, one in enumerate(behind) if isinstance(one, ResultMessage))
    own = behind[first + 1 :]
    ours = Translator(identity(1))
    _, out = run(*own, *messages("text"), translator=ours)
    assert [one for one in out if isinstance(one, TextBlock)] == [
        TextBlock("1", "Hello, you there.A second block.")
    ]
    assert [one.result for one in ours.background] == ["It came back."]
    assert ours.result is not None


def test_a_turn_without_a_prompt_is_ended_by_no_turn_of_the_programs_own():
    own = result(origin={"kind": "task-notification"})
    behind, _ = run(own)
    assert (behind.result, behind.background) == (None, [own])
    mine = result()
    run(mine, translator=behind)
    assert behind.result is mine


def test_text_that_was_lost_for_good_is_no_part_of_an_answer():
    """The model may go on with a tool alone, and the history has no such text."""
    _, out = run(start(), delta("lost"), event("message_stop"), result())
    assert out == [TextDelta("1", "lost"), TextBlock("1", "")]


def test_a_deferred_turn_goes_on_without_a_prompt():
    assert Played("deferred").of(ToolFinished) == []
    messages_ = messages("deferred")
    cut = next(n for n, one in enumerate(messages_) if isinstance(one, ResultMessage)) + 1
    behind = Translator()
    out = [*behind.goes_on("toolu_1_1", "note")]
    out += run(*messages_[cut:], translator=behind)[1]
    assert out[0] == ToolStarted("toolu_1_1", "note")
    assert out[1] == ToolFinished("toolu_1_1", "note")
    assert out[-1] == TextBlock("1", "It is done.")
    assert behind.result is not None
    assert behind.session_id == SESSION


def test_a_call_that_people_refused_is_not_told_of_again():
    refused = messages("refused_call")
    cut = next(n for n, one in enumerate(refused) if isinstance(one, ResultMessage)) + 1
    _, out = run(*refused[cut:])
    assert not [one for one in out if isinstance(one, ToolStarted | ToolFinished)]


def test_a_call_that_nobody_may_allow_has_failed():
    assert Played("denied").of(ToolFinished) == [ToolFinished("toolu_1_1", "note", failed=True)]


def test_retries_are_told_once():
    assert Played("overloaded").of(Notice) == [Notice(RETRIES)]
    told = [one.text for one in Played("fallback").of(Notice)]
    assert told == [RETRIES, "The usual model is overloaded; claude-haiku-5 answers instead."]


def test_summing_up_is_told_once():
    assert Played("compacted", 2).of(Notice) == [Notice(COMPACTS)]
    assert Played("compacted", 2).texts == ["And more."]


def test_an_emptied_conversation_has_a_session_of_another_name():
    """The next turn has to resume the new one, and its costs begin at nothing."""
    before, after = Played("cleared", 1).translator, Played("cleared", 2).translator
    assert (before.reset, after.reset) == (False, True)
    assert after.session_id not in (None, before.session_id)


def test_a_transcript_that_could_not_be_stored_is_noticed():
    assert Played("unmirrored").translator.mirror_failed
    assert not Played("text").translator.mirror_failed


def test_an_answer_in_a_shape_is_its_json():
    assert Played("shape").texts == ['{"answer": 42}']
    assert Played("shape_in_words").texts == ["I count.", '{"answer": 42}']
    assert Played("no_shape").texts == ["No shape at all."] * 2
    assert Played("shape_in_words").of(ToolStarted) == []


def test_calls_of_the_model_service_itself_have_an_end():
    played = Played("searched")
    assert played.of(ToolStarted) == [ToolStarted("srvtoolu_1", "web_search")]
    assert played.of(ToolFinished) == [ToolFinished("srvtoolu_1", "web_search")]
    assert played.texts == ["I search.", "I found nothing."]
    _, out = run(
        said(ServerToolUseBlock("t", "advisor", {}), name="n"),
        said(ServerToolResultBlock("t", {"type": "advisor_tool_result_error"}), name="n"),
        said(ServerToolUseBlock("u", "web_search", {}), name="n"),
        result(),
    )
    ends = [(one.call_id, one.failed) for one in out if isinstance(one, ToolFinished)]
    assert ends == [("t", True), ("u", False)]


def test_without_a_stream_the_messages_are_enough():
    _, out = run(
        said(ThinkingBlock("hm", "s"), Said("One"), name="a"),
        said(Said(" text."), name="a"),
        said(ToolUseBlock("t", "mcp__x__do", {}), name="a"),
        said(Said("Another."), name="b"),
        result(),
        translator=Translator(thinking=True),
    )
    assert out == [
        Thinking("hm"),
        TextBlock("1", "One text."),
        ToolStarted("t", "do"),
        TextBlock("2", "Another."),
        ToolFinished("t", "do", failed=True),
    ]


def test_people_see_how_much_a_tool_is_given_and_not_what():
    more = {"type": "input_json_delta", "partial_json": "x" * (STEP - 1)}
    _, out = run(
        start(),
        begins("tool_use", id="t", name="Write"),
        *[event("content_block_delta", delta=more)] * 3,
        said(ToolUseBlock("t", "Write", {})),
    )
    told = [one for one in out if isinstance(one, ToolProgress)]
    assert [one.text for one in told] == [
        f"{2 * (STEP - 1)} characters of input",
        f"{3 * (STEP - 1)} characters of input",
        "",
    ]


def test_what_nobody_knows_is_passed_over():
    _, out = run(
        event("something_new"),
        event("content_block_delta", delta={"type": "new_delta"}),
        event("message_start"),
        StreamEvent("u", "s", {}),
        begins("new_block"),
        SystemMessage("new", {}),
        SystemMessage("status", {}),
        said(object()),
        translator=Translator(),
    )
    assert out == []
