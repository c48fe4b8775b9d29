"""The public names as a plugin author uses them; checked by mypy in strict mode, never run.

Each ``type: ignore`` names an error that an author has to see: strict mode reports one that is not
needed, so the check fails when a mistake would pass.
"""

import argparse
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime

import attrs

from dragoman import (
    Address,
    Capabilities,
    CliCommand,
    Component,
    ConversationView,
    Deliver,
    Drop,
    EncodedInput,
    Failed,
    FailureKind,
    Finished,
    Host,
    Inbound,
    MemoryStore,
    Note,
    NotSent,
    Observation,
    Outbound,
    Place,
    Platform,
    PlatformStatus,
    RateLimited,
    Receipt,
    RunEvent,
    Runtime,
    RuntimeCapabilities,
    RuntimeFailed,
    Secret,
    Sender,
    Sink,
    TextBlock,
    TextDelta,
    Transport,
    TurnEnded,
    TurnHost,
    TurnInfo,
    TurnInput,
    TurnRequest,
    TurnSink,
    Unknown,
    Verdict,
    hookimpl,
)
from dragoman.testing import ScriptedRuntime, StubPlatform, VirtualClock


@attrs.frozen
class Config:
    token: Secret = attrs.field(metadata={"help": "the token"})
    greeting: str = attrs.field(default="Hello", metadata={"help": "the first word"})


@attrs.define(eq=False)
class Letters:
    host: Host
    capabilities: Capabilities = Capabilities(max_text=1000, transport=Transport.AWAITED_CURSOR)

    async def run(self, deliver: Deliver) -> None:
        await self.host.bind_account("account-1")
        seen = await self.host.records.get("cursor") or "0"
        await deliver(
            Inbound(
                native_id=seen,
                address=Address(self.host.id, "inbox", place=Place.DM),
                sender=Sender("7", name="Ada"),
                text="hello",
                sent_at=self.host.clock.now(),
            )
        )
        await self.host.records.put("cursor", str(int(seen) + 1))

    async def send(self, address: Address, message: Outbound) -> Receipt:
        if not message.text:
            raise NotSent("there is nothing to say")
        if address.thread:
            raise RateLimited(2.0)
        return Receipt(message.delivery_id, message.text)

    async def edit(self, address: Address, native_id: str, message: Outbound) -> Receipt:
        raise Unknown("the line was cut")

    async def typing(self, address: Address) -> None:
        self.host.log.debug("typing in %s", address.channel)


@attrs.frozen
class Clerk:
    capabilities: RuntimeCapabilities = RuntimeCapabilities(stream=True)

    def encode_input(self, message: TurnInput) -> EncodedInput | None:
        return EncodedInput("clerk", message.text)

    @asynccontextmanager
    async def turn(
        self, request: TurnRequest, host: TurnHost
    ) -> AsyncIterator[AsyncIterator[RunEvent]]:
        yield self._events(request, host)

    async def _events(self, request: TurnRequest, host: TurnHost) -> AsyncIterator[RunEvent]:
        history: Sequence[str] = await host.records("clerk").read(10)
        if host.memory is not None:
            note = await host.memory.add(request.inputs[0].text)
            await host.memory.forget(note.id)
        if not history:
            yield Failed(FailureKind.INTERNAL, "no history")
            return
        yield TextDelta("1", "Good ")
        yield TextBlock("1", "Good day")
        await host.records("clerk").append(["Good day"])
        if len(history) > 100:
            raise RuntimeFailed(FailureKind.CONTEXT_OVERFLOW, "too long")
        yield Finished()


@attrs.frozen
class Shelf:
    async def add(self, scope: str, text: str) -> Note:
        return Note("1", text, datetime.now().astimezone())

    async def search(self, scope: str, query: str, limit: int) -> Sequence[Note]:
        return []

    async def list(self, scope: str) -> Sequence[Note]:
        return []

    async def delete(self, scope: str, note_id: str) -> bool:
        return False


