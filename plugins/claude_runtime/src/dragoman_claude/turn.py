"""One turn: a prompt given to the session's program, and what comes of it until its result."""

from __future__ import annotations

import json
import logging
import uuid
from typing import TYPE_CHECKING, Any, Final

import anyio
import attrs
from anyio.abc import TaskGroup

from dragoman import (
    Cancelled,
    Clock,
    Failed,
    FailureKind,
    Finished,
    Notice,
    Paused,
    Records,
    RunEnd,
    RuntimeFailed,
    TurnHost,
    TurnRequest,
)
from dragoman.runtimes import Feed, TurnContext
from dragoman_claude import pauses, results
from dragoman_claude.client import Client, Lost
from dragoman_claude.conversation import Conversation
from dragoman_claude.gate import Door, Gate, Rules
from dragoman_claude.home import Homes
from dragoman_claude.options import Recipe
from dragoman_claude.pool import Pool
from dragoman_claude.prompts import Prompts, prompt_id
from dragoman_claude.spending import Ledger
from dragoman_claude.stream import Translator
from dragoman_claude.tools import Function, Toolbox
from dragoman_claude.transcript import Mirror, State, Transcript, read_state, write_transcript

if TYPE_CHECKING:
    from claude_agent_sdk import Message

NAMESPACE: Final = "claude"
SPENT: Final = "claude.spent"
_TAIL: Final = 64
"""Items from which a program that is alive is known to be up to date."""
_DRAIN: Final = 1.5
"""Seconds in which an interrupted program has to say how its turn ended."""


