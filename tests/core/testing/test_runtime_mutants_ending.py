"""Every rule about begins and ends bites: a runtime that breaks it fails there alone."""

import socket
import subprocess
import sys
from contextlib import asynccontextmanager, suppress

import anyio
import pytest

from dragoman import Finished, StaleLease, TextBlock, TextDelta
from dragoman.testing.runtime_machine import run_machine
from dragoman.testing.runtime_suite import Line
from peers.memory_model_harness import MemoryModelHarness
from peers.memory_runtime import SPACE, MemoryRun, MemoryRuntime, words
from runtime_mutants import AT_WORK, CUTS, failures_of, maker
from suite_mutants import Mutants, names_of

pytestmark = pytest.mark.anyio
MUTANTS = Mutants()
LEFT = "test_a_turn_that_is_left_at_once_is_over"
TOOL = "test_a_tool_at_work_is_ended"
READER = "test_an_error_of_the_reader_comes_out_as_it_is"
LEASE = "test_a_turn_without_a_lease_ends"
AWAY = "test_nobody_has_to_read_for_a_run_to_go_on"


@MUTANTS.fails("test_opening_touches_no_network")
class ConnectsAtOnce(MemoryRuntime):
    def __init__(self, *parts):
        super().__init__(*parts)
        with socket.socket() as one, suppress(ConnectionError):
            one.connect(("127.0.0.1", 9))


@MUTANTS.fails("test_opening_touches_no_network")
class AsksAtOnce(MemoryRuntime):
    def __init__(self, *parts):
        super().__init__(*parts)
        if not self.model.book.scripts:
            self.model.asked.append([])


@MUTANTS.fails("test_what_the_backend_says_is_the_answer")
class LeavesAChild(MemoryRun):
    async def work(self):
        if self.said == "plain":
            CHILDREN.append(child())
        return await super().work()


CHILDREN = []


def child():
    return subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)


@pytest.fixture(autouse=True)
def no_children():
    yield
    while CHILDREN:
        with CHILDREN.pop() as left:
            left.kill()


class RunsElsewhere(MemoryRuntime):
    """The run belongs to the runtime, and its turn only reads."""

    def elsewhere(self, said):
        raise NotImplementedError

    @asynccontextmanager
    async def turn(self, request, host):
        if not self.elsewhere(request.inputs[-1].text):
            async with super().turn(request, host) as events:
                yield events
            return
        run = self.make(self, request, host)
        self.host.task_group.start_soon(run.run)
        yield run.feed


@MUTANTS.fails(f"{AT_WORK}[left]", f"{AT_WORK}[cancelled]")
class LeavesTheModelAtWork(RunsElsewhere):
    def elsewhere(self, said):
        return said == "endless"


@MUTANTS.fails(TOOL)
class LeavesTheToolAtWork(RunsElsewhere):
    def elsewhere(self, said):
        return said == "dig"


@MUTANTS.fails(*CUTS)
class OutlivesItsTurn(RunsElsewhere):
    def elsewhere(self, said):
        return said.startswith("cut")


@MUTANTS.fails(LEFT)
class LeavesATask(MemoryRuntime):
    @asynccontextmanager
    async def turn(self, request, host):
        async with super().turn(request, host) as events:
            yield events
        if request.inputs[-1].text == "never mind":
            self.host.task_group.start_soon(anyio.sleep_forever)


@MUTANTS.fails(*CUTS)
class WritesLate(MemoryRuntime):
    @asynccontextmanager
    async def turn(self, request, host):
        try:
            async with super().turn(request, host) as events:
                yield events
        except anyio.get_cancelled_exc_class():
            self.host.task_group.start_soon(host.records(SPACE).append, ["{}"])
            raise


class Cut(MemoryRun):
    """Does something when it is cut off."""

    async def work(self):
        try:
            return await super().work()
        except anyio.get_cancelled_exc_class():
            if self.said.startswith("cut"):
                with anyio.CancelScope(shield=True):
                    await self.cut()
            raise

    async def cut(self):
        raise NotImplementedError


