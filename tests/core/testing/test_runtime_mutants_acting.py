"""Every rule about tools, steering and failures bites: a runtime that breaks it fails there alone."""

import anyio
import attrs
import pytest

from dragoman import (
    Failed,
    FailureKind,
    Finished,
    InputConsumed,
    StaleLease,
    TextBlock,
    ToolFinished,
    ToolRecorded,
    ToolUnknown,
)
from dragoman.testing.runtime_suite import FAULTS, Line, outcome
from peers.memory_model import ModelError, ToolError
from peers.memory_runtime import MemoryRun, MemoryRuntime, words
from runtime_mutants import FAILURE, GIVEN, failures_of
from suite_mutants import Mutants, names_of

pytestmark = pytest.mark.anyio
MUTANTS = Mutants()
BEGINS = "test_a_side_effect_begins_when_the_journal_has_it"
DONE = "test_what_was_done_before_a_crash_is_not_done_again"
CRASH = "test_a_crash_behind_the_decision_repeats_nothing"
DOUBT = "test_what_may_have_been_done_is_not_done_again"
RAISES = "test_a_call_that_raises_stays_open"
TAKEN = "test_what_waits_is_taken_in_at_a_boundary"
REMEMBERED = "test_what_was_taken_in_is_remembered_once"


@MUTANTS.fails(BEGINS)
class ActsFirst(MemoryRun):
    async def call(self, call_id, what):
        if what == "paying":
            await super().act(what)
        return await super().call(call_id, what)

    async def act(self, what):
        return outcome(what) if what == "paying" else await super().act(what)


@MUTANTS.fails(BEGINS)
class ActsMeanwhile(MemoryRun):
    async def call(self, call_id, what):
        if what != "paying":
            return await super().call(call_id, what)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(super().act, what)
            return await super().call(call_id, what)

    async def act(self, what):
        return outcome(what) if what == "paying" else await super().act(what)


@MUTANTS.fails(BEGINS)
class TellsNoResult(MemoryRun):
    async def tell(self, begun, result):
        if result != outcome("paying"):
            await super().tell(begun, result)


@MUTANTS.fails(BEGINS, "test_the_same_wanted_twice_is_done_twice")
class TellsThatItWentWell(MemoryRun):
    async def tell(self, begun, result):
        await super().tell(begun, "ok")


@MUTANTS.fails("test_the_same_wanted_twice_is_done_twice")
class DoesEachThingOnce(MemoryRun):
    async def act(self, what):
        done = self.runtime.__dict__.setdefault("done", set())
        if what == "knock" and what in done:
            return outcome(what)
        done.add(what)
        return await super().act(what)


@MUTANTS.fails(DONE, CRASH)
class DoesItAgain(MemoryRun):
    async def decided(self, decision, what):
        if isinstance(decision, ToolRecorded):
            await self.act(what)
        return decision


@MUTANTS.fails(DONE)
class InventsTheResult(MemoryRun):
    async def decided(self, decision, what):
        return ToolRecorded(outcome(what)) if isinstance(decision, ToolRecorded) else decision


@MUTANTS.fails(DOUBT)
class TriesAgain(MemoryRun):
    async def decided(self, decision, what):
        if isinstance(decision, ToolUnknown):
            await self.act(what)
        return decision


@MUTANTS.fails(DOUBT)
class HopesForTheBest(MemoryRun):
    async def decided(self, decision, what):
        return ToolRecorded(outcome(what)) if isinstance(decision, ToolUnknown) else decision


@MUTANTS.fails(DOUBT)
class SaysNothingOfDoubt(MemoryRun):
    async def decided(self, decision, what):
        return ToolRecorded("") if isinstance(decision, ToolUnknown) else decision


@MUTANTS.fails(RAISES)
class TellsOfNoFailure(MemoryRun):
    def put(self, event):
        super().put(attrs.evolve(event, failed=False) if isinstance(event, ToolFinished) else event)


@MUTANTS.fails(RAISES)
class EndsWhatRaised(MemoryRun):
    begun = None

    async def act(self, what):
        try:
            return await super().act(what)
        except ToolError:
            await self.tell(self.begun, "It failed.")
            raise

    async def decided(self, decision, what):
        self.begun = decision
        return decision


@MUTANTS.fails(RAISES, "test_nothing_that_goes_well_is_logged_in_words")
class DiesOfItsTools(MemoryRun):
    async def act(self, what):
        try:
            return await super().act(what)
        except ToolError as error:
            raise RuntimeError("a tool failed") from error


@MUTANTS.fails("test_nothing_begins_without_a_lease", "test_a_turn_without_a_lease_ends")
class AsksNobody(MemoryRun):
    async def call(self, call_id, what):
        try:
            return await super().call(call_id, what)
        except StaleLease:
            await self.act(what)
            raise


@MUTANTS.fails("test_nothing_begins_without_a_lease")
class TellsTheModelOfItsLease(MemoryRun):
    async def call(self, call_id, what):
        try:
            return await super().call(call_id, what)
        except StaleLease:
            self.put(ToolFinished(call_id, "act", failed=True))
            return "You have lost your lease."

    async def keep(self, *lines):
        try:
            await super().keep(*lines)
        except StaleLease:
            if self.said != "too late":
                raise