@attrs.frozen(kw_only=True)
class Workshop:
    """What all turns of a runtime share."""

    recipe: Recipe
    rules: Rules
    functions: dict[str, Function]
    homes: Homes
    pool: Pool
    tasks: TaskGroup
    clock: Clock
    log: logging.Logger


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
    _ledger: Ledger = attrs.field(init=False)
    _heard: anyio.Event = attrs.field(factory=anyio.Event, init=False)
    _done: anyio.Event = attrs.field(factory=anyio.Event, init=False)

    def __attrs_post_init__(self) -> None:
        request, shop = self.request, self.shop
        self._gate = Gate(
            host=self.host,
            rules=shop.rules,
            log=shop.log,
            decisions={one.call_id: one for one in request.decisions},
            waiting=None if request.saved is None else pauses.Saved.of(request.saved),
        )
        self._translator = Translator(
            prompt=None if request.saved is not None else self._prompt_id,
            thinking=shop.recipe.config.thinking == "adaptive",
        )
        self._records = self.host.records(NAMESPACE)
        self._ledger = Ledger(self.host.records(SPENT), shop.recipe.config.budget)

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
            return await self._run()
        except Exception as error:  # noqa: BLE001 - the border: whatever failed is the turn's end
            end = self._failed(error)
            self.shop.log.warning(
                "turn %s failed: %s (%s)", self.request.turn_id, end.kind.value, end.detail
            )
            return end

    async def _run(self) -> RunEnd:
        if (over := await self._ledger.used_up()) is not None:
            self.feed.put(Notice(over))
            return Failed(FailureKind.TURN_LIMIT, "the conversation's budget is used up")
        state = read_state(await self._records.read(_TAIL))
        going_on = self.request.saved is not None

        def fits(one: Conversation) -> bool:
            bound = self.shop.recipe.config.budget.turn is not None
            return not going_on and not bound and one.transcript.newest == state.newest

        async with self.shop.pool.use(self.request.session_id, fits, self._begin) as one:
            self._enter(one)
            try:
                return await self._in(one, state)
            finally:
                await self._leave(one)

    async def _in(self, one: Conversation, state: State) -> RunEnd:
        """Give the program its prompt, and wait for what comes of it."""
        if self.request.saved is None:
            prompts = Prompts(self.host, self.shop.recipe.config)
            earlier = state.unanswered(self.request.inputs)
            await one.client.say(
                await prompts.make(self.request.inputs, earlier, identity=self._prompt_id)
            )
        one.client.turns += 1
        try:
            await self._until_done(one.client)
        except anyio.get_cancelled_exc_class():
            await self._stop(one.client)
            raise
        return await self._end(one)

    async def _begin(self) -> Conversation:
        """Start the session's program, on what the store has of its transcript."""
        shop, session_id = self.shop, self.request.session_id
        items = await self._records.read()
        state = read_state(items)
        claude_id = state.claude_id
        if self._gate.waiting is not None:
            self._gate.waiting.check(claude_id)
        if claude_id is None:
            claude_id = str(uuid.uuid4())
            await self._records.append([json.dumps({"id": claude_id})])
        home = shop.homes.home(session_id)
        client = Client(home, shop.clock, shop.log)
        one = Conversation(
            claude_id=claude_id,
            client=client,
            transcript=Transcript(state.newest),
            door=Door(),
            toolbox=Toolbox(shop.functions, shop.log),
        )
        self._enter(one)
        resumed = state.newest is not None
        if resumed:
            await write_transcript(home.config, home.workspace, claude_id, items)
        options = shop.recipe.options(
            home=home,
            session_id=claude_id,
            resumed=resumed,
            mirror=Mirror(one.transcript),
            server=one.toolbox.server(),
            hooks=one.door.hooks(),
            stderr=client.heard,
            allowance=await self._ledger.allowance(),
        )
        try:
            await client.start(shop.tasks, options, shop.recipe.config.programs.start_timeout)
        except Exception as error:
            failed = results.failure_of(error, client.last_words)
            raise RuntimeFailed(failed.kind, failed.detail) from error
        return one

    def _enter(self, one: Conversation) -> None:
        """Let what the program says, asks and calls reach this turn."""
        one.door.gate = one.toolbox.gate = self._gate
        one.toolbox.context = self.context
        one.transcript.bind(self._records)
        one.client.listener = self._hear

    async def _leave(self, one: Conversation) -> None:
        """Let nothing reach this turn any more; tools that still work are waited for."""
        one.door.gate = one.client.listener = None
        with anyio.CancelScope(shield=True):
            await one.toolbox.quiet()
        one.toolbox.gate = None
        one.transcript.unbind()

    def _hear(self, message: Message) -> None:
        for event in self._translator.translate(message):
            self.feed.put(event)
        if self._translator.result is not None:
            self._done.set()
        self._heard.set()

    async def _until_done(self, client: Client) -> None:
        """Wait for the result. Raises `Lost` with the program, and for one that says nothing."""
        silence = self.shop.recipe.config.programs.silence

        async def lost() -> None:
            await client.gone()
            self._heard.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lost)
            while not self._done.is_set() and client.alive:
                self._heard = anyio.Event()
                with self.shop.clock.move_on_after(silence) as scope:
                    await self._heard.wait()
                if scope.cancelled_caught and not self._translator.working:
                    tasks.cancel_scope.cancel()
                    await self._stop(client)
                    raise RuntimeFailed(FailureKind.TIMEOUT, f"silent for {silence:g} s")
            tasks.cancel_scope.cancel()
        if not self._done.is_set():
            raise Lost from client.failure

    async def _stop(self, client: Client) -> None:
        """Interrupt the program and let it say how the turn ended; end it where it does not."""
        with anyio.CancelScope(shield=True):
            if await client.interrupt():
                with self.shop.clock.move_on_after(_DRAIN):
                    await self._done.wait()
            if not self._done.is_set():
                await client.close(patience=0)

    async def _end(self, one: Conversation) -> RunEnd:
        result = self._translator.result
        assert result is not None
        for usage in await self._ledger.take(result):
            self.feed.put(usage)
        if self._gate.lost or one.transcript.lost:
            raise RuntimeFailed(FailureKind.LOCK_CONFLICT, "the session is another process's now")
        end = results.end_of(result)
        if isinstance(end, results.Deferred):
            await one.client.close()
            return self._paused(end, one.claude_id)
        if not isinstance(end, Finished):
            await one.client.close()
        return end

    def _paused(self, deferred: results.Deferred, claude_id: str) -> RunEnd:
        asked = self._gate.asked
        if asked is None or asked.call_id != deferred.call_id:
            return Failed(FailureKind.INTERNAL, "a call was put off that nobody was asked about")
        self.feed.put(asked)
        return Paused(pauses.Saved.about(asked, claude_id).text())

    def _failed(self, error: Exception) -> Failed:
        if isinstance(error, RuntimeFailed):
            return Failed(error.kind, error.detail)
        return results.failure_of(error, ())
