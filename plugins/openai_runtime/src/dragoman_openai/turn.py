"""One turn: a run of the SDK in a task that the turn owns, ended before the turn ends."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio
import attrs
from agents import (
    FunctionTool,
    InputGuardrailTripwireTriggered,
    RunHooks,
    Runner,
    RunState,
    ToolCallOutputItem,
)

from dragoman import (
    ApprovalState,
    Cancelled,
    Clock,
    Failed,
    FailureKind,
    Finished,
    InputConsumed,
    Paused,
    Records,
    RunEnd,
    RunEvent,
    RuntimeFailed,
    StoreError,
    TextBlock,
    TextDelta,
    TurnRequest,
)
from dragoman.runtimes import Feed
from dragoman_openai import errors, pauses, refused
from dragoman_openai.client import run_config
from dragoman_openai.config import OpenAIConfig
from dragoman_openai.errors import Refusals
from dragoman_openai.graph import Graph
from dragoman_openai.journal import JournalledContext
from dragoman_openai.past import Past
from dragoman_openai.stream import Translator
from dragoman_openai.trimming import Trim
from dragoman_openai.writes import Writes

if TYPE_CHECKING:
    from agents import (
        Agent,
        AgentBase,
        ModelProvider,
        ModelResponse,
        RunContextWrapper,
        RunResultStreaming,
        Tool,
        ToolErrorFormatterArgs,
    )

DRAIN: Final = 2.0
"""Seconds that a cancelled run gets to end."""


async def _nothing() -> None:
    return None


@attrs.define(eq=False)
class TurnHooks(RunHooks[JournalledContext]):
    """Writes down at the moment it happens what the SDK tells of a run.

    That is who a conversation was handed to, and which tools begin that cannot ask the journal
    themselves.
    """

    _records: Records
    _writes: Writes
    _trim: Trim
    boundary: Callable[[], Awaitable[None]] = attrs.field(default=_nothing)
    """Awaited between a tool and the next call of the model."""

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

    What the SDK is given as input, and where the rest is, is the `Past`'s to say.
    """

    config: OpenAIConfig
    models: ModelProvider
    graph: Graph
    context: JournalledContext
    past: Past
    hooks: TurnHooks
    trim: Trim
    refusals: Refusals
    writes: Writes
    feed: Feed
    clock: Clock
    log: logging.Logger
    request: TurnRequest
    steers: bool = False
    """Whether what people say meanwhile may be taken in."""
    _translator: Translator = attrs.field(init=False)
    _run: RunResultStreaming | None = attrs.field(default=None, init=False)
    _offered: tuple[int, ...] = attrs.field(default=(), init=False)
    """The messages for which the run was stopped at a boundary."""
    _left: int = attrs.field(init=False)
    """Model calls that the turn may still make."""
    _unwritten: list[RunResultStreaming] = attrs.field(factory=list, init=False)
    _held: list[RunEvent] = attrs.field(factory=list, init=False)
    _refused: bool = attrs.field(default=False, init=False)
    """Whether an input guardrail refused what the turn was asked."""

    def __attrs_post_init__(self) -> None:
        self._translator = Translator(self.graph.handoff_tools, self.context.journal.failed)
        self._left = self.config.max_turns
        self.hooks.boundary = self._look

    async def run(self) -> None:
        """Run to the end of the stream and close the feed; cancelling ends the run first."""
        end: RunEnd = Cancelled()
        try:
            end = await self._run_safely()
        finally:
            with anyio.CancelScope(shield=True):
                await self._store_what_was_shown(end)
                await self._tools_down()
        self.feed.close(end)

    async def _tools_down(self) -> None:
        """Wait for tools that go on although they were cancelled: the turn is over when they are."""
        journal = self.context.journal
        with self.clock.move_on_after(DRAIN) as scope:
            await journal.quiet()
        if scope.cancelled_caught:
            tools = ", ".join(sorted(set(journal.working.values())))
            self.log.warning("turn %s ends when its tools do: %s", self.context.turn_id, tools)
            await journal.quiet()

    async def _run_safely(self) -> RunEnd:
        try:
            end = await self._run_steered()
        except Exception as error:  # noqa: BLE001 - the border: whatever failed is the turn's end
            end = self._failed(error)
            self.log.warning(
                "turn %s failed: %s (%s)", self.context.turn_id, end.kind.value, end.detail
            )
            return end
        self.refusals.forget(self.past.session.session_id)
        return end

    def _failed(self, error: BaseException) -> Failed:
        """Return the end of a run that raised; a history that is refused for good is told apart."""
        self._refused = isinstance(error, InputGuardrailTripwireTriggered)
        end = errors.classify(error)
        again = self.refusals.repeated(self.past.session.session_id, error)
        if again or errors.is_broken_history(error):
            return Failed(FailureKind.HISTORY, end.detail)
        return end

    async def _run_steered(self) -> RunEnd:
        """Run, and go on with what people said meanwhile as often as the run has stopped for it."""
        end = await (self._run_repairing() if self.request.saved is None else self._go_on())
        while end is None:
            await self._take_in()
            end = await self._stream(await self._agent(), await self.past.start())
        return end

    async def _run_repairing(self) -> RunEnd | None:
        try:
            return await self._stream(await self._agent(), await self.past.start())
        except Exception as error:
            await self._store_what_ran()
            if not await self.past.mended(error):
                raise
        return await self._stream(await self._agent(), await self.past.start())

    async def _go_on(self) -> RunEnd | None:
        """Go on from the state of a pause, with what was decided."""
        saved = pauses.Saved.of(self.request.saved or "")
        state = await pauses.load(saved, self.graph, self.request.decisions, self.context)
        self._held = [TextBlock(block, text) for block, text in saved.held]
        waiting = {pauses.call_of(item) for item in state.get_interruptions()}
        for decision in self.request.decisions:
            approved = decision.verdict is ApprovalState.APPROVED
            if approved and decision.call_id in waiting:
                for event in self._translator.goes_on(decision.call_id, decision.tool):
                    self._show(event)
        return await self._stream(self.graph.root, {"input": state, **self.past.again()})

    async def _agent(self) -> Agent[Any]:
        return self.graph.start(await self.hooks.last_agent())

    async def _stream(self, agent: Agent[Any], start: dict[str, Any]) -> RunEnd | None:
        """Run to the end of the stream; ``None`` where the run has stopped to be steered."""
        goes_on = isinstance(start["input"], RunState)
        result = self._run = Runner.run_streamed(
            agent,
            **start,
            context=None if goes_on else self.context,
            max_turns=self._left,
            hooks=self.hooks,
            run_config=run_config(
                self.config,
                self.models,
                tool_error_formatter=self._tool_failed,
                call_model_input_filter=self.trim if self.trim.wanted else None,
            ),
        )
        self._unwritten.append(result)
        events = result.stream_events()
        try:
            async for event in events:
                for translated in self._translator.translate(event):
                    self._show(translated)
        finally:
            await self._settle(result, events)
        self._left -= result.current_turn
        end = self._end_of(result)
        if end is None or isinstance(end, Finished | Paused):
            self._unwritten.remove(result)
            await self.past.ended(result, finished=isinstance(end, Finished))
        return end

    async def _look(self) -> None:
        """Let the run stop at this boundary if people have said something that it may take in."""
        if self.steers and not self._offered and self._left > 1:
            offered = await self.context.journal.host.offered()
            self._offered = tuple(message.event_id for message in offered)
            if self._offered and self._run is not None:
                self._run.cancel(mode="after_turn")

    async def _take_in(self) -> None:
        """Take in what was offered: core puts it behind the newest item of the history."""
        self.feed.put(InputConsumed(self._offered))
        self._offered = ()
        await self.feed.taken()

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

    def _end_of(self, result: RunResultStreaming) -> RunEnd | None:
        """Return how a stream that raised nothing has ended; ``is_complete`` would not say."""
        if result.run_loop_exception is not None:
            return self._failed(result.run_loop_exception)
        if result.interruptions:
            return self._paused(result)
        if self._offered and result.final_output is None:
            return None
        newest = result.new_items[-1] if result.new_items else None
        if isinstance(newest, ToolCallOutputItem):  # the agent lets a tool's result end the run
            if result.final_output is not None:
                self._show(TextBlock("output", str(result.final_output)))
        elif result.final_output is None:
            return Failed(FailureKind.INTERNAL, "the run ended without an answer")
        for event in self._held:
            self.feed.put(event)
        return Finished()

    def _paused(self, result: RunResultStreaming) -> Paused:
        held = [event for event in self._held if isinstance(event, TextBlock)]
        state = pauses.save(result, self.graph, held).text()
        for question in pauses.questions(result):
            self.feed.put(question)
        return Paused(state)

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
        if isinstance(end, Finished | Paused):
            return
        if isinstance(end, Failed) and end.kind is FailureKind.CONTEXT_OVERFLOW:
            await self._store_as_far_as_possible(self.past.take_back)
            return
        await self._store_what_ran()
        if self._refused:
            tools = dict.fromkeys(self._translator.calls().values())
            await self._add(refused.mark(len(self.context.inputs), tools))
            return
        session = self.past.session
        shown = self._translator.texts(skip=session.stored_messages)
        if self.graph.guarded:  # held back from people, and so from the history
            shown = []
        cut = [
            tool
            for identity, tool in self._translator.calls().items()
            if identity not in session.stored_calls
        ]
        mark = f"[interrupted while running {', '.join(cut)}]" if cut else "[interrupted]"
        too_long = isinstance(end, Failed) and end.kind is FailureKind.TURN_LIMIT
        if too_long:
            mark = "[stopped: this took more steps than allowed]"
        text = "\n\n".join(part for part in shown if part.strip())
        if text or cut or too_long:
            await self._add({"role": "assistant", "content": f"{text}\n{mark}".lstrip()})

    async def _add(self, item: Any) -> None:
        await self._store_as_far_as_possible(lambda: self.past.session.add_items([item]))

    async def _store_what_ran(self) -> None:
        """Let the past have what runs did that did not end as they should."""
        while self._unwritten:
            result = self._unwritten.pop(0)
            await self._store_as_far_as_possible(partial(self.past.ended, result, finished=False))

    async def _store_as_far_as_possible(self, write: Callable[[], Awaitable[None]]) -> None:
        try:
            await write()
        except (StoreError, RuntimeFailed) as error:
            self.log.warning(
                "turn %s: what was shown could not be stored (%s)",
                self.context.turn_id,
                type(error).__name__,
            )