@MUTANTS.fails(*CUTS)
class LosesTheMessage(Cut):
    async def cut(self):
        items = await self.host.records(SPACE).read()
        await self.host.records(SPACE).new_generation(items[:-1])


@MUTANTS.fails(*CUTS)
class StoresTheMessageAgain(Cut):
    async def cut(self):
        await self.keep(*(Line("user", words(message)) for message in self.request.inputs))


@MUTANTS.fails(*CUTS)
class CannotGoOn(Cut):
    async def cut(self):
        self.runtime.__dict__["broken"] = True

    async def history(self):
        if "broken" in self.runtime.__dict__ and self.said == "after all":
            raise TimeoutError
        return await super().history()


@MUTANTS.fails(READER)
class WrapsErrors(MemoryRuntime):
    @asynccontextmanager
    async def turn(self, request, host):
        run = self.make(self, request, host)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run.run)
            yield run.feed
            tasks.cancel_scope.cancel()


@MUTANTS.fails(READER)
class SwallowsErrors(MemoryRuntime):
    @asynccontextmanager
    async def turn(self, request, host):
        try:
            async with super().turn(request, host) as events:
                yield events
        except StaleLease:
            pass


@MUTANTS.fails(LEASE)
class NeedsNoLease(MemoryRun):
    async def keep(self, *lines):
        try:
            await super().keep(*lines)
        except StaleLease:
            if not self.said.startswith("cut"):
                raise


@MUTANTS.fails(LEASE)
class GoesOnForEver(MemoryRun):
    async def work(self):
        try:
            return await super().work()
        except StaleLease:
            while self.said.startswith("cut"):
                await self.runtime.host.clock.sleep(0.01)
            raise


@MUTANTS.fails(LEASE)
class AsksOnceMore(MemoryRun):
    def failure(self, error):
        if isinstance(error, StaleLease):
            self.runtime.model.asked.append([Line("user", "what now")])
        return super().failure(error)


@MUTANTS.fails(AWAY)
class WaitsForItsReader(MemoryRun):
    async def next(self, chunks):
        while self.feed.waiting and self.said == "at length":
            await self.runtime.host.clock.sleep(0.001)
        return await super().next(chunks)


@MUTANTS.fails(AWAY)
class KeepsEachPiece(MemoryRun):
    def put(self, event):
        if self.said == "at length" and isinstance(event, TextDelta):
            self.feed.waiting.append(event)
        else:
            super().put(event)


@pytest.mark.parametrize(("mutant", "expected"), MUTANTS.known, ids=names_of(MUTANTS))
async def test_a_wrong_runtime_fails_at_its_rule(mutant, expected, monkeypatch):
    assert await failures_of(mutant, monkeypatch) == expected


class CutsLongTexts(MemoryRun):
    def put(self, event):
        if isinstance(event, TextBlock):
            event = TextBlock(event.block, event.text[:20])
        super().put(event)


class CallsAFailureAnEnd(MemoryRun):
    def failure(self, error):
        return Finished()


class SaysTheFirstMessageAgain(MemoryRun):
    async def history(self):
        lines = await super().history()
        return lines + lines[:1] * (len(lines) > 4)


class StopsAfterTwoRounds(MemoryRun):
    async def answer(self, lines):
        return await super().answer(lines) if self.rounds < 2 else []


class ForgetsWhoLeft(MemoryRuntime):
    @asynccontextmanager
    async def turn(self, request, host):
        async with super().turn(request, host) as events:
            yield events
            if not events.closed:
                host.session.items(SPACE).clear()


@pytest.mark.parametrize(
    "mutant",
    [
        CutsLongTexts,
        CallsAFailureAnEnd,
        SaysTheFirstMessageAgain,
        StopsAfterTwoRounds,
        ForgetsWhoLeft,
    ],
)
def test_a_wrong_runtime_is_found_by_conversations(mutant):
    """D1: each of them is right in most turns."""
    with pytest.raises((AssertionError, BaseExceptionGroup)):
        run_machine(MemoryModelHarness(maker(mutant)), "asyncio", conversations=10)


def test_a_right_runtime_is_not_found():
    run_machine(MemoryModelHarness(), "asyncio", conversations=10)
