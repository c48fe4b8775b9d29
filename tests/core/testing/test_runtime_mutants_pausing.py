"""Every rule about pauses bites: a runtime that breaks it fails there alone."""

import json

import attrs
import pytest

from dragoman import ApprovalRequested, ApprovalState, Failed, FailureKind, Finished, Paused
from dragoman.testing.runtime_suite import Line, outcome
from peers.memory_runtime import MemoryRun, MemoryRuntime, StateLostError, words
from runtime_mutants import FLAG, failures_of
from suite_mutants import Mutants, names_of

pytestmark = pytest.mark.anyio
MUTANTS = Mutants()
ASKS = "test_a_call_that_asks_pauses_the_turn"
ONCE = ["test_an_approved_call_runs_once[False]", "test_an_approved_call_runs_once[True]"]
REFUSED = {
    verdict: f"test_what_was_not_approved_does_not_run[{verdict}]"
    for verdict in ("denied", "expired", "cancelled")
}
EACH = [f"test_each_call_has_a_decision_of_its_own[{denied}]" for denied in ("one", "two")]
GRANTED = "test_what_was_granted_does_not_ask"
AGAIN = "test_a_turn_may_pause_again"
REMEMBERED = "test_a_turn_that_went_on_is_remembered"
CRASH = "test_a_crash_behind_the_decision_repeats_nothing"
KEEPS = "test_a_turn_that_goes_on_keeps_the_model_that_it_began_with"
LOST = "test_a_state_that_cannot_be_used_ends_the_turn"


@MUTANTS.fails(ASKS, *ONCE, *REFUSED.values(), GRANTED, REMEMBERED, CRASH, LOST)
class ActsWhileItAsks(MemoryRun):
    def pause(self, lines, calls):
        self.runtime.model.effects += [one.what for one in calls if one.what == "deleting"]
        return super().pause(lines, calls)


@MUTANTS.fails(ASKS, *EACH)
class ShowsAnotherCall(MemoryRun):
    def put(self, event):
        if isinstance(event, ApprovalRequested):
            event = attrs.evolve(event, arguments='{"what": "nothing"}')
        super().put(event)


@MUTANTS.fails(ONCE[1], KEEPS)
class SavesInItself(MemoryRun):
    def pause(self, lines, calls):
        paused = super().pause(lines, calls)
        self.runtime.__dict__["saved"] = paused.state
        return Paused("mine")

    async def begin(self):
        if self.request.saved == "mine":
            saved = self.runtime.__dict__.get("saved", "")
            self.request = attrs.evolve(self.request, saved=saved)
        return await super().begin()


def taking_for_approved(verdict):
    """A runtime that runs what was decided so."""

    async def begin(self):
        made = [
            attrs.evolve(one, verdict=ApprovalState.APPROVED) if one.verdict is verdict else one
            for one in self.request.decisions
        ]
        self.request = attrs.evolve(self.request, decisions=tuple(made))
        return await MemoryRun.begin(self)

    return type(f"Runs_{verdict.value}", (MemoryRun,), {"begin": begin})


MUTANTS.fails(REFUSED["denied"], *EACH)(taking_for_approved(ApprovalState.DENIED))
MUTANTS.fails(REFUSED["expired"])(taking_for_approved(ApprovalState.EXPIRED))
MUTANTS.fails(REFUSED["cancelled"])(taking_for_approved(ApprovalState.CANCELLED))


@MUTANTS.fails(*REFUSED.values())
class SaysNothingOfIt(MemoryRun):
    async def begin(self):
        lines, calls = await super().begin()
        for call in calls:
            call.result = "" if call.result and call.what == "deleting" else call.result
        return lines, calls


@MUTANTS.fails()
class AsksOneAtATime(MemoryRun):
    """Which is allowed."""

    def pause(self, lines, calls):
        for call in [one for one in calls if one.result is None][1:]:
            call.result = "Not run: call it again."
        return super().pause(lines, calls)


@MUTANTS.fails(*EACH)
class RunsWhatItDoesNotAskAbout(AsksOneAtATime):
    def pause(self, lines, calls):
        waiting = [one.what for one in calls if one.result is None]
        self.runtime.model.effects += waiting[1:]
        return super().pause(lines, calls)


