"""Agents for the tests, as an operator's module would hold them."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import Any

import anyio
from agents import (
    Agent,
    ApplyPatchTool,
    GuardrailFunctionOutput,
    HostedMCPTool,
    RunContextWrapper,
    StopAtTools,
    function_tool,
    handoff,
    input_guardrail,
    output_guardrail,
)
from agents.editor import ApplyPatchOperation
from agents.mcp import MCPServerStdio
from agents.testing import ScriptedModel, assistant_message
from openai.types.responses import ResponseApplyPatchToolCall
from openai.types.responses.response_apply_patch_tool_call import OperationDeleteFile
from pydantic import BaseModel

from dragoman_openai import TurnContext

STARTED: list[str] = []
ENDED: list[str] = []
SEEN: list[Any] = []


@function_tool
async def get_weather(run: RunContextWrapper[TurnContext], city: str) -> str:
    """Say what the weather is like."""
    SEEN.append(run.context)
    return f"21 degrees in {city}"


@function_tool
async def slow() -> str:
    """Take for ever."""
    STARTED.append("slow")
    try:
        await anyio.sleep_forever()
    finally:
        ENDED.append("slow")
    return "never"


LET_GO = threading.Event()
"""What the two tools wait for that nobody can cancel."""


@function_tool
def block() -> str:
    """Work in a thread, whatever happens."""
    STARTED.append("block")
    LET_GO.wait(60)
    ENDED.append("block")
    return "worked"


@function_tool
async def insist() -> str:
    """Work on when told to stop."""
    STARTED.append("insist")
    while not LET_GO.is_set():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0.01)
    ENDED.append("insist")
    return "worked"


@function_tool
async def bad() -> str:
    """Fail, and let the model know."""
    raise ValueError("canary-secret")


@function_tool(failure_error_function=lambda run, error: "Sorry.")
async def sorry() -> str:
    """Fail, with words of its own."""
    raise ValueError("canary-secret")


@function_tool(timeout=0.1)
async def dawdle() -> str:
    """Take longer than allowed."""
    await anyio.sleep_forever()
    return "never"


@function_tool
def pay(run: RunContextWrapper[TurnContext], amount: int) -> str:
    """Pay, in a thread."""
    SEEN.append((run.context.call_key, run.context.effect_key, amount))
    return f"paid {amount}"


@function_tool(name_override="pay")
async def paying_twice() -> str:
    """Pay, by another function."""
    return "paid"


class Receipt(BaseModel):
    """What a typed tool returns."""

    total: int


@function_tool(output_type=Receipt)
async def bill() -> Receipt:
    """Make a bill."""
    return Receipt(total=3)


@function_tool(failure_error_function=None)
async def worse() -> str:
    """Fail, and take the run down."""
    raise ValueError("canary-secret")


@function_tool(needs_approval=True)
async def delete_all() -> str:
    """Delete everything."""
    STARTED.append("delete_all")
    return "deleted"


def plain_tool(city: str) -> str:
    """Say what time it is."""
    return f"noon in {city}"


def unresolved_tool(city: Missing) -> str:  # type: ignore[name-defined]  # noqa: F821 - the point
    """Cannot be a tool."""
    return city


@input_guardrail
async def no_swearing(
    run: RunContextWrapper[TurnContext], agent: Agent[Any], said: Any
) -> GuardrailFunctionOutput:
    return GuardrailFunctionOutput(output_info=None, tripwire_triggered="damn" in str(said[-1]))


@input_guardrail
def watch(run: Any, agent: Agent[Any], said: Any) -> GuardrailFunctionOutput:
    SEEN.append([item["content"] for item in said])
    return GuardrailFunctionOutput(output_info=None, tripwire_triggered=False)


@output_guardrail
async def no_secrets(
    run: RunContextWrapper[TurnContext], agent: Agent[Any], answer: Any
) -> GuardrailFunctionOutput:
    return GuardrailFunctionOutput(output_info=None, tripwire_triggered="secret" in str(answer))


assistant = Agent(name="assistant", instructions="Help.", tools=[get_weather, slow, bad, worse])
billing = Agent(name="billing", instructions="Money.", handoffs=[])
triage = Agent(name="triage", instructions="Receive.", handoffs=[billing])
custom_triage = Agent(
    name="triage",
    instructions="Receive.",
    handoffs=[handoff(billing, tool_name_override="to_money")],
)
guarded_input = Agent(name="polite", input_guardrails=[no_swearing])
watching = Agent(name="watching", input_guardrails=[watch])
litellm_agent = Agent(name="other", model="litellm/anthropic/claude")


def dynamic_instructions(run: RunContextWrapper[TurnContext], agent: Agent[Any]) -> str:
    turn = run.context
    return f"{turn.person.name} on {turn.platform}, {turn.time_zone}, {turn.now:%z}"


dynamic = Agent(name="dynamic", instructions=dynamic_instructions)
guarded_output = Agent(name="discreet", output_guardrails=[no_secrets])
stopping = Agent(
    name="stopping",
    tools=[get_weather],
    tool_use_behavior=StopAtTools(stop_at_tool_names=["get_weather"]),
)


@function_tool
async def draw(run: RunContextWrapper[TurnContext], points: int) -> str:
    """Draw a chart and show it."""
    caption = f"{points} points"
    try:
        await run.context.attach(
            "chart.png", b"PNG" * points, mime="image/png", kind="image", caption=caption
        )
    except ValueError as error:
        return str(error)
    return "It is shown."


@function_tool
async def look(run: RunContextWrapper[TurnContext]) -> str:
    """Look at the newest file by itself, and offer what to do with it."""
    [(reference, _)] = run.context.inputs[-1].files
    file = await run.context.fetch(reference)
    await run.context.suggest(["Keep it", "Drop it"])
    return f"{file.name} has {file.size} bytes: {await run.context.read(reference, 5)}"


looking = Agent(name="looking", tools=[look])
drawing = Agent(name="drawing", tools=[draw])
paying = Agent(name="paying", tools=[pay, sorry, dawdle, bill, get_weather])
asking = Agent(
    name="asking",
    tools=[paying.as_tool(tool_name="ask_payer", tool_description="Ask the paying agent.")],
)
cashier = Agent(name="paying", tools=[pay])
asking_simply = Agent(
    name="asking simply",
    tools=[cashier.as_tool(tool_name="ask_payer", tool_description="Ask the paying agent.")],
)
approving = Agent(name="approving", tools=[delete_all])
outer = Agent(
    name="outer",
    tools=[approving.as_tool(tool_name="ask_inner", tool_description="Ask the inner agent.")],
)


@function_tool(needs_approval=True)
def wipe(path: str) -> str:
    """Wipe a path."""
    SEEN.append(path)
    return f"wiped {path}"


@function_tool(name_override="wipe", needs_approval=True)
def wipe_differently(path: str, how: str) -> str:
    """Wipe a path in some way."""
    SEEN.append((path, how))
    return f"wiped {path}"


careful = Agent(name="careful", instructions="Wipe.", tools=[wipe])
renamed = Agent(name="careless", instructions="Wipe.", tools=[wipe])
changed = Agent(name="careful", instructions="Wipe.", tools=[wipe_differently])
delegating = Agent(
    name="delegating",
    tools=[careful.as_tool(tool_name="ask_careful", tool_description="Ask the careful agent.")],
)
twins = Agent(name="twin", handoffs=[Agent(name="twin")])
asking_mcp = Agent(
    name="asking",
    mcp_servers=[
        MCPServerStdio({"command": "true"}, name="files", require_approval={"write": "always"})
    ],
)
forgetful = Agent(
    name="own", tools=[function_tool(plain_tool, name_override="remember"), get_weather]
)

not_an_agent = 42


def make() -> Agent[Any]:
    return Agent(name="made", instructions="Made.")


def make_for(profile: str) -> Agent[Any]:
    STARTED.append(threading.current_thread().name)
    return Agent(name=f"agent-of-{profile}", instructions=f"For {profile}.")


def make_paying_for(profile: str) -> Agent[Any]:
    return paying.clone(name=f"payer-of-{profile}")


class Editor:
    """Applies patches, in name."""

    def delete_file(self, operation: ApplyPatchOperation) -> str:
        STARTED.append(operation.path)
        return "deleted"

    create_file = update_file = delete_file


def make_editing() -> Agent[Any]:
    """An agent with a tool of another kind, and a model that calls it."""
    call = ResponseApplyPatchToolCall(
        type="apply_patch_call",
        id="patch_1",
        call_id="call_1",
        status="completed",
        operation=OperationDeleteFile(type="delete_file", path="a.txt"),
    )
    return Agent(
        name="editing",
        model=ScriptedModel([[call], [assistant_message("It is gone.")]]),
        tools=[ApplyPatchTool(Editor())],
    )


def make_badly(profile: str) -> int:
    return len(profile)


def make_raising() -> Agent[Any]:
    raise RuntimeError("no luck")


def make_with_much(profile: str, other: str) -> Agent[Any]:
    return Agent(name=profile + other)


async def make_async() -> Agent[Any]:
    return make()


busy = Agent(name="assistant", instructions="Help.", tools=[block, insist])
DOCS: Any = {
    "type": "mcp",
    "server_label": "docs",
    "server_url": "https://127.0.0.1/mcp",
    "authorization": "canary-of-the-docs",
    "headers": {"X-Key": "canary-of-the-docs"},
    "require_approval": "never",
}
reading = Agent(name="reading", tools=[HostedMCPTool(tool_config=DOCS)])
cheap = Agent(name="cheap", model="small", instructions="Answer.")
mixed = Agent(name="mixed", model="large", instructions="Receive.", handoffs=[cheap])