@MUTANTS.fails(TAKEN, f"{GIVEN}[True]")
class TakesInAndForgets(MemoryRun):
    async def steer(self):
        taken = await super().steer()
        return taken if self.said in ("the beginning", "walk") else []


@MUTANTS.fails(TAKEN, f"{GIVEN}[True]")
class GivesInSecret(MemoryRun):
    async def steer(self):
        return [Line("user", words(message)) for message in await self.host.offered()]


@MUTANTS.fails(f"{GIVEN}[False]")
class TakesInAtTheEnd(MemoryRun):
    def close(self, end):
        waiting = self.host.session.waiting
        if end == Finished() and waiting:
            self.put(InputConsumed(tuple(one.event_id for one in waiting)))
        super().close(end)


@MUTANTS.fails(TAKEN)
class TakesInOneByOne(MemoryRun):
    async def steer(self):
        offered = await self.host.offered()
        if self.said != "the first of two":
            return await super().steer()
        self.put(InputConsumed((offered[1].event_id, offered[0].event_id)))
        return [Line("user", words(message)) for message in reversed(offered)]


@MUTANTS.fails(REMEMBERED)
class StoresWhatCoreStores(MemoryRun):
    async def steer(self):
        lines = await super().steer()
        if self.said == "the beginning":
            await self.keep(*lines)
        return lines


def mistaking(kind):
    """A runtime that does not know one kind of failure."""

    def failure(self, error):
        found = MemoryRun.failure(self, error)
        wrong = found.kind is kind and self.said.startswith("fail")
        return Failed(FailureKind.INTERNAL) if wrong else found

    return type(f"Mistakes_{kind.value}", (MemoryRun,), {"failure": failure})


for kind in FAULTS:
    MUTANTS.fails(f"{FAILURE}[{kind.value}]")(mistaking(kind))
ALL = {kind: f"{FAILURE}[{kind.value}]" for kind in FAULTS}
QUOTED = [name for kind, name in ALL.items() if kind is not FailureKind.TIMEOUT]
UNREACHABLE = "test_what_cannot_be_reached_fails_the_turn"


@MUTANTS.fails(*QUOTED, UNREACHABLE, "test_a_failure_behind_text_keeps_the_text")
class QuotesTheModel(MemoryRun):
    def failure(self, error):
        found = super().failure(error)
        return Failed(found.kind, str(error)) if isinstance(error, ModelError) else found


@MUTANTS.fails(*ALL.values())
class LogsWhatWasSaid(MemoryRun):
    def failure(self, error):
        if self.said.startswith("fail"):
            self.runtime.host.log.warning("%s came to nothing", self.said)
        return super().failure(error)


@MUTANTS.fails(*QUOTED, UNREACHABLE, "test_a_failure_behind_text_keeps_the_text")
class LogsItsKey(MemoryRun):
    def failure(self, error):
        if isinstance(error, ModelError) and self.said != "a story":
            self.runtime.host.log.debug("failed: %s", error)
        return super().failure(error)


@MUTANTS.fails(*QUOTED)
class KeepsWhatTheServiceSaid(MemoryRun):
    async def keep_shown(self):
        await super().keep_shown()
        if self.said.startswith("fail") and self.broken:
            self.host.session.items("words").append(self.broken)

    broken = ""

    def failure(self, error):
        self.broken = str(error)
        return super().failure(error)


@MUTANTS.fails(ALL[FailureKind.TIMEOUT])
class WaitsForEver(MemoryRun):
    async def next(self, chunks):
        return await anext(chunks, None)


@MUTANTS.fails("test_a_failure_behind_text_keeps_the_text")
class TakesItsWordsBack(MemoryRun):
    def failure(self, error):
        if self.said == "half":
            self.put(TextBlock(self.block, ""))
        return super().failure(error)


@MUTANTS.fails(UNREACHABLE)
class RaisesWhenItIsDown(MemoryRun):
    def failure(self, error):
        if self.runtime.model.down:
            raise error
        return super().failure(error)


@MUTANTS.fails("test_nothing_that_goes_well_is_logged_in_words")
class LogsWhatGoesWell(MemoryRun):
    def close(self, end):
        if end == Finished() and self.said.startswith("tell"):
            self.runtime.host.log.info("answered %s", self.said)
        super().close(end)


@MUTANTS.fails("test_thinking_is_no_part_of_the_answer")
class ShowsItsKey(MemoryRuntime):
    def __repr__(self):
        thought = "deep" in self.model.book.scripts
        return self.config.key.reveal() if thought else "a runtime"


@pytest.mark.parametrize(("mutant", "expected"), MUTANTS.known, ids=names_of(MUTANTS))
async def test_a_wrong_runtime_fails_at_its_rule(mutant, expected, monkeypatch):
    assert await failures_of(mutant, monkeypatch) == expected