@MUTANTS.fails(*EACH)
class SaysThatItRan(AsksOneAtATime):
    def pause(self, lines, calls):
        paused = super().pause(lines, calls)
        saved = json.loads(paused.state)
        saved["calls"] = [
            [*call[:3], outcome(call[1]) if str(call[3]).startswith("Not run") else call[3]]
            for call in saved["calls"]
        ]
        return Paused(json.dumps(saved))


@MUTANTS.fails(*EACH)
class DecidesOnceForAll(MemoryRun):
    async def begin(self):
        made = self.request.decisions
        same = tuple(attrs.evolve(one, verdict=made[0].verdict) for one in made)
        self.request = attrs.evolve(self.request, decisions=same)
        return await super().begin()


@MUTANTS.fails(GRANTED)
class AsksWhatWasGranted(MemoryRun):
    async def begin(self):
        self.host.session.grants.clear()
        return await super().begin()


@MUTANTS.fails(GRANTED)
class RemembersGrantsForAll(MemoryRun):
    async def begin(self):
        known = self.runtime.__dict__.setdefault("grants", set())
        known |= self.host.session.grants
        self.host.session.grants |= known
        return await super().begin()


@MUTANTS.fails(AGAIN)
class KnowsOnePauseOnly(MemoryRun):
    async def begin(self):
        lines, calls = await super().begin()
        if len(self.request.decisions) > len(calls) > 0:
            raise StateLostError
        return lines, calls


@MUTANTS.fails(AGAIN)
class BeginsAnewBehindAPause(MemoryRun):
    def pause(self, lines, calls):
        paused = super().pause(lines, calls)
        if calls[0].what == "two":
            self.runtime.model.effects.append("one")
        return paused


@MUTANTS.fails(*ONCE)
class SaysTheMessageAgain(MemoryRun):
    async def begin(self):
        lines, calls = await super().begin()
        again = [Line("user", words(one)) for one in self.request.inputs if calls]
        return [*lines[:1], *again, *lines[1:]], calls


@MUTANTS.fails(REMEMBERED)
class StoresTheMessageAgain(MemoryRun):
    async def begin(self):
        if self.request.saved is not None:
            await self.keep(*(Line("user", words(one)) for one in self.request.inputs))
        return await super().begin()


@MUTANTS.fails(CRASH)
class AsksNoJournalAgain(MemoryRun):
    async def call(self, call_id, what):
        if self.request.saved is not None:
            return await self.act(what)
        return await super().call(call_id, what)


@MUTANTS.fails(LOST)
class BeginsAnew(MemoryRun):
    async def begin(self):
        try:
            return await super().begin()
        except StateLostError:
            return await self.history(), []


@MUTANTS.fails(LOST)
class SaysOnlyThatItFailed(MemoryRun):
    def failure(self, error):
        found = super().failure(error)
        lost = isinstance(error, StateLostError)
        return Failed(FailureKind.INTERNAL) if lost else found


@MUTANTS.fails(f"{FLAG}[approve]", f"{FLAG}[resume]")
class PausesWithoutAQuestion(MemoryRun):
    def put(self, event):
        if not (self.said == "may I" and isinstance(event, ApprovalRequested)):
            super().put(event)


@MUTANTS.fails(f"{FLAG}[approve]", f"{FLAG}[resume]")
class AsksAndGoesOn(MemoryRun):
    def close(self, end):
        super().close(Finished() if self.said == "may I" else end)


@MUTANTS.fails(f"{FLAG}[resume]")
class CannotGoOn(MemoryRun):
    async def begin(self):
        if self.request.saved is not None and self.said == "may I":
            raise StateLostError
        return await super().begin()


@MUTANTS.fails(KEEPS)
class ChoosesAnew(MemoryRun):
    async def begin(self):
        begun = await super().begin()
        self.model = self.request.model
        return begun


@MUTANTS.fails(f"{FLAG}[models]", KEEPS)
class HeedsNoChoice(MemoryRun):
    def __attrs_post_init__(self):
        self.model = ""


for flag in ("approve", "resume", "models"):
    can = attrs.evolve(MemoryRuntime.capabilities, **{flag: False})
    MUTANTS.fails(f"{FLAG}[{flag}]")(type(f"Hides_{flag}", (MemoryRuntime,), {"capabilities": can}))


@pytest.mark.parametrize(("mutant", "expected"), MUTANTS.known, ids=names_of(MUTANTS))
async def test_a_wrong_runtime_fails_at_its_rule(mutant, expected, monkeypatch):
    assert await failures_of(mutant, monkeypatch) == expected
