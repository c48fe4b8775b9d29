"""Whether a runtime does what a flag of `dragoman.RuntimeCapabilities` promises."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeAlias

import pytest

from dragoman.protocols import Decision, Runtime
from dragoman.runevents import Finished, InputConsumed, Paused, TextDelta
from dragoman.states import ApprovalState
from dragoman.testing.runtime_harness import RuntimeHarness
from dragoman.testing.runtime_script import Act, Say
from dragoman.testing.runtime_stage import Stage, Talk, of_role, staged

Works: TypeAlias = Callable[[Stage, Runtime], Awaitable[bool]]


async def _approve(stage: Stage, runtime: Runtime) -> bool:
    return isinstance((await _ask(stage, runtime)).end, Paused)


async def _resume(stage: Stage, runtime: Runtime) -> bool:
    paused = await _ask(stage, runtime)
    decisions = [
        Decision(one.call_id, one.tool, ApprovalState.APPROVED) for one in paused.grammar.asked
    ]
    talk = await stage.go_on(runtime, paused, *decisions)
    return talk.end == Finished() and await stage.harness.effects() == ["asking"]


async def _ask(stage: Stage, runtime: Runtime) -> Talk:
    stage.need("script", "act", "ask")
    stage.script("may I", Act("asking", asks=True), Say(("Thank you.",)))
    return await stage.say(runtime, "may I")


async def _journal(stage: Stage, runtime: Runtime) -> bool:
    stage.need("script", "act")
    stage.script("write it down", Act("writing"), Say(("Done.",)))
    talk = await stage.say(runtime, "write it down")
    assert await stage.harness.effects() == ["writing"]
    return "tool_begins" in talk.host.calls


async def _steer(stage: Stage, runtime: Runtime) -> bool:
    stage.need("script", "act", "asked")
    session = stage.session()
    session.waiting.append(stage.message("another thing"))
    stage.script("walk", Act("walking"), Say(("Done.",)))
    talk = await stage.say(runtime, "walk", session=session)
    given = [text for lines in await stage.harness.asked() for text in of_role(lines, "user")]
    return bool(talk.of(InputConsumed)) or "another thing" in given


async def _models(stage: Stage, runtime: Runtime) -> bool:
    stage.need("script", "models")
    stage.script("say who you are", Say(("Myself.",)))
    session = stage.session()
    for model in ("", CHOSEN, ""):
        await stage.say(runtime, "say who you are", session=session, model=model)
    first, *_, last = models = await stage.harness.models()
    return CHOSEN in models and CHOSEN not in {first, last}


async def _stream(stage: Stage, runtime: Runtime) -> bool:
    said = "one two three"  # in which some runtimes find all of their answer
    stage.script(said, Say(("one ", "two ", "three")))
    talk = await stage.say(runtime, said)
    return bool(talk.of(TextDelta))


CHOSEN: Final = "another-model"
"""What people chose."""

FLAGS: Final[Mapping[str, Works]] = {
    "approve": _approve,
    "journal": _journal,
    "models": _models,
    "resume": _resume,
    "steer": _steer,
    "stream": _stream,
}


@pytest.mark.anyio
class FlagsSuite:
    """A part of `dragoman.testing.runtime_suite`."""

    @pytest.mark.parametrize("flag", FLAGS)
    async def test_a_flag_is_said_exactly_where_there_is_behaviour(
        self, harness: RuntimeHarness, flag: str
    ) -> None:
        """A flag without behaviour fails, and so does behaviour without a flag."""
        async with staged(harness) as stage, stage.opened() as runtime:
            if getattr(runtime.capabilities, flag):
                assert await FLAGS[flag](stage, runtime), f"{flag} is promised and not kept"
            else:
                try:
                    works = await FLAGS[flag](stage, runtime)
                except Exception:  # noqa: BLE001 — what is not promised may fail in any way
                    works = False
                assert not works, f"{flag} works and is not said in the capabilities"

    async def test_a_turn_that_goes_on_keeps_the_model_that_it_began_with(
        self, harness: RuntimeHarness
    ) -> None:
        """Whatever is chosen while it waits."""
        async with staged(harness) as stage:
            stage.need("script", "act", "ask", "models")
            async with stage.opened() as runtime:
                if not runtime.capabilities.models or not runtime.capabilities.resume:
                    pytest.skip("the runtime does not say 'models' and 'resume'")
                stage.script("ask me", Act("answering", asks=True), Say(("Thank you.",)))
                paused = await stage.say(runtime, "ask me", model=CHOSEN)
                before = len(await stage.harness.models())
            async with stage.opened() as runtime:
                [asked] = paused.grammar.asked
                decision = Decision(asked.call_id, asked.tool, ApprovalState.APPROVED)
                assert (await stage.go_on(runtime, paused, decision)).end == Finished()
            assert set((await stage.harness.models())[before:]) == {CHOSEN}

    async def test_what_is_fenced_keeps_nothing_without_a_lease(
        self, harness: RuntimeHarness
    ) -> None:
        """Invariant 2: ``fenced`` says that no store of the runtime's own takes a late write."""
        async with staged(harness) as stage:
            stage.need("script", "asked", "history")
            async with stage.opened() as runtime:
                if not runtime.capabilities.fenced:
                    pytest.skip("the runtime does not say 'fenced'")
                stage.script("too late", Say(("A late word.",)))
                session = stage.session()
                host = stage.way_back(session, lost=True)
                await stage.say(runtime, "too late", host=host)
                await stage.say(runtime, "and now", session=session)
            [lines] = await stage.asked("and now")
            assert of_role(lines, "assistant") == []

    async def test_what_is_taken_out_of_a_history_is_unknown(self, harness: RuntimeHarness) -> None:
        """``history`` names all that a runtime knows from, also where it keeps a program at work."""
        async with staged(harness) as stage:
            stage.need("script", "asked", "history")
            async with stage.opened() as runtime:
                names = runtime.capabilities.history
                if not names:
                    pytest.skip("the runtime names no history")
                session = stage.session()
                await stage.say(runtime, "the first thing", session=session)
                kept = {name: list(session.items(name)) for name in names}
                await stage.say(runtime, "another thing", session=session)
                for name, items in kept.items():
                    session.items(name)[:] = items
                await stage.say(runtime, "and now", session=session)
            [lines] = await stage.asked("and now")
            told = "\n".join(line.text for line in lines)
            assert "the first thing" in told
            assert "another thing" not in told
