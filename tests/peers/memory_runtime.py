"""A right runtime for the model in memory; its parts can be replaced by wrong ones."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any

import anyio
import attrs

from dragoman import (
    ApprovalRequested,
    ApprovalState,
    Cancelled,
    EncodedInput,
    Failed,
    FailureKind,
    Finished,
    Host,
    InputConsumed,
    Paused,
    RunEnd,
    RunEvent,
    RuntimeCapabilities,
    Secret,
    StaleLease,
    TextBlock,
    TextDelta,
    Thinking,
    ToolBegins,
    ToolCall,
    ToolDecision,
    ToolFinished,
    ToolRecorded,
    ToolStarted,
    TurnHost,
    TurnInput,
    TurnRequest,
    Usage,
)
from dragoman.testing.runtime_suite import Line
from peers.memory_model import Chunk, Model, ModelError, ToolError

SPACE = "memory"
UNKNOWN = "nobody knows whether it was done"


@attrs.frozen
class ModelConfig:
    """``patience`` is how long the model may say nothing, seconds."""

    key: Secret
    patience: float = 60.0


@attrs.define(eq=False)
class Feed:
    """Run events of one writer for one reader; what nobody has read of a block is one delta."""

    waiting: list[RunEvent] = attrs.field(factory=list)
    closed: bool = False
    _wake: anyio.Event = attrs.field(factory=anyio.Event)

    def put(self, event: RunEvent) -> None:
        last = self.waiting[-1] if self.waiting else None
        both = isinstance(event, TextDelta) and isinstance(last, TextDelta)
        if both and event.block == last.block:
            event = TextDelta(event.block, last.text + event.text)
            self.waiting.pop()
        self.waiting.append(event)
        self._wake.set()

    def close(self) -> None:
        self.closed = True
        self._wake.set()

    def __aiter__(self) -> Feed:
        return self

    async def __anext__(self) -> RunEvent:
        while not self.waiting:
            if self.closed:
                raise StopAsyncIteration
            self._wake = anyio.Event()
            await self._wake.wait()
        return self.waiting.pop(0)


class StateLostError(Exception):
    """What a pause had saved cannot be read."""


@attrs.define
class Call:
    """What the model wants to have done; ``decided`` says that it may run."""

    id: str
    what: str
    decided: bool
    result: str | None = None


@attrs.define(eq=False)
class MemoryRun:
    """One turn."""

    runtime: MemoryRuntime
    request: TurnRequest
    host: TurnHost
    feed: Feed = attrs.field(factory=Feed)
    usage: Usage = attrs.field(factory=Usage)
    model: str = attrs.field(init=False)
    rounds: int = 0
    shown: str = ""
    """What was shown and is not in the records."""

    def __attrs_post_init__(self) -> None:
        self.model = self.request.model

    @property
    def said(self) -> str:
        return self.request.inputs[-1].text

    def put(self, event: RunEvent) -> None:
        self.feed.put(event)

    async def run(self) -> None:
        """Run to the end, and say how it ended."""
        end: RunEnd = Cancelled()
        try:
            end = await self.work()
        except (StaleLease, ModelError, StateLostError, TimeoutError) as error:
            end = self.failure(error)
        finally:
            with anyio.CancelScope(shield=True):
                await self.keep_shown()
        self.put(self.usage)
        self.close(end)

    def close(self, end: RunEnd) -> None:
        self.put(end)
        self.feed.close()

    def failure(self, error: Exception) -> Failed:
        if isinstance(error, StaleLease):
            return Failed(FailureKind.LOCK_CONFLICT, "the lease is lost")
        if isinstance(error, ModelError):
            return Failed(error.kind, type(error).__name__)
        if isinstance(error, StateLostError):
            return Failed(FailureKind.STATE_LOST, "not what this runtime saves")
        return Failed(FailureKind.TIMEOUT)

    async def work(self) -> RunEnd:
        """Ask the model until it wants nothing more done, or something that people decide on."""
        lines, calls = await self.begin()
        while calls or (calls := await self.answer(lines)):
            for call in calls:
                call.decided = call.decided or await self.host.granted("act")
            await self.do([call for call in calls if call.decided and call.result is None])
            if any(call.result is None for call in calls):
                return self.pause(lines, calls)
            results = [Line("tool", call.result or "") for call in calls]
            await self.keep(*results)
            lines += [*results, *await self.steer()]
            calls = []
        return Finished()

    async def begin(self) -> tuple[list[Line], list[Call]]:
        """Return what was said so far, and the calls of a round that a pause has cut."""
        if self.request.saved is None:
            return await self.history(), []
        try:
            saved = json.loads(self.request.saved)
            calls = [Call(*one) for one in saved["calls"]]
            lines = [Line(*one) for one in saved["lines"]]
            self.rounds, self.model = saved["rounds"], saved["model"]
        except (ValueError, KeyError, TypeError):
            raise StateLostError from None
        made = {one.call_id: one for one in self.request.decisions}
        for call in calls:
            if call.result is None:
                call.decided = True
                if made[call.id].verdict is not ApprovalState.APPROVED:
                    call.result = f"It was {made[call.id].verdict.value}."
        return lines, calls

    def pause(self, lines: list[Line], calls: list[Call]) -> Paused:
        """Ask about the calls that nobody has decided on."""
        for call in calls:
            if call.result is None:
                self.put(ApprovalRequested(call.id, "act", json.dumps({"what": call.what})))
        saved = {
            "rounds": self.rounds,
            "model": self.model,
            "lines": [attrs.astuple(line) for line in lines],
            "calls": [attrs.astuple(call) for call in calls],
        }
        return Paused(json.dumps(saved))

    async def history(self) -> list[Line]:
        return [Line(**json.loads(item)) for item in await self.host.records(SPACE).read()]

    async def keep(self, *lines: Line) -> None:
        with anyio.CancelScope(shield=True):
            items = [json.dumps(attrs.asdict(line)) for line in lines]
            await self.host.records(SPACE).append(items)

    async def keep_shown(self) -> None:
        """Remember what people saw of an answer that was cut off."""
        if self.shown:
            with suppress(StaleLease):
                await self.keep(Line("assistant", f"{self.shown}\n[interrupted]"))

    async def answer(self, lines: list[Line]) -> list[Call]:
        """Ask once; return what the model wants to have done."""
        self.rounds += 1
        self.count(requests=1)
        calls: list[Call] = []
        async with aclosing(self.runtime.model.answer(lines, self.model)) as chunks:
            while (chunk := await self.next(chunks)) is not None:
                self.take(chunk, calls)
        if text := self.shown:
            self.put(TextBlock(self.block, text))
            await self.keep(Line("assistant", text))
            self.shown = ""
            lines.append(Line("assistant", text))
        return calls

    @property
    def block(self) -> str:
        return f"{self.rounds}"

    async def next(self, chunks: Any) -> Chunk | None:
        with anyio.fail_after(self.runtime.config.patience):
            return await anext(chunks, None)

    def take(self, chunk: Chunk, calls: list[Call]) -> None:
        if chunk.kind == "text":
            self.shown += chunk.text
            self.put(TextDelta(self.block, chunk.text))
        elif chunk.kind == "thought":
            self.put(Thinking(chunk.text))
        elif chunk.kind == "call":
            free = not self.runtime.model.asks(chunk.text)
            calls.append(Call(f"{self.rounds}.{len(calls)}", chunk.text, free))
        else:
            self.count(0, *chunk.tokens)

    def count(self, requests: int = 0, given: int = 0, said: int = 0) -> None:
        old = self.usage
        self.usage = Usage(
            old.requests + requests, old.input_tokens + given, old.output_tokens + said
        )

    async def do(self, calls: list[Call]) -> None:
        """Do all of it at once."""

        async def one(call: Call) -> None:
            try:
                call.result = await self.call(call.id, call.what)
            except StaleLease as error:
                stale.append(error)

        stale: list[StaleLease] = []
        async with anyio.create_task_group() as tasks:
            for call in calls:
                tasks.start_soon(one, call)
        if stale:
            raise stale[0]

    async def call(self, call_id: str, what: str) -> str:
        """Do one thing, if the journal lets it begin."""
        self.put(ToolStarted(call_id, "act"))
        call = ToolCall(call_id, "act", json.dumps({"what": what}))
        failed = False
        match await self.decided(await self.host.tool_begins(call), what):
            case ToolBegins() as begun:
                try:
                    result = await self.act(what)
                except ToolError:
                    result, failed = "It failed.", True
                else:
                    await self.tell(begun, result)
            case ToolRecorded(recorded):
                result = recorded
            case _:
                result = UNKNOWN
        self.put(ToolFinished(call_id, "act", failed))
        return result

    async def decided(self, decision: ToolDecision, what: str) -> ToolDecision:
        """Return what the journal says is to be done."""
        return decision

    async def act(self, what: str) -> str:
        return await self.runtime.model.act(what)

    async def tell(self, begun: ToolBegins, result: str) -> None:
        await self.host.tool_ended(begun, result)

    async def steer(self) -> list[Line]:
        """Take in what people said meanwhile."""
        offered = await self.host.offered()
        if offered:
            self.put(InputConsumed(tuple(message.event_id for message in offered)))
        return [Line("user", words(message)) for message in offered]


@attrs.define(eq=False, slots=False)
class MemoryRuntime:
    """A runtime over the model in memory."""

    model: Model
    host: Host
    config: ModelConfig
    make: Callable[..., MemoryRun] = MemoryRun
    capabilities = RuntimeCapabilities(
        stream=True,
        resume=True,
        approve=True,
        steer=True,
        journal=True,
        models=True,
        history=(SPACE,),
    )

    def encode_input(self, message: TurnInput) -> EncodedInput | None:
        return EncodedInput(SPACE, json.dumps({"role": "user", "text": words(message)}))

    @asynccontextmanager
    async def turn(
        self, request: TurnRequest, host: TurnHost
    ) -> AsyncIterator[AsyncIterator[RunEvent]]:
        """Run a turn in a task of its own."""
        run, failure = self.make(self, request, host), None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run.run)
            try:
                yield run.feed
            except Exception as error:
                failure = error
            tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure


def words(message: TurnInput) -> str:
    """Return a message as the model is given it, without halves of characters."""
    text = message.words.encode("utf-16-le", "surrogatepass")
    return text.decode("utf-16-le", "replace")
