"""One turn: a run of the SDK in a task that the turn owns, ended before the turn ends."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

import anyio
import attrs
from agents import InputGuardrailTripwireTriggered, Runner, RunState, ToolCallOutputItem

from dragoman import (
    ApprovalState,
    Cancelled,
    Clock,
    Failed,
    FailureKind,
    Finished,
    InputConsumed,
    Paused,
    RunEnd,
    RunEvent,
    TextBlock,
    TextDelta,
    TurnRequest,
)
from dragoman.runtimes import Feed
from dragoman_openai import errors, pauses
from dragoman_openai.client import run_config
from dragoman_openai.config import OpenAIConfig
from dragoman_openai.cut_off import CutOff
from dragoman_openai.errors import Refusals
from dragoman_openai.graph import Graph
from dragoman_openai.journal import JournalledContext
from dragoman_openai.past import Past
from dragoman_openai.reading import Reader
from dragoman_openai.run_hooks import TurnHooks
from dragoman_openai.stream import Translator
from dragoman_openai.trimming import Trim
from dragoman_openai.writes import Writes

if TYPE_CHECKING:
    from agents import (
        Agent,
        ModelProvider,
        RunResultStreaming,
        StreamEvent,
        ToolErrorFormatterArgs,
    )

DOWN: Final = 2.0
"""Seconds after which the log names the tools that a turn waits for."""


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
    _model: str = attrs.field(init=False)
    """What people chose, for all agents of the run; empty where each has its own."""
    _held: list[RunEvent] = attrs.field(factory=list, init=False)
    _reader: Reader = attrs.field(init=False)
    _cut_off: CutOff = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        journal, turn_id = self.context.journal, self.context.turn_id
        self._translator = Translator(self.graph.handoff_tools, journal.failed)
        self._left = self.config.max_turns
        self._model = self.request.model
        self.hooks.boundary = self._look
        self._reader = Reader(journal, self.clock, self.log, turn_id)
        self._cut_off = CutOff(
            past=self.past,
            shown=self._translator,
            veiled=self.graph.guarded,
            messages=len(self.context.inputs),
            writes=self.writes,
            log=self.log,
            turn_id=turn_id,
        )

    async def run(self) -> None:
        """Run to the end of the stream and close the feed; cancelling ends the run first."""
        end: RunEnd = Cancelled()
        try:
            end = await self._run_safely()
        finally:
            with anyio.CancelScope(shield=True):
                await self._cut_off.store(end)
                await self._tools_down()
        self.feed.close(end)

    async def _tools_down(self) -> None:
        """Wait for tools that go on although they were cancelled: the turn is over when they are."""
        journal = self.context.journal
        with self.clock.move_on_after(DOWN) as scope:
            await journal.quiet()
        if scope.cancelled_caught:
            tools = ", ".join(journal.names())
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
        self._cut_off.refused = isinstance(error, InputGuardrailTripwireTriggered)
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
            await self._cut_off.store_runs()
            if not await self.past.mended(error):
                raise
        return await self._stream(await self._agent(), await self.past.start())

    async def _go_on(self) -> RunEnd | None:
        """Go on from the state of a pause, with what was decided."""
        saved = pauses.Saved.of(self.request.saved or "")
        self._model = saved.model
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
                model=self._model or None,
                call_model_input_filter=self.trim if self.trim.wanted else None,
            ),
        )
        self._cut_off.runs.append(result)
        await self._reader.read(result, self._take)
        self._left -= result.current_turn
        end = self._end_of(result)
        if end is None or isinstance(end, Finished | Paused):
            self._cut_off.runs.remove(result)
            await self.past.ended(result, finished=isinstance(end, Finished))
        return end

    def _take(self, event: StreamEvent) -> None:
        for translated in self._translator.translate(event):
            self._show(translated)

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
        state = pauses.save(result, self.graph, held, self._model).text()
        for question in pauses.questions(result):
            self.feed.put(question)
        return Paused(state, pauses.withdrawn(result))

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
