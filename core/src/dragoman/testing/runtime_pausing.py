"""Turns that wait for people, as tests: a part of `dragoman.testing.runtime_suite`."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from dragoman.protocols import Decision, Runtime
from dragoman.runevents import ApprovalRequested, Failed, FailureKind, Finished, Paused
from dragoman.states import ApprovalState
from dragoman.testing.runtime_harness import RuntimeHarness
from dragoman.testing.runtime_script import Act, Hold, Say, Step, outcome
from dragoman.testing.runtime_stage import Stage, Talk, of_role, staged

_REFUSALS = (ApprovalState.DENIED, ApprovalState.EXPIRED, ApprovalState.CANCELLED)


@pytest.mark.anyio
class PausingSuite:
    """``approve`` and ``resume``: what was asked about runs if it was approved, and then once."""

    async def test_a_call_that_asks_pauses_the_turn(self, harness: RuntimeHarness) -> None:
        """Invariant 8: people see exactly the call that would run, and nothing runs."""
        async with staged(harness) as stage, _pausing(stage) as runtime:
            talk = await _pause(stage, runtime, Act("deleting", asks=True))
            [asked] = talk.of(ApprovalRequested)
            assert json.loads(asked.arguments) == {"what": "deleting"}
            assert asked.call_id
            assert asked.tool
            assert await harness.effects() == []

    @pytest.mark.parametrize("reopened", [False, True], ids=["same", "reopened"])
    async def test_an_approved_call_runs_once(
        self, harness: RuntimeHarness, reopened: bool
    ) -> None:
        """D9: the turn goes on where it was, in this process or another, and nothing is said again."""
        async with staged(harness) as stage:
            async with _pausing(stage) as runtime:
                paused = await _pause(stage, runtime, Act("deleting", asks=True))
                if not reopened:
                    talk = await stage.go_on(runtime, paused, *_decide(paused, "approved"))
            if reopened:
                async with stage.opened() as runtime:
                    talk = await stage.go_on(runtime, paused, *_decide(paused, "approved"))
            assert (talk.end, talk.texts) == (Finished(), ["Done."])
            assert await harness.effects() == ["deleting"]
            lines = (await stage.asked("clear the desk"))[-1]
            assert of_role(lines, "user") == ["clear the desk"]
            assert of_role(lines, "tool") == [outcome("deleting")]

    @pytest.mark.parametrize("verdict", _REFUSALS, ids=lambda verdict: verdict.value)
    async def test_what_was_not_approved_does_not_run(
        self, harness: RuntimeHarness, verdict: ApprovalState
    ) -> None:
        """Invariant 8: the backend is told so, and goes on without it."""
        async with staged(harness) as stage, _pausing(stage) as runtime:
            paused = await _pause(stage, runtime, Act("deleting", asks=True))
            talk = await stage.go_on(runtime, paused, *_decide(paused, verdict.value))
            assert talk.end == Finished()
            assert await harness.effects() == []
            [told] = of_role((await stage.asked("clear the desk"))[-1], "tool")
            assert told.strip()
            assert outcome("deleting") not in told

    @pytest.mark.parametrize("denied", ["one", "two"])
    async def test_each_call_has_a_decision_of_its_own(
        self, harness: RuntimeHarness, denied: str
    ) -> None:
        """Another call beside them needs none. A runtime may ask about one at a time: the other
        is not run, and the backend is told so.
        """
        async with staged(harness) as stage, _pausing(stage) as runtime:
            acts = (Act("one", asks=True), Act("two", asks=True), Act("three"))
            paused = await _pause(stage, runtime, *acts)
            asked = {json.loads(one.arguments)["what"]: one for one in _asked(paused)}
            verdicts = ["denied" if what == denied else "approved" for what in asked]
            talk = await stage.go_on(runtime, paused, *_decide(paused, *verdicts))
            assert talk.end == Finished()
            done = sorted({"three", *asked} - {denied})
            assert sorted(await harness.effects()) == done
            told = of_role((await stage.asked("clear the desk"))[-1], "tool")
            refused = {outcome(what) for what in ("one", "two")} - {outcome(what) for what in done}
            assert len(told) == 3
            assert refused.isdisjoint(told), "the backend is told that a call ran which did not"

    async def test_what_was_granted_does_not_ask(self, harness: RuntimeHarness) -> None:
        """A person said so for this tool, in this conversation and no other."""
        async with staged(harness) as stage, _pausing(stage) as runtime:
            paused = await _pause(stage, runtime, Act("deleting", asks=True))
            session = stage.session()
            session.grants.add(_asked(paused)[0].tool)
            talk = await stage.say(runtime, "clear the desk", session=session)
            assert talk.end == Finished()
            assert await harness.effects() == ["deleting"]
            assert session.begun["deleting"] == 1
            again = await stage.say(runtime, "clear the desk")
            assert isinstance(again.end, Paused)

    async def test_a_turn_may_pause_again(self, harness: RuntimeHarness) -> None:
        """It is then given all decisions so far, and does nothing a second time."""
        async with staged(harness) as stage, _pausing(stage) as runtime:
            acts = (Act("one", asks=True), Say(("And now?",)), Act("two", asks=True))
            first = await _pause(stage, runtime, *acts)
            made = _decide(first, "approved")
            second = await stage.go_on(runtime, first, *made)
            assert isinstance(second.end, Paused)
            assert await harness.effects() == ["one"]
            talk = await stage.go_on(runtime, second, *made, *_decide(second, "approved"))
            assert talk.end == Finished()
            assert await harness.effects() == ["one", "two"]

    async def test_a_turn_that_went_on_is_remembered(self, harness: RuntimeHarness) -> None:
        """D5: the next turn knows all of it, each part once."""
        async with staged(harness) as stage, _pausing(stage) as runtime:
            paused = await _pause(stage, runtime, Act("deleting", asks=True))
            talk = await stage.go_on(runtime, paused, *_decide(paused, "approved"))
            await stage.say(runtime, "what now", session=talk.host.session)
            [lines] = await stage.asked("what now")
            said = [(one.role, one.text) for one in lines]
            assert said == [
                ("user", "clear the desk"),
                ("tool", outcome("deleting")),
                ("assistant", "Done."),
                ("user", "what now"),
            ]

    async def test_a_crash_behind_the_decision_repeats_nothing(
        self, harness: RuntimeHarness
    ) -> None:
        """Invariant 7: the turn goes on from its pause again, and its call is in the journal."""
        async with staged(harness) as stage, _pausing(stage) as runtime:
            stage.need("hold")
            paused = await _pause(stage, runtime, Act("deleting", asks=True), Hold())
            made = _decide(paused, "approved")
            records = {name: list(kept) for name, kept in paused.host.session.spaces.items()}
            async with stage.resumed(runtime, paused, *made):
                await stage.until_busy(1)
                await stage.until_effect("deleting")
            paused.host.session.spaces.update(records)
            await harness.release()
            talk = await stage.go_on(runtime, paused, *made)
            assert talk.end == Finished()
            assert await harness.effects() == ["deleting"]

    async def test_a_state_that_cannot_be_used_ends_the_turn(self, harness: RuntimeHarness) -> None:
        """What was asked about does not run, and people can be told why."""
        async with staged(harness) as stage, _pausing(stage) as runtime:
            paused = await _pause(stage, runtime, Act("deleting", asks=True))
            paused.grammar.end = Paused('{"of": "another release"}')
            talk = await stage.go_on(runtime, paused, *_decide(paused, "approved"))
            assert isinstance(talk.end, Failed)
            assert talk.end.kind is FailureKind.STATE_LOST
            assert await harness.effects() == []


@asynccontextmanager
async def _pausing(stage: Stage) -> AsyncIterator[Runtime]:
    """Open a runtime that says that it can pause and go on."""
    stage.need("script", "act", "ask", "asked", "history")
    async with stage.opened() as runtime:
        can = runtime.capabilities
        if not (can.approve and can.resume):
            pytest.skip("the runtime does not say 'approve' and 'resume'")
        yield runtime


async def _pause(stage: Stage, runtime: Runtime, *steps: Step) -> Talk:
    """Run a turn up to its first pause."""
    stage.script("clear the desk", *steps, Say(("Done.",)))
    talk = await stage.say(runtime, "clear the desk")
    assert isinstance(talk.end, Paused), f"the turn does not pause: {talk.end!r}"
    return talk


def _asked(talk: Talk) -> list[ApprovalRequested]:
    return talk.grammar.asked


def _decide(talk: Talk, *verdicts: str) -> list[Decision]:
    """Return decisions on what a turn has asked, in order."""
    return [
        Decision(one.call_id, one.tool, ApprovalState(verdict))
        for one, verdict in zip(_asked(talk), verdicts, strict=True)
    ]
