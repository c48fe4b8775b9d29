"""A runtime opened as core does it, and turns of it as core runs them."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest

from dragoman.errors import RuntimeFailed
from dragoman.inputs import TurnInput
from dragoman.messages import Address, Sender
from dragoman.protocols import Decision, Runtime, TurnRequest
from dragoman.runevents import Failed, InputConsumed, Paused, RunEnd, RunEvent
from dragoman.testing.clock import settle
from dragoman.testing.leftovers import alone, backend, children, logged, task_ids
from dragoman.testing.runtime_grammar import Grammar
from dragoman.testing.runtime_harness import RuntimeHarness
from dragoman.testing.runtime_script import Line, Step
from dragoman.testing.runtime_turnhost import SuiteSession, SuiteTurnHost
from dragoman.testing.suite_host import SuiteHost

LIMIT = 10.0
"""Real seconds within which what a test waits for has to happen."""


@attrs.define(eq=False)
class Talk:
    """A turn that runs: iterating reads its events, as core does, and checks their grammar."""

    runtime: Runtime
    request: TurnRequest
    host: SuiteTurnHost
    source: AsyncIterator[RunEvent]
    events: list[RunEvent] = attrs.field(factory=list)
    grammar: Grammar = attrs.field(factory=Grammar)
    raised: bool = False
    """Whether the end was raised: another way to say that a run failed, which core takes as well."""

    @property
    def end(self) -> RunEnd:
        """How the turn ended."""
        assert self.grammar.end is not None, "the turn has not ended"
        return self.grammar.end

    @property
    def texts(self) -> list[str]:
        """What people are shown of it, by block."""
        return list(self.grammar.texts.values())

    def of(self, *kinds: type[Any]) -> list[Any]:
        """Return the events of some kinds, in order."""
        return [event for event in self.events if isinstance(event, kinds)]

    def __aiter__(self) -> Talk:
        return self

    async def __anext__(self) -> RunEvent:
        if self.raised:
            raise StopAsyncIteration
        event: RunEvent
        try:
            event = await self.source.__anext__()
        except StopAsyncIteration:
            self.grammar.close()
            raise
        except RuntimeFailed as failed:
            self.raised = True
            event = Failed(failed.kind, failed.detail)
        self.grammar.feed(event)
        self.events.append(event)
        if isinstance(event, InputConsumed):
            self._absorb(event.event_ids)
        if isinstance(event, Failed):
            assert not event.detail or event.detail.isprintable(), "a detail is one line"
        return event

    async def read(self) -> Talk:
        """Read to the end."""
        async for _ in self:
            pass
        return self

    async def until(self, *kinds: type[Any]) -> None:
        """Read to the first event of some kinds."""
        async for event in self:
            if isinstance(event, kinds):
                return
        names = [kind.__name__ for kind in kinds]
        pytest.fail(f"no event of {names} came; the turn ended with {self.end!r}")

    def _absorb(self, event_ids: Sequence[int]) -> None:
        """Take waiting messages into the turn, with their items."""
        session = self.host.session
        waiting = {one.event_id: one for one in session.waiting}
        unknown = [one for one in event_ids if one not in waiting]
        assert not unknown, f"messages are taken in that were not offered: {unknown}"
        for event_id in event_ids:
            store(self.runtime, session, waiting[event_id])
            session.waiting.remove(waiting[event_id])


@attrs.define(eq=False)
class Stage:
    """A harness, and a runtime that may be opened on it again and again."""

    harness: RuntimeHarness
    host: SuiteHost
    steady: int = 0
    """How many tasks there are between turns, once a first one has been."""
    _numbers: Iterator[int] = attrs.field(factory=lambda: itertools.count(1))

    def can(self, *abilities: str) -> bool:
        """Whether the harness has all of these."""
        return not set(abilities) & set(self.harness.cannot)

    def need(self, *abilities: str) -> None:
        """Skip the test where the harness cannot do something, with the author's reason."""
        for ability in abilities:
            if ability in self.harness.cannot:
                pytest.skip(f"the harness cannot {ability!r}: {self.harness.cannot[ability]}")

    def script(self, said: str, *steps: Step) -> None:
        """Tell the backend what to do, where it can be told."""
        if self.can("script"):
            self.harness.script(said, *steps)

    @asynccontextmanager
    async def opened(self, **config: bool) -> AsyncIterator[Runtime]:
        """Open the runtime as core does; leaving closes it."""
        made = self.harness.config(**config)
        async with self.harness.component.open(made, self.host) as runtime:
            async with anyio.create_task_group() as tasks:
                self.host.attach(tasks)
                yield runtime
                self.host.attach(None)
                tasks.cancel_scope.cancel()
            for secret in self.harness.secrets:
                assert secret not in repr(runtime), "a secret is in the runtime's repr"

    def session(self) -> SuiteSession:
        """Return a new session."""
        return SuiteSession(f"session_{next(self._numbers)}")

    def message(self, text: str, **more: Any) -> TurnInput:
        """Return what somebody said."""
        now = self.host.clock.now()
        return TurnInput(next(self._numbers), text, Sender("7", "Ada"), now, **more)

    def way_back(self, session: SuiteSession | None = None, **more: Any) -> SuiteTurnHost:
        """Return the host of a new turn."""
        effects = self.harness.effects if self.can("act") else None
        turn_id = f"turn_{next(self._numbers)}"
        return SuiteTurnHost(session or self.session(), turn_id, effects, **more)

    @asynccontextmanager
    async def turn(
        self,
        runtime: Runtime,
        *said: str | TurnInput,
        host: SuiteTurnHost | None = None,
        session: SuiteSession | None = None,
        attempt: int = 1,
        model: str = "",
    ) -> AsyncIterator[Talk]:
        """Begin a turn as core does, with its messages in the records; leaving leaves it."""
        host = host or self.way_back(session)
        inputs = tuple(self.message(one) if isinstance(one, str) else one for one in said)
        for message in inputs:
            store(runtime, host.session, message)
        request = TurnRequest(
            turn_id=host.turn_id,
            session_id=host.session.id,
            conversation_id=f"conversation of {host.session.id}",
            profile="default",
            address=Address("suite", host.session.id),
            inputs=inputs,
            attempt=attempt,
            model=model,
        )
        async with self._run(runtime, request, host, Grammar()) as talk:
            yield talk

    @asynccontextmanager
    async def resumed(
        self,
        runtime: Runtime,
        paused: Talk,
        *decisions: Decision,
        host: SuiteTurnHost | None = None,
    ) -> AsyncIterator[Talk]:
        """Let a turn go on that has paused, with all decisions that were made in it."""
        assert isinstance(paused.end, Paused), f"the turn has not paused: {paused.end!r}"
        again = SuiteTurnHost(paused.host.session, paused.host.turn_id, paused.host.effects)
        request = attrs.evolve(
            paused.request, saved=paused.end.state, decisions=decisions, model=""
        )
        asked = {one.call_id: one.tool for one in paused.grammar.asked}
        grammar = Grammar(waited={**paused.grammar.running, **asked})
        async with self._run(runtime, request, host or again, grammar) as talk:
            yield talk

    @asynccontextmanager
    async def _run(
        self, runtime: Runtime, request: TurnRequest, host: SuiteTurnHost, grammar: Grammar
    ) -> AsyncIterator[Talk]:
        try:
            with anyio.move_on_after(LIMIT) as scope:
                async with runtime.turn(request, host) as events:
                    try:
                        yield Talk(runtime, request, host, events, grammar=grammar)
                    finally:
                        if isinstance(events, AsyncGenerator):
                            await events.aclose()
        finally:
            host.closed = True
        if scope.cancelled_caught:
            pytest.fail(f"the turn did not end within {LIMIT:g} s")
        await self.settled(host)

    async def say(self, runtime: Runtime, *said: str | TurnInput, **more: Any) -> Talk:
        """Run a whole turn."""
        async with self.turn(runtime, *said, **more) as talk:
            return await talk.read()

    async def go_on(self, runtime: Runtime, paused: Talk, *decisions: Decision) -> Talk:
        """Let a paused turn go on to its end, or its next pause."""
        async with self.resumed(runtime, paused, *decisions) as talk:
            return await talk.read()

    async def settled(self, host: SuiteTurnHost) -> None:
        """See that a turn which was left does nothing more, and did nothing wrong before."""
        host.closed = True
        await settle(3)
        assert not host.wrong, "; ".join(host.wrong)

    async def asked(self, said: str) -> list[list[Line]]:
        """Return what the backend was given each time that a message with ``said`` was the newest."""
        return [list(lines) for lines in await self.harness.asked() if said in _newest(lines)]

    async def until_effect(self, what: str) -> None:
        """Wait until the tool has done something."""
        with anyio.move_on_after(LIMIT):
            while what not in await self.harness.effects():
                await self.host.clock.sleep(0.001)
            return
        pytest.fail(f"the tool did not do {what!r} within {LIMIT:g} s")

    async def until_busy(self, count: int) -> None:
        """Wait until the backend is at work on so many things."""
        with anyio.move_on_after(LIMIT):
            while await self.harness.busy() != count:
                await self.host.clock.sleep(0.001)
            return
        busy = await self.harness.busy()
        pytest.fail(f"the backend is at work on {busy} things, and not on {count}")


