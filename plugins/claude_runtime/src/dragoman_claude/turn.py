"""One turn: a prompt given to the session's program, and what comes of it until its result."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import anyio
import attrs

from dragoman import (
    ApprovalState,
    Cancelled,
    Failed,
    FailureKind,
    Finished,
    Paused,
    Records,
    RunEnd,
    RuntimeFailed,
    StaleLease,
    StoreError,
    TurnHost,
    TurnRequest,
)
from dragoman.runtimes import Feed, TurnContext
from dragoman_claude import history, pauses, results
from dragoman_claude.client import Client
from dragoman_claude.conversation import Conversation
from dragoman_claude.gate import Gate
from dragoman_claude.history import State
from dragoman_claude.prompts import prompt, prompt_id
from dragoman_claude.spending import NAMESPACE as SPENT
from dragoman_claude.spending import Meter, Spent
from dragoman_claude.starting import Start, Workshop
from dragoman_claude.stream import Translator

if TYPE_CHECKING:
    from claude_agent_sdk import Message

_LOST: Final = "the session is another process's now"
_DRAIN: Final = 1.5
"""Seconds in which an interrupted program has to say how its turn ended."""
_ANEW_FOR: Final = frozenset({FailureKind.HISTORY, FailureKind.CONTEXT_OVERFLOW})
"""Failures that every later turn would have as well."""


@attrs.define(eq=False, kw_only=True)
class TurnRun:
    """Runs one turn and writes its events into the feed."""

    shop: Workshop
    request: TurnRequest
    host: TurnHost
    context: TurnContext
    feed: Feed
    _gate: Gate = attrs.field(init=False)
    _translator: Translator = attrs.field(init=False)
    _records: Records = attrs.field(init=False)
    _model: str = attrs.field(init=False)
    _spent: Spent = attrs.field(factory=Spent, init=False)
    _start: Start = attrs.field(init=False)
    _heard: anyio.Event = attrs.field(factory=anyio.Event, init=False)
    _done: anyio.Event = attrs.field(factory=anyio.Event, init=False)

    def __attrs_post_init__(self) -> None:
        self._records = self.host.records(history.NAMESPACE)
        self._model = self.request.model
        self._translator = Translator(
            prompt=None if self.request.saved is not None else self._prompt_id,
            thinking=self.shop.recipe.config.thinking == "adaptive",
        )

    @property
    def _prompt_id(self) -> str:
        return prompt_id(self.request.turn_id, self.request.attempt)

    async def run(self) -> None:
        """Run to the result and close the feed; cancelling interrupts the program first."""
        end: RunEnd = Cancelled()
        try:
            end = await self._run_safely()
        finally:
            self.feed.close(end)

    async def _run_safely(self) -> RunEnd:
        try:
            end = await self._run()
        except Exception as error:  # noqa: BLE001 - the border: whatever failed is the turn's end
            end = results.failure_of(error)
        if isinstance(end, Failed):
            self.shop.log.warning(
                "turn %s failed: %s (%s)", self.request.turn_id, end.kind.value, end.detail
            )
        return end

    async def _run(self) -> RunEnd:
        saved = self.request.saved
        self._gate = Gate(
            host=self.host,
            rules=self.shop.rules,
            decisions={one.call_id: one for one in self.request.decisions},
            waiting=None if saved is None else pauses.Saved.of(saved),
            on_lost=self._lose,
        )
        if self._gate.waiting is not None:
            self._model = self._gate.waiting.model
        self._spent = Spent.of(await self.host.records(SPENT).read(1))
        if (refused := self.shop.budget.refusal(self._spent)) is not None:
            return refused
        for made in self.request.decisions:
            if made.verdict is ApprovalState.APPROVED and self._gate.waits_for(made.call_id):
                for event in self._translator.goes_on(made.call_id, made.tool):
                    self.feed.put(event)
        state = history.read_state(await self._records.read(history.NEWEST))
        start = self._start = Start(
            shop=self.shop,
            session_id=self.request.session_id,
            records=self._records,
            gate=self._gate,
            spent=self._spent,
            feed=self.feed,
            enter=self._enter,
            model=self._model,
        )
        use = self.shop.pool.use(self.request.session_id, self._fits(state), start.begin)
        async with use as one:
            self._enter(one)
            try:
                end = await self._in(one, start.state or state)
            finally:
                await self._leave(one)
        return Failed(FailureKind.LOCK_CONFLICT, _LOST) if self._gate.lost else end

    def _fits(self, state: State) -> Callable[[Conversation], bool]:
        """Return whether a live program may serve this turn: it knows all, and may spend more."""

        def fits(one: Conversation) -> bool:
            same = one.transcript.newest == state.newest and state.id in {None, one.transcript.id}
            alone = self.request.saved is None and self.shop.budget.turn is None
            able = one.model == self._model and not one.transcript.broken
            return same and alone and able

        return fits

    async def _in(self, one: Conversation, state: State) -> RunEnd:
        """Give the program its prompt, and wait for what comes of it."""
        told = None
        if self.request.saved is None:
            mine = {message.event_id for message in self.request.inputs}
            earlier = [each.words for each in state.untold if each.event_id not in mine]
            told = await prompt(self._prompt_id, self.request.inputs, self.host, earlier)
        one.client.turns += 1
        try:
            if told is not None:
                await one.client.say(told)
            await self._until_done(one.client)
        except anyio.get_cancelled_exc_class():
            await self._stop(one.client)
            raise
        return await self._end(one)

    def _enter(self, one: Conversation) -> None:
        """Let what the program says, asks and calls reach this turn."""
        one.door.gate = one.toolbox.gate = self._gate
        one.toolbox.context = self.context
        one.transcript.bind(self._records, self._lose)
        self._gate.stored = one.transcript.holds
        one.client.listener = self._hear

    async def _leave(self, one: Conversation) -> None:
        """Let nothing reach this turn any more; tools that still work are waited for."""
        with anyio.CancelScope(shield=True):
            if self._gate.lost:
                await one.client.close(patience=0)
            self._gate.over.set()
            await one.toolbox.quiet()
            one.door.gate = one.toolbox.gate = one.client.listener = None
            try:
                await one.transcript.flush()
                await self._count(one.meter)
                await self._remember(one)
            except StaleLease:
                self._gate.lost = True
                await one.client.close(patience=0)
            except StoreError as error:
                self.shop.log.warning(
                    "turn %s: a part of its transcript could not be stored (%s)",
                    self.request.turn_id,
                    type(error).__name__,
                )
            one.transcript.unbind()

    async def _remember(self, one: Conversation) -> None:
        """Keep what people saw of an answer, and the program does not know: it was cut off."""
        words = self._translator.lost
        if words.strip() and not self._gate.lost:
            await one.client.close()
            await one.transcript.flush()
            behind = None if self.shop.local else one.transcript.newest
            await self._records.append([history.cut_off(words, behind)])

    def _hear(self, message: Message) -> None:
        for event in self._translator.translate(message):
            self.feed.put(event)
        if self._translator.result is not None:
            self._done.set()
        self._heard.set()

    def _lose(self) -> None:
        self._gate.lost = True
        self._heard.set()

    async def _until_done(self, client: Client) -> None:
        """Wait for the result. Raises `Lost` with the program, and for one that says nothing."""
        silence = self.shop.recipe.config.programs.silence

        async def lost() -> None:
            await client.gone()
            self._heard.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lost)
            while not self._done.is_set() and client.alive and not self._gate.lost:
                self._heard = anyio.Event()
                with self.shop.clock.move_on_after(silence) as scope:
                    await self._heard.wait()
                if scope.cancelled_caught and not self._translator.working:
                    break
            tasks.cancel_scope.cancel()
        if self._gate.lost:
            await client.close(patience=0)
            raise RuntimeFailed(FailureKind.LOCK_CONFLICT, _LOST)
        if self._done.is_set():
            return
        if client.alive:
            await self._stop(client)
        if client.failure is not None:
            failed = results.failure_of(client.failure, client.last_words)
            raise RuntimeFailed(failed.kind, failed.detail) from client.failure
        raise RuntimeFailed(FailureKind.TIMEOUT, f"silent for {silence:g} s")

    async def _stop(self, client: Client) -> None:
        """Interrupt the program and let it say how the turn ended; end it where it does not.

        It is ended as well where it was at work on a call itself: what that has started may not
        heed an interruption.
        """
        self._gate.stopped = True
        with anyio.CancelScope(shield=True):
            if await client.interrupt():
                with self.shop.clock.move_on_after(_DRAIN):
                    await self._done.wait()
            ended = self._done.is_set() and not self._gate.lost and not self._gate.outside
            if not (ended and await client.rest()):
                await client.close(patience=0)

    async def _end(self, one: Conversation) -> RunEnd:
        result = self._translator.result
        assert result is not None
        await one.transcript.flush()
        end = results.end_of(result, error=self._translator.error)
        if isinstance(end, Finished) and await one.client.rest():
            return end
        await one.client.close()
        await one.transcript.flush()
        if isinstance(end, results.Deferred):
            return self._paused(end, one.transcript.id)
        if isinstance(end, Failed) and end.kind in _ANEW_FOR:
            await self._start.anew()
        return end

    async def _count(self, meter: Meter) -> None:
        """Tell what the turn has used, and keep what the session has cost."""
        if self._translator.reset:
            meter.reset()
        used = meter.read(self._translator.result, self._translator.calls)
        for usage in used:
            self.feed.put(usage)
        spent = self._spent.plus(used, meter.last)
        await self.host.records(SPENT).append([spent.item()])

    def _paused(self, deferred: results.Deferred, claude_id: str) -> RunEnd:
        asked = self._gate.asked
        if asked is None or asked.call_id != deferred.call_id:
            return Failed(FailureKind.INTERNAL, "a call was put off that nobody was asked about")
        self.feed.put(asked)
        return Paused(pauses.Saved.about(asked, claude_id, self._model).text())
