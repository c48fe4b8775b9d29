"""One turn: a run of the SDK in a task that the turn owns, ended before the turn ends."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import anyio
import attrs
from agents import (
    FunctionTool,
    InputGuardrailTripwireTriggered,
    RunHooks,
    Runner,
    ToolCallOutputItem,
)

from dragoman import (
    Cancelled,
    Clock,
    Failed,
    FailureKind,
    Finished,
    Records,
    RunEnd,
    RunEvent,
    StoreError,
    TextBlock,
    TextDelta,
    Usage,
)
from dragoman_openai import errors, refused
from dragoman_openai.client import run_config
from dragoman_openai.config import OpenAIConfig
from dragoman_openai.feed import Feed
from dragoman_openai.graph import Graph
from dragoman_openai.journal import JournalledContext
from dragoman_openai.session import RecordsSession
from dragoman_openai.stream import Translator
from dragoman_openai.writes import Writes

if TYPE_CHECKING:
    from agents import (
        Agent,
        AgentBase,
        ModelProvider,
        RunContextWrapper,
        RunResultStreaming,
        Tool,
        ToolErrorFormatterArgs,
    )

DRAIN: Final = 2.0
"""Seconds that a cancelled run gets to end."""


@attrs.define(eq=False)
class TurnHooks(RunHooks[JournalledContext]):
    """Writes down at the moment it happens what the SDK tells of a run.

    That is who a conversation was handed to, and which tools begin that cannot ask the journal
    themselves.
    """

    _records: Records
    _writes: Writes

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
        if not isinstance(tool, FunctionTool):
            await context.context.journal.other_begins(tool)

    async def last_agent(self) -> str | None:
        """Return the name of who the conversation was handed to last."""
        newest = await self._records.read(1)
        return newest[0] if newest else None


@attrs.define(eq=False, kw_only=True)
class TurnRun:
    """Runs the agent on the session's history, whose last item is the person's message.

    Nothing is passed to the SDK as input: what a person said is in the records already.
    """

    config: OpenAIConfig
    models: ModelProvider
    graph: Graph
    context: JournalledContext
    session: RecordsSession
    hooks: TurnHooks
    writes: Writes
    feed: Feed
    clock: Clock
    log: logging.Logger
    _translator: Translator = attrs.field(init=False)
    _results: list[RunResultStreaming] = attrs.field(factory=list, init=False)
    _held: list[RunEvent] = attrs.field(factory=list, init=False)
    _refused: bool = attrs.field(default=False, init=False)
    """Whether an input guardrail refused what the turn was asked."""

    def __attrs_post_init__(self) -> None:
        self._translator = Translator(self.graph.handoff_tools, self.context.journal.failed)

    async def run(self) -> None:
        """Run to the end of the stream and close the feed; cancelling ends the run first."""
        end: RunEnd = Cancelled()
        try:
            end = await self._run_safely()
        finally:
            with anyio.CancelScope(shield=True):
                await self._store_what_was_shown(end)
        self.feed.put(self._usage())
        self.feed.close(end)

    async def _run_safely(self) -> RunEnd:
        try:
            return await self._run_repairing()
        except Exception as error:  # noqa: BLE001 - the border: whatever failed is the turn's end
            end = self._failed(error)
            self.log.warning(
                "turn %s failed: %s (%s)", self.context.turn_id, end.kind.value, end.detail
            )
            return end

    def _failed(self, error: BaseException) -> Failed:
        self._refused = isinstance(error, InputGuardrailTripwireTriggered)
        return errors.classify(error)

    async def _run_repairing(self) -> RunEnd:
        agent = self.graph.start(await self.hooks.last_agent())
        try:
            return await self._stream(agent)
        except Exception as error:
            if not errors.is_broken_history(error):
                raise
        self.log.warning(
            "session %s: the model service refuses the history; it goes on from its last turn",
            self.session.session_id,
        )
        await self.session.keep_last_turn()
        return await self._stream(self.graph.start(await self.hooks.last_agent()))

    async def _stream(self, agent: Agent[Any]) -> RunEnd:
        result = Runner.run_streamed(
            agent,
            [],
            context=self.context,
            session=self.session,
            max_turns=self.config.max_turns,
            hooks=self.hooks,
            run_config=run_config(self.config, self.models, tool_error_formatter=self._tool_failed),
        )
        self._results.append(result)
        events = result.stream_events()
        try:
            async for event in events:
                for translated in self._translator.translate(event):
                    self._show(translated)
        finally:
            await self._settle(result, events)
        return self._end_of(result)

    async def _settle(self, result: RunResultStreaming, events: object) -> None:
        """End the SDK's own tasks, which no scope of ours holds."""
        task = result.run_loop_task
        if task is None or not task.done():
            result.cancel()
        with (
            anyio.CancelScope(shield=True),
            self.clock.move_on_after(DRAIN) as scope,
            suppress(Exception),  # what the run raised has been seen, or does not matter now
        ):
            if isinstance(events, AsyncGenerator):
                await events.aclose()
            async for _ in result.stream_events():
                pass
        if scope.cancelled_caught:
            self.log.error("turn %s: the run did not end within %g s", self.context.turn_id, DRAIN)

    def _end_of(self, result: RunResultStreaming) -> RunEnd:
        """Return how a stream that raised nothing has ended; ``is_complete`` would not say."""
        if result.run_loop_exception is not None:
            return self._failed(result.run_loop_exception)
        if result.interruptions:
            tools = ", ".join(sorted({str(item.name) for item in result.interruptions}))
            return Failed(FailureKind.TOOL, f"approval asked, and nobody can give it: {tools}")
        newest = result.new_items[-1] if result.new_items else None
        if isinstance(newest, ToolCallOutputItem):  # the agent lets a tool's result end the run
            if result.final_output is not None:
                self._show(TextBlock("output", str(result.final_output)))
        elif result.final_output is None:
            return Failed(FailureKind.INTERNAL, "the run ended without an answer")
        for event in self._held:
            self.feed.put(event)
        return Finished()

    def _show(self, event: RunEvent) -> None:
        """Pass an event on; text that is judged at its end waits for the verdict."""
        if self.graph.guarded and isinstance(event, TextDelta | TextBlock):
            if isinstance(event, TextBlock):
                self._held.append(event)
            return
        self.feed.put(event)

    def _tool_failed(self, failure: ToolErrorFormatterArgs[Any]) -> None:
        """Note that a call raised; the SDK's own words go to the model."""
        if failure.kind == "tool_exception":
            self.context.journal.failed.add(failure.call_id)

    async def _store_what_was_shown(self, end: RunEnd) -> None:
        """Leave in the history what people saw and the SDK has not stored, and mark it."""
        await self.writes.settled()
        if isinstance(end, Finished):
            return
        if self._refused:
            tools = dict.fromkeys(self._translator.calls().values())
            await self._add(refused.mark(len(self.context.inputs), tools))
            return
        shown = self._translator.texts(skip=self.session.stored_messages)
        if self.graph.guarded:  # held back from people, and so from the history
            shown = []
        cut = [
            tool
            for identity, tool in self._translator.calls().items()
            if identity not in self.session.stored_calls
        ]
        mark = f"[interrupted while running {', '.join(cut)}]" if cut else "[interrupted]"
        too_long = isinstance(end, Failed) and end.kind is FailureKind.TURN_LIMIT
        if too_long:
            mark = "[stopped: this took more steps than allowed]"
        text = "\n\n".join(part for part in shown if part.strip())
        if text or cut or too_long:
            await self._add({"role": "assistant", "content": f"{text}\n{mark}".lstrip()})

    async def _add(self, item: Any) -> None:
        try:
            await self.session.add_items([item])
        except StoreError as error:
            self.log.warning(
                "turn %s: what was shown could not be stored (%s)",
                self.context.turn_id,
                type(error).__name__,
            )

    def _usage(self) -> Usage:
        counts = [result.context_wrapper.usage for result in self._results]
        return Usage(
            requests=sum(usage.requests for usage in counts),
            input_tokens=sum(usage.input_tokens for usage in counts),
            output_tokens=sum(usage.output_tokens for usage in counts),
        )