def store(runtime: Runtime, session: SuiteSession, message: TurnInput) -> None:
    """Put a message into the records, as core does in the transaction that begins a turn."""
    encoded = runtime.encode_input(message)
    if encoded is not None:
        encoded.item.encode()  # as a store has to
        session.items(encoded.namespace).append(encoded.item)


def of_role(lines: Sequence[Line], role: str) -> list[str]:
    """Return the texts of one role, in order."""
    return [line.text for line in lines if line.role == role]


def _newest(lines: Sequence[Line]) -> str:
    return next(reversed(of_role(lines, "user")), "")


@asynccontextmanager
async def staged(harness: RuntimeHarness) -> AsyncIterator[Stage]:
    """Give a stage; in the end no task and no child is left, and no secret was logged."""
    if backend() not in harness.component.backends:
        pytest.skip(f"runs on {' and '.join(harness.component.backends)} only")
    with tempfile.TemporaryDirectory() as folder, logged() as lines:
        tasks, processes = task_ids(), children()
        try:
            yield Stage(harness, SuiteHost("suite", Path(folder), "runtimes"))
        except BaseExceptionGroup as group:  # of the task groups between a test and here
            raise alone(group) from None
        await settle(3)
        left = [task for task in anyio.get_running_tasks() if task.id not in tasks]
        assert not left, f"tasks are left behind: {left}"
        assert children() <= processes, "a child process is left behind"
    for secret in harness.secrets:
        assert not any(secret in line for line in lines), "a secret is in a log record"
