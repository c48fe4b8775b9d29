"""What the SDK tells of a run at the moment it happens, where its stream would tell it too late."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import attrs
from agents import FunctionTool, RunHooks

from dragoman import FailureKind, Records, RuntimeFailed
from dragoman_openai.journal import JournalledContext
from dragoman_openai.trimming import Trim
from dragoman_openai.writes import Writes

if TYPE_CHECKING:
    from agents import Agent, AgentBase, ModelResponse, RunContextWrapper, Tool


async def _nothing() -> None:
    return None


@attrs.define(eq=False)
class TurnHooks(RunHooks[JournalledContext]):
    """Follows the runs of one turn: who asks, who acts, and to whom the conversation goes."""

    _records: Records
    _writes: Writes
    _trim: Trim
    boundary: Callable[[], Awaitable[None]] = attrs.field(default=_nothing)
    """Awaited between a tool and the next call of the model."""

    async def on_llm_start(
        self,
        context: RunContextWrapper[JournalledContext],
        agent: Agent[JournalledContext],
        system_prompt: str | None,
        input_items: list[Any],
    ) -> None:
        """Note that what tools have done is stored; a turn that is stopped asks no model again."""
        del agent, system_prompt, input_items
        journal = context.context.journal
        journal.acting = False
        if journal.stopped:
            raise RuntimeFailed(FailureKind.INTERNAL, "the turn was stopped behind a tool")

    async def on_llm_end(
        self,
        context: RunContextWrapper[JournalledContext],
        agent: Agent[JournalledContext],
        response: ModelResponse,
    ) -> None:
        """Learn from the provider's count how large requests are."""
        del context
        self._trim.learn(agent, response)

    async def on_handoff(
        self,
        context: RunContextWrapper[JournalledContext],
        from_agent: Agent[JournalledContext],
        to_agent: Agent[JournalledContext],
    ) -> None:
        """Store the name of the agent that goes on."""
        del context, from_agent
        await self._writes(lambda: self._records.append([to_agent.name]))

    async def on_tool_start(
        self,
        context: RunContextWrapper[JournalledContext],
        agent: AgentBase[JournalledContext],
        tool: Tool,
    ) -> None:
        """Journal what is no function tool; the SDK waits for this before it begins."""
        del agent
        journal = context.context.journal
        journal.acting = True
        if not isinstance(tool, FunctionTool):
            await journal.other_begins(tool)

    async def on_tool_end(
        self,
        context: RunContextWrapper[JournalledContext],
        agent: AgentBase[JournalledContext],
        tool: Tool,
        result: object,
    ) -> None:
        """Look for what people have said meanwhile: the run may stop here for them."""
        del context, agent, tool, result
        await self.boundary()

    async def last_agent(self) -> str | None:
        """Return the name of who the conversation was handed to last."""
        newest = await self._records.read(1)
        return newest[0] if newest else None
