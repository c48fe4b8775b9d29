"""What the SDK stores in a session, and when: one row each, so that a release that differs is seen.

The runtime's own history rests on these rows. Where one fails, look at what it says of the runtime
before anything is changed here.
"""

import agents
import httpx2
import openai
import pytest
from agents import (
    Agent,
    GuardrailFunctionOutput,
    RunConfig,
    Runner,
    RunState,
    function_tool,
    input_guardrail,
    output_guardrail,
)

from openai_sdk import QUIET, Recorded, Told, brief, calls, in_pieces, run, said, scripted

pytestmark = pytest.mark.anyio

REQUEST = httpx2.Request("POST", "http://127.0.0.1/v1/responses")
USER = {"role": "user", "content": "q"}
CALL = {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{}"}
OUT = {"type": "function_call_output", "call_id": "c1", "output": "x"}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": []}
BOTH = pytest.mark.parametrize("mode", ["run", "streamed"])


@function_tool
async def weather() -> str:
    """Say what the weather is like."""
    return "warm"


@function_tool
async def bad() -> str:
    """Fail softly."""
    raise ValueError("kaput")


@function_tool(failure_error_function=None)
async def worse() -> str:
    """Fail hard."""
    raise ValueError("kaput")


@function_tool(needs_approval=True)
async def delete() -> str:
    """Delete something."""
    return "deleted"


@input_guardrail
async def refuse(run, agent, given):
    return GuardrailFunctionOutput(output_info=None, tripwire_triggered=True)


@output_guardrail
async def withhold(run, agent, given):
    return GuardrailFunctionOutput(output_info=None, tripwire_triggered=True)


@output_guardrail
async def let_pass(run, agent, given):
    return GuardrailFunctionOutput(output_info=None, tripwire_triggered=False)


def agent(*answers, **more):
    tools = [weather, bad, worse, delete]
    return Agent(**{"name": "a", "model": scripted(*answers), "tools": tools, **more})


def refused(kind=openai.RateLimitError, status=429):
    return kind("canary", response=httpx2.Response(status, request=REQUEST), body=None)


@BOTH
async def test_row_text(mode):
    session = Recorded()
    ended = await run(mode, agent(said()), "q", session)
    assert (ended.raised, ended.output) == (None, "Hello.")
    assert session.kept == ["user", "assistant"]


@BOTH
async def test_row_tool_then_text(mode):
    """Each turn of the model is one addition, so that no call lands without its output."""
    session = Recorded()
    model = (calls("weather", text="Let me look."), said())
    ended = await run(mode, agent(*model), "q", session)
    assert ended.raised is None
    assert session.log == [["user"], ["assistant", "call", "out"], ["assistant"]]


@BOTH
async def test_row_two_tools_at_once(mode):
    session = Recorded()
    both = [*calls("weather", "c1"), *calls("bad", "c2")]
    await run(mode, agent(both, said()), "q", session)
    assert session.log == [["user"], ["call", "call", "out", "out"], ["assistant"]]


@BOTH
async def test_row_the_persons_item_is_stored_before_the_answer(mode):
    """Without a stream before the model is asked, with one just after."""
    session = Recorded()
    await run(mode, agent(said()), "q", session, hooks=Told(session))
    order = [["user"], "model"] if mode == "run" else ["model", ["user"]]
    assert session.log == [*order, "answer", ["assistant"]]


@BOTH
@pytest.mark.parametrize(
    "error",
    [refused(), refused(openai.BadRequestError, 400), openai.APIConnectionError(request=REQUEST)],
    ids=["429", "400", "no connection"],
)
async def test_row_model_error(mode, error):
    from agents.testing import ModelStep

    session = Recorded()
    ended = await run(mode, agent(ModelStep.raise_error(error)), "q", session)
    assert ended.raised is error
    assert getattr(error, "run_data", None) is None
    assert session.kept == ["user"]


async def test_row_stream_cut():
    session = Recorded()
    cut = in_pieces(said(), error=httpx2.RemoteProtocolError("cut"))
    ended = await run("streamed", agent(cut), "q", session)
    assert isinstance(ended.raised, httpx2.RemoteProtocolError)
    assert session.kept == ["user"]


@BOTH
async def test_row_tool_raises_with_the_default_handler(mode):
    session = Recorded()
    ended = await run(mode, agent(calls("bad"), said()), "q", session)
    assert ended.raised is None
    assert session.kept == ["user", "call", "out", "assistant"]
    assert session.items[2]["output"].startswith("An error occurred while running the tool.")


@BOTH
async def test_row_tool_raises_without_a_handler(mode):
    """The call is lost, and so is that it ran."""
    session = Recorded()
    ended = await run(mode, agent(calls("worse"), said()), "q", session)
    assert type(ended.raised) is agents.UserError
    assert session.kept == ["user"]


@BOTH
async def test_row_unknown_tool(mode):
    session = Recorded()
    ended = await run(mode, agent(calls("absent"), said()), "q", session)
    assert type(ended.raised) is agents.ModelBehaviorError
    assert session.kept == ["user"]


@BOTH
async def test_row_unknown_tool_told_to_the_model(mode):
    session = Recorded()
    config = RunConfig(tracing_disabled=True, tool_not_found_behavior="return_error_to_model")
    ended = await run(mode, agent(calls("absent"), said()), "q", session, run_config=config)
    assert ended.raised is None
    assert session.kept == ["user", "call", "out", "assistant"]


@BOTH
async def test_row_max_turns(mode):
    session = Recorded()
    model = (calls("weather", "c1"), calls("weather", "c2"))
    ended = await run(mode, agent(*model), "q", session, max_turns=2)
    assert type(ended.raised) is agents.MaxTurnsExceeded
    assert ended.raised.run_data is not None
    assert session.kept == ["user", "call", "out", "call", "out"]


@BOTH
async def test_row_max_turns_with_a_handler(mode):
    async def stop(_):
        return "I stopped."

    session = Recorded()
    handlers = {"max_turns": stop}
    ended = await run(
        mode, agent(calls("weather")), "q", session, max_turns=1, error_handlers=handlers
    )
    assert (ended.raised, ended.output) == (None, "I stopped.")
    assert session.kept == ["user", "call", "out", "assistant"]


@BOTH
@pytest.mark.parametrize("beside", [True, False], ids=["beside the model", "before it"])
async def test_row_input_guardrail(mode, beside):
    """What was refused stays in the history."""
    session = Recorded()
    rail = input_guardrail(refuse.guardrail_function, run_in_parallel=beside)
    ended = await run(mode, agent(said(), input_guardrails=[rail]), "q", session)
    assert type(ended.raised) is agents.InputGuardrailTripwireTriggered
    assert session.kept == ["user"]


@BOTH
async def test_row_output_guardrail(mode):
    """The answer is not stored; turns with tools before it are."""
    session = Recorded()
    model = (calls("weather"), said())
    ended = await run(mode, agent(*model, output_guardrails=[withhold]), "q", session)
    assert type(ended.raised) is agents.OutputGuardrailTripwireTriggered
    assert session.kept == ["user", "call", "out"]


@BOTH
async def test_row_approval_pending(mode):
    """The one time that a call lies in a history without its output."""
    session = Recorded()
    ended = await run(mode, agent(calls("delete"), said()), "q", session)
    assert [item.name for item in ended.result.interruptions] == ["delete"]
    assert session.kept == ["user", "call"]


@BOTH
@pytest.mark.parametrize("rails", [[], [let_pass]], ids=["plain", "output guardrail"])
async def test_fc_sdk_03_an_approval_leaves_whole_pairs(mode, rails):
    """FC-SDK-03: paused, through JSON, approved, and the next message in the same session."""
    session = Recorded()
    model = (calls("delete"), said("Done."), said("Again."))
    asking = agent(*model, output_guardrails=rails)
    paused = (await run(mode, asking, "q", session)).result
    state = await RunState.from_json(asking, paused.to_state().to_json())
    state.approve(state.get_interruptions()[0])
    ended = await run(mode, asking, state, session)
    assert (ended.raised, ended.output) == (None, "Done.")
    assert session.kept == ["user", "call", "out", "assistant"]
    await run(mode, asking, "and again", session)
    assert session.kept == ["user", "call", "out", "assistant", "user", "assistant"]
    assert brief(asking.model.calls[-1].input) == session.kept[:-1]


@BOTH
async def test_row_handoff(mode):
    """FC-SDK-03: a handoff is a call with its output."""
    session = Recorded()
    other = Agent(name="other", model=scripted(said()))
    first = agent(calls("transfer_to_other"), handoffs=[other])
    ended = await run(mode, first, "q", session)
    assert ended.result.last_agent is other
    assert session.kept == ["user", "call", "out", "assistant"]


@BOTH
@pytest.mark.parametrize(
    ("write", "kept"),
    [(1, []), (2, ["user"]), (3, ["user", "call", "out"])],
    ids=["user", "tools", "answer"],
)
async def test_row_the_store_raises(mode, write, kept):
    """What was acknowledged stays; there is no final output even where all text was shown."""
    session = Recorded(fails_at=write)
    ended = await run(mode, agent(calls("weather"), said()), "q", session)
    assert isinstance(ended.raised, OSError)
    assert ended.output is None
    assert session.kept == kept


async def test_rows_kill_what_lies_in_the_session_at_each_moment():
    """A kill leaves what was acknowledged: in a tool, in the text, in the text after a tool."""
    session, seen = Recorded(), {}

    @function_tool
    async def look() -> str:
        """Look into the session."""
        seen["in a tool"] = session.kept
        return "x"

    def at(result, event):
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
            seen["in the text"] = session.kept
            result.cancel()

    model = (calls("look"), in_pieces(said()))
    await run("streamed", agent(*model, tools=[look]), "q", session, at=at)
    assert seen == {"in a tool": ["user"], "in the text": ["user", "call", "out"]}
    alone = Recorded()
    await run("streamed", agent(in_pieces(said())), "q", alone, at=at)
    assert alone.kept == ["user"]


@BOTH
async def test_sending_a_message_again_stores_it_twice(mode):
    from agents.testing import ModelStep

    session = Recorded()
    trying = agent(ModelStep.raise_error(refused()), said())
    await run(mode, trying, "q", session)
    await run(mode, trying, "q", session)
    assert session.kept == ["user", "user", "assistant"]


@BOTH
@pytest.mark.parametrize("tail", [[USER], [USER, CALL, OUT]], ids=["message", "output"])
async def test_going_on_with_an_empty_input_stores_only_what_is_new(mode, tail):
    """How the runtime runs, always: the message is there already, and no tool runs again."""
    session = Recorded(*tail)
    going_on = agent(said())
    ended = await run(mode, going_on, [], session)
    assert ended.raised is None
    assert brief(going_on.model.first_call.input) == brief(tail)
    assert session.log == [["assistant"]]


TAILS = {
    "call": ([USER, CALL], ["user"], ["user"], ["user"]),
    "output": ([USER, OUT], ["user", "out"], ["user"], ["user", "out"]),
    "reasoning": ([USER, REASONING], *[["user", "reasoning"]] * 3),
    "reasoning and call": ([USER, REASONING, CALL], ["user"], [], []),
}


@BOTH
@pytest.mark.parametrize("how", ["default", "limit", "callback"])
@pytest.mark.parametrize("name", list(TAILS))
async def test_what_is_sent_of_a_torn_tail_is_not_whole(mode, how, name):
    """Why the runtime repairs histories itself, and gives neither a limit nor a callback."""
    tail, default, limited, called = TAILS[name]
    session = Recorded(*tail, limit=2 if how == "limit" else None)
    asking = agent(said())
    config = RunConfig(
        tracing_disabled=True,
        session_input_callback=(lambda old, new: old[-2:] + new) if how == "callback" else None,
    )
    await run(mode, asking, "and", session, run_config=config)
    wanted = {"default": default, "limit": limited, "callback": called}[how]
    assert brief(asking.model.first_call.input) == [*wanted, "user"]
    assert session.items[: len(tail)] == tail


@BOTH
async def test_an_item_that_the_callback_adds_is_stored(mode):
    """Why nothing is added there."""
    session = Recorded(USER)
    note = {"role": "system", "content": "note"}
    config = RunConfig(tracing_disabled=True, session_input_callback=lambda o, n: [*o, note, *n])
    await run(mode, agent(said()), "and", session, run_config=config)
    assert session.kept == ["user", "system", "user", "assistant"]


@BOTH
async def test_what_the_input_filter_leaves_out_or_changes_is_sent_and_not_stored(mode):
    """D6: where the runtime shortens; it is asked before each call, with all of it."""
    session, asked = Recorded(USER, CALL, OUT), []

    def shorten(data):
        asked.append(brief(data.model_data.input))
        data.model_data.input = data.model_data.input[-1:]
        return data.model_data

    shortening = agent(calls("weather", "c2"), said())
    config = RunConfig(tracing_disabled=True, call_model_input_filter=shorten)
    await run(mode, shortening, "and", session, run_config=config)
    assert [brief(call.input) for call in shortening.model.calls] == [["user"], ["out"]]
    before = ["user", "call", "out", "user"]
    assert asked == [before, [*before, "call", "out"]]
    assert session.kept == [*before, "call", "out", "assistant"]


@BOTH
async def test_an_error_of_the_input_filter_comes_out_as_it_is(mode):
    """D6, D13: how a message that is too long ends the turn before the call."""

    def refuse_all(_):
        raise LookupError("too long")

    session = Recorded(USER)
    config = RunConfig(tracing_disabled=True, call_model_input_filter=refuse_all)
    refusing = agent(said())
    ended = await run(mode, refusing, [], session, run_config=config)
    assert type(ended.raised) is LookupError
    assert refusing.model.calls == ()


@pytest.mark.parametrize(
    "other",
    [
        {"conversation_id": "conv_1"},
        {"previous_response_id": "resp_1"},
        {"auto_previous_response_id": True},
    ],
    ids=lambda other: next(iter(other)),
)
async def test_a_session_excludes_each_continuation_of_the_service(other):
    with pytest.raises(agents.UserError, match="cannot be combined"):
        Runner.run_streamed(agent(said()), "q", session=Recorded(), run_config=QUIET, **other)


async def test_two_continuations_of_the_service_are_not_told_apart_here():
    """That they exclude each other is for the manifest to say."""
    ids = {"conversation_id": "conv_1", "previous_response_id": "resp_1"}
    result = await Runner.run(agent(said()), "q", run_config=QUIET, **ids)
    assert result.final_output == "Hello."


async def test_output_guardrails_exclude_continuations_of_the_service():
    guarded = agent(said(), output_guardrails=[let_pass])
    with pytest.raises(agents.UserError):
        await Runner.run(guarded, "q", run_config=QUIET, conversation_id="conv_1")
