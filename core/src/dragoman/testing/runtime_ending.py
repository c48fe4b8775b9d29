"""How a runtime begins and ends, as tests: a part of `dragoman.testing.runtime_suite`."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, ClassVar
from unittest import mock

import anyio
import anyio.lowlevel
import attrs
import pytest

from dragoman.errors import StaleLease
from dragoman.protocols import Runtime, RuntimeCapabilities
from dragoman.runevents import Finished, TextDelta
from dragoman.testing.cancelling import cancelled_at
from dragoman.testing.leftovers import task_ids
from dragoman.testing.runtime_harness import RuntimeHarness
from dragoman.testing.runtime_script import Act, Hold, Say
from dragoman.testing.runtime_stage import Stage, of_role, staged
from dragoman.testing.runtime_turnhost import WRITES, SuiteSession, SuiteTurnHost

_OPENING: float = 5.0
"""Seconds that a component may take to open."""


@pytest.mark.anyio
class EndingSuite:
    """Invariant 9: a turn that is left is over, wherever it was, and leaves nothing behind."""

    cancelled_at: ClassVar[int] = 25
    """At how many awaits, calls and rounds of the event loop a turn is cancelled."""
    moments: ClassVar[int] = 8
    """At how many moments of its time a turn is cancelled."""
    pieces: ClassVar[int] = 400
    """Of how many pieces an answer is that nobody reads."""
    under_way: ClassVar[int] = 0
    """How often a backend may be asked once the lease is lost: one that works on its own while a
    runtime writes down what it did may have begun to be."""

    async def test_opening_touches_no_network(self, harness: RuntimeHarness) -> None:
        """And ends in time: a backend that is down is no reason not to start."""
        async with staged(harness) as stage:
            with _no_connections() as tried, anyio.fail_after(_OPENING):
                async with stage.opened() as runtime:
                    assert isinstance(runtime.capabilities, RuntimeCapabilities)
            assert not tried, f"opening connects to {tried}"
            if stage.can("asked"):
                assert await harness.asked() == []

    async def test_a_turn_that_is_left_at_once_is_over(self, harness: RuntimeHarness) -> None:
        """Before anything was read."""
        async with staged(harness) as stage, _steady(stage) as runtime:
            async with stage.turn(runtime, "never mind"):
                pass
            await _quiet(stage)

    @pytest.mark.parametrize("way", ["left", "cancelled"])
    async def test_a_backend_at_work_is_ended(self, harness: RuntimeHarness, way: str) -> None:
        """By leaving, and by a time limit around the turn, also where nothing more would come."""
        async with staged(harness) as stage:
            stage.need("script", "hold", "busy")
            stage.script("endless", Say(("It begins",)), Hold())
            async with _steady(stage) as runtime:
                with anyio.CancelScope() as scope:
                    async with stage.turn(runtime, "endless") as talk:
                        await stage.until_busy(1)
                        if way == "cancelled":
                            scope.cancel()
                            await talk.read()
                assert scope.cancelled_caught is (way == "cancelled")
                await _quiet(stage)

    async def test_a_tool_at_work_is_ended(self, harness: RuntimeHarness) -> None:
        """What it had begun stays begun in the journal, and nothing begins after it."""
        async with staged(harness) as stage:
            stage.need("script", "act", "tool hold", "busy")
            stage.script("dig", Act("digging", holds=True), Say(("Done.",)))
            async with _steady(stage) as runtime:
                async with stage.turn(runtime, "dig") as talk:
                    await stage.until_effect("digging")
                await _quiet(stage)
                await harness.release()
                await stage.settled(talk.host)
            assert await harness.effects() == ["digging"]
            assert set(talk.host.session.journal.values()) <= {None}

    async def test_it_may_be_cancelled_at_every_await_of_its_reader(
        self, harness: RuntimeHarness
    ) -> None:
        """The session goes on, and each message is in it once."""
        async with staged(harness) as stage, _cut(stage) as cut:
            for number in range(1, self.cancelled_at + 1):
                host = stage.way_back(cut.session)
                going_on = await cancelled_at(cut.turn(number, host), number)
                await _quiet(stage, host)
                if not going_on:
                    break

    async def test_it_may_be_cancelled_at_every_call_of_its_host(
        self, harness: RuntimeHarness
    ) -> None:
        """Reading and writing records, and asking the journal."""
        async with staged(harness) as stage, _cut(stage) as cut:
            for number in range(1, self.cancelled_at + 1):
                with anyio.CancelScope() as scope:
                    host = stage.way_back(cut.session, before=_cancelling(scope, number))
                    await cut.turn(number, host)
                await _quiet(stage, host)
                if not scope.cancelled_caught:
                    break

    async def test_it_may_be_cancelled_at_any_moment(self, harness: RuntimeHarness) -> None:
        """After so many rounds of the event loop, and after so much of the time that it takes."""
        async with staged(harness) as stage, _cut(stage) as cut:
            for number in range(1, self.cancelled_at + 1):
                host = stage.way_back(cut.session)
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(cut.turn, number, host)
                    for _ in range(2 * number):
                        await anyio.lowlevel.checkpoint()
                    tasks.cancel_scope.cancel()
                await _quiet(stage, host)
            begin = anyio.current_time()
            await cut.turn(100, stage.way_back(cut.session))
            whole = anyio.current_time() - begin
            for number in range(1, self.moments + 1):
                host = stage.way_back(cut.session)
                with anyio.move_on_after(whole * number / self.moments):
                    await cut.turn(100 + number, host)
                await _quiet(stage, host)

    async def test_an_error_of_the_reader_comes_out_as_it_is(self, harness: RuntimeHarness) -> None:
        """Also one that says that the lease is lost."""
        async with staged(harness) as stage, _steady(stage) as runtime:
            with pytest.raises(StaleLease):
                async with stage.turn(runtime, "hello"):
                    raise StaleLease("turn_1", 1)
            await _quiet(stage)

    async def test_a_turn_without_a_lease_ends(self, harness: RuntimeHarness) -> None:
        """Invariant 2: from whichever write on it is refused, it asks and does nothing more."""
        async with staged(harness) as stage, _steady(stage) as runtime:
            for number in range(1, self.cancelled_at + 1):
                lost = _Loss(stage, number)
                _tell_a_story(stage, number)
                end = await lost.turn(runtime, _said(number))
                if not lost.host.refused:
                    break
                assert end != Finished(), "a turn whose writes were refused has finished"
                asked, effects = await lost.seen()
                assert effects == lost.at[1], "it acted when its lease was lost"
                assert asked - lost.at[0] <= self.under_way, "it went on when its lease was lost"
                await _quiet(stage, lost.host)

    async def test_nobody_has_to_read_for_a_run_to_go_on(self, harness: RuntimeHarness) -> None:
        """Invariants 10 and 11: a slow reader holds up no backend, and little is kept for it."""
        async with staged(harness) as stage:
            stage.need("script", "act")
            pieces = tuple(f"word{number} " for number in range(self.pieces))
            stage.script("at length", Say(pieces), Act("arriving"), Say(("The end.",)))
            async with stage.opened() as runtime, stage.turn(runtime, "at length") as talk:
                await stage.until_effect("arriving")
                await talk.read()
            assert talk.texts == ["".join(pieces), "The end."]
            kept = len(talk.of(TextDelta))
            assert kept <= self.pieces / 10, f"{kept} deltas were kept for a reader that was away"


def _said(number: int) -> str:
    return f"cut number {number:03}"


def _tell_a_story(stage: Stage, number: int) -> None:
    acts = [Act(f"acting {number:03}")] if stage.can("act") else []
    stage.script(_said(number), Say(("Once ", "upon ")), *acts, Say(("a ", "time.")))


def _cancelling(scope: anyio.CancelScope, last: int) -> Callable[[str], Awaitable[None]]:
    """Return what cancels at the ``last`` call of a host."""
    calls: list[str] = []

    async def before(name: str) -> None:
        calls.append(name)
        if len(calls) == last:
            scope.cancel()

    return before


@attrs.define(eq=False)
class _Cut:
    """Turns of one session that are cut off."""

    stage: Stage
    runtime: Runtime
    session: SuiteSession
    begun: list[str] = attrs.field(factory=list)

    async def turn(self, number: int, host: SuiteTurnHost) -> None:
        """Run a turn to its end, if nobody cuts it off."""
        _tell_a_story(self.stage, number)
        self.begun.append(_said(number))
        await self.stage.say(self.runtime, _said(number), host=host)


@asynccontextmanager
async def _cut(stage: Stage) -> AsyncIterator[_Cut]:
    """Let turns of a session be cut off; see then that it goes on and has each message once."""
    async with _steady(stage) as runtime:
        cut = _Cut(stage, runtime, stage.session())
        yield cut
        talk = await stage.say(runtime, "after all", session=cut.session)
        assert talk.end == Finished()
        if stage.can("asked", "history"):
            [lines] = await stage.asked("after all")
            assert of_role(lines, "user") == [*cut.begun, "after all"], (
                "messages are lost or doubled"
            )


@asynccontextmanager
async def _steady(stage: Stage) -> AsyncIterator[Runtime]:
    """Open a runtime, and let it make in a first turn what it keeps."""
    async with stage.opened() as runtime:
        await stage.say(runtime, "warm up")
        stage.steady = len(task_ids())
        yield runtime


async def _quiet(stage: Stage, host: SuiteTurnHost | None = None) -> None:
    """See that nothing is at work any more, and that no more tasks are there than before."""
    await stage.settled(host or stage.way_back())
    tasks = len(task_ids()) - stage.steady
    assert tasks <= 0, f"{tasks} tasks outlive the turn"
    if stage.can("busy"):
        await stage.until_busy(0)


@attrs.define(eq=False)
class _Loss:
    """A turn that loses its lease before its ``number``-th write."""

    stage: Stage
    number: int
    host: SuiteTurnHost = attrs.field(init=False)
    writes: int = 0
    at: tuple[int, int] = (0, 0)
    """What had been seen of the backend then."""

    def __attrs_post_init__(self) -> None:
        self.host = self.stage.way_back(before=self.before)

    async def before(self, name: str) -> None:
        """Count writes, and take the lease away."""
        self.writes += name in WRITES
        if self.writes == self.number and not self.host.lost:
            self.at = await self.seen()
            self.host.lost = True

    async def seen(self) -> tuple[int, int]:
        """Return how often the backend was asked, and what its tools did so far."""
        harness = self.stage.harness
        asked = len(await harness.asked()) if self.stage.can("asked") else 0
        return asked, len(await harness.effects()) if self.stage.can("act") else 0

    async def turn(self, runtime: Runtime, said: str) -> Any:
        """Run the turn; return its end, or the error that it ended with."""
        try:
            return (await self.stage.say(runtime, said, host=self.host)).end
        except StaleLease as error:
            return error


@contextmanager
def _no_connections() -> Iterator[list[str]]:
    """Let no socket connect over a network; collect who tries."""
    tried: list[str] = []

    def refusing(method: str) -> Any:
        def connect(one: socket.socket, address: Any) -> Any:
            if one.family in (socket.AF_INET, socket.AF_INET6):
                tried.append(str(address))
                raise ConnectionRefusedError(f"no network while a component opens: {address}")
            return getattr(super(socket.socket, one), method)(address)

        return mock.patch.object(socket.socket, method, connect, create=True)

    with refusing("connect"), refusing("connect_ex"):
        yield tried
