"""What a runtime's tools may do, as tests: a part of `dragoman.testing.runtime_suite`."""

from __future__ import annotations

import pytest

from dragoman.protocols import Runtime
from dragoman.runevents import Failed, FailureKind, Finished, ToolFinished
from dragoman.testing.runtime_harness import RuntimeHarness
from dragoman.testing.runtime_script import Act, Hold, Say, outcome
from dragoman.testing.runtime_stage import Stage, of_role, staged
from dragoman.testing.runtime_turnhost import SuiteTurnHost


@pytest.mark.anyio
class ActingSuite:
    """Invariant 7: the journal stands before each side effect, and what it knows is not repeated.

    All of it is promised by ``journal``, and not asked of a runtime that does not say so.
    """

    async def test_a_side_effect_begins_when_the_journal_has_it(
        self, harness: RuntimeHarness
    ) -> None:
        """And the journal is told what came of it."""
        async with staged(harness) as stage:
            stage.need("script", "act")
            async with stage.opened() as runtime:
                _need_journal(runtime)
                stage.script("pay", Act("paying"), Say(("Paid.",)))
                talk = await stage.say(runtime, "pay")
            assert await harness.effects() == ["paying"]
            assert talk.host.session.begun["paying"] == 1
            assert _results(talk.host) == [outcome("paying")]

    async def test_the_same_wanted_twice_is_done_twice(self, harness: RuntimeHarness) -> None:
        """Each call is one of its own in the journal, also when they run at once."""
        async with staged(harness) as stage:
            stage.need("script", "act")
            async with stage.opened() as runtime:
                _need_journal(runtime)
                stage.script("knock", Act("knock"), Act("knock"), Say(("Who is there?",)))
                talk = await stage.say(runtime, "knock")
            assert await harness.effects() == ["knock", "knock"]
            assert _results(talk.host) == [outcome("knock")] * 2

    async def test_what_was_done_before_a_crash_is_not_done_again(
        self, harness: RuntimeHarness
    ) -> None:
        """The backend is given the result that the journal has, and no other."""
        async with staged(harness) as stage:
            stage.need("script", "act")
            async with stage.opened() as runtime:
                _need_journal(runtime)
                host = await _cut_off_after(stage, runtime, "order", "ordering")
                [effect] = host.session.journal
                host.session.journal[effect] = "ordered, number 7"
                talk = await stage.say(runtime, "order", host=host, attempt=2)
            assert talk.end == Finished()
            assert await harness.effects() == ["ordering"]
            if stage.can("asked"):
                assert await _told(stage, "order") == ["ordered, number 7"]

    async def test_what_may_have_been_done_is_not_done_again(self, harness: RuntimeHarness) -> None:
        """Nobody knows what came of it, and the backend is told so."""
        async with staged(harness) as stage:
            stage.need("script", "act")
            async with stage.opened() as runtime:
                _need_journal(runtime)
                host = await _cut_off_after(stage, runtime, "launch", "launching")
                [effect] = host.session.journal
                host.session.journal[effect] = None
                talk = await stage.say(runtime, "launch", host=host, attempt=2)
            assert isinstance(talk.end, Finished | Failed)
            assert await harness.effects() == ["launching"]
            assert _results(host) == []
            if stage.can("asked") and talk.end == Finished():
                [told] = await _told(stage, "launch")
                assert told.strip()
                assert outcome("launching") not in told

    async def test_a_call_that_raises_stays_open(self, harness: RuntimeHarness) -> None:
        """Its outcome is unknown. People are told that it failed, and the turn ends in order."""
        async with staged(harness) as stage:
            stage.need("script", "act", "tool error")
            async with stage.opened() as runtime:
                stage.script("break", Act("breaking", fails=True), Say(("Sorry.",)))
                talk = await stage.say(runtime, "break")
                assert [one.failed for one in talk.of(ToolFinished)] == [True]
                assert talk.end == Finished() or _kind(talk.end) is FailureKind.TOOL
                if runtime.capabilities.journal:
                    assert list(talk.host.session.journal.values()) == [None]

    async def test_nothing_begins_without_a_lease(self, harness: RuntimeHarness) -> None:
        """Invariants 2 and 7: the turn has lost its session, and ends."""
        async with staged(harness) as stage:
            stage.need("script", "act")
            async with stage.opened() as runtime:
                _need_journal(runtime)
                stage.script("too late", Act("meddling"), Say(("Done.",)))
                host = stage.way_back(lost=True)
                talk = await stage.say(runtime, "too late", host=host)
            assert isinstance(talk.end, Failed)
            assert await harness.effects() == []


def _need_journal(runtime: Runtime) -> None:
    if not runtime.capabilities.journal:
        pytest.skip("the runtime does not say 'journal'")


async def _cut_off_after(stage: Stage, runtime: Runtime, said: str, what: str) -> SuiteTurnHost:
    """Run a turn up to the end of its call; return the host of its next attempt."""
    host = stage.way_back()
    steps = (Act(what), Say(("Done.",)), Hold()) if stage.can("hold") else (Act(what),)
    stage.script(said, *steps)
    async with stage.turn(runtime, said, host=host) as talk:
        await talk.until(ToolFinished)
    stage.script(said, Act(what), Say(("Done.",)))
    return host.after_a_crash()


def _results(host: SuiteTurnHost) -> list[str]:
    return [result for result in host.session.journal.values() if result is not None]


def _kind(end: object) -> FailureKind | None:
    return end.kind if isinstance(end, Failed) else None


async def _told(stage: Stage, said: str) -> list[str]:
    """Return the results that the backend was given last."""
    return of_role((await stage.asked(said))[-1], "tool")