@attrs.frozen
class Counter:
    async def write(self, events: Sequence[RunEvent]) -> None:
        for event in events:
            match event:
                case TextDelta(block, text):
                    print(block, text)
                case Failed(kind):
                    print(kind.value)
                case _:
                    pass


@attrs.frozen
class Book:
    def turn(self, turn: TurnInfo) -> AbstractAsyncContextManager[TurnSink]:
        return self._open(turn)

    @asynccontextmanager
    async def _open(self, turn: TurnInfo) -> AsyncIterator[TurnSink]:
        yield Counter()


@attrs.frozen
class Gate:
    @hookimpl
    async def dragoman_admit(self, event: Inbound, view: ConversationView) -> Verdict | None:
        return Verdict.refuse("banned") if event.sender.bot else None

    @hookimpl
    async def dragoman_profile(self, event: Inbound, view: ConversationView) -> str | None:
        return view.profiles[0] if view.profiles else None

    @hookimpl
    async def dragoman_inbound(
        self, event: Inbound, view: ConversationView
    ) -> Inbound | Drop | None:
        return attrs.evolve(event, text=event.text.strip()) if event.text else Drop("empty")

    @hookimpl
    async def dragoman_outbound(self, text: str, turn: TurnInfo) -> str | Drop | None:
        return text.replace("secret", "…")

    @hookimpl
    async def dragoman_started(self) -> None:
        return

    @hookimpl
    async def dragoman_stopping(self) -> None:
        return

    @hookimpl
    def dragoman_observe(self, observation: Observation) -> None:
        if isinstance(observation, TurnEnded):
            print(observation.end)
        elif isinstance(observation, PlatformStatus):
            print(observation.status)


@asynccontextmanager
async def open_letters(config: Config, host: Host) -> AsyncIterator[Platform]:
    assert config.token.reveal()
    yield Letters(host)


@asynccontextmanager
async def open_clerk(config: Config, host: Host) -> AsyncIterator[Runtime]:
    yield Clerk()


@asynccontextmanager
async def open_shelf(config: Config, host: Host) -> AsyncIterator[MemoryStore]:
    yield Shelf()


@asynccontextmanager
async def open_book(config: Config, host: Host) -> AsyncIterator[Sink]:
    yield Book()


@asynccontextmanager
async def open_gate(config: Config, host: Host) -> AsyncIterator[object]:
    yield Gate()


@hookimpl
def dragoman_platforms() -> Iterable[Component[Config, Platform]]:
    yield Component("letters", Config, open_letters)


@hookimpl
def dragoman_runtimes() -> Iterable[Component[Config, Runtime]]:
    yield Component("clerk", Config, open_clerk, backends=("asyncio",))


@hookimpl
def dragoman_memories() -> Iterable[Component[Config, MemoryStore]]:
    yield Component("shelf", Config, open_shelf)


@hookimpl
def dragoman_sinks() -> Iterable[Component[Config, Sink]]:
    yield Component("book", Config, open_book)


@hookimpl
def dragoman_extensions() -> Iterable[Component[Config, object]]:
    yield Component("gate", Config, open_gate)


@hookimpl
def dragoman_cli() -> Iterable[CliCommand]:
    yield CliCommand("letters", "read letters", _configure, lambda args: 0)


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true")


async def a_test_of_ones_own(clock: VirtualClock) -> None:
    platform: Platform = StubPlatform()
    runtime: Runtime = ScriptedRuntime()
    print(platform.capabilities, runtime.capabilities, clock.now())


def mistakes(event: Inbound, receipt: Receipt) -> None:
    event.text = "changed"  # type: ignore[misc]
    Address("letters")  # type: ignore[call-arg]
    Outbound("1", 2)  # type: ignore[arg-type]
    Receipt(native_id=None)  # type: ignore[arg-type]
    Capabilities(max_text=100)  # type: ignore[call-arg]
    Component("book", Config, open_gate).open(Config, None)  # type: ignore[arg-type]
    platform: Platform = Shelf()  # type: ignore[assignment]
    print(platform, receipt)
