"""What people say while a turn runs, as tests: a part of `dragoman.testing.runtime_suite`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from dragoman.protocols import Runtime
from dragoman.runevents import Finished
from dragoman.testing.runtime_harness import RuntimeHarness
from dragoman.testing.runtime_script import Act, Say
from dragoman.testing.runtime_stage import Stage, Talk, of_role, staged


@pytest.mark.anyio
class SteeringSuite:
    """``steer``: a message is taken into a running turn, or it keeps its place; never both."""

    async def test_what_waits_is_taken_in_at_a_boundary(self, harness: RuntimeHarness) -> None:
        """B4: the backend is given it in the turn that runs, once and in order."""
        async with staged(harness) as stage, _steered(stage) as runtime:
            talk = await _offer(stage, runtime, "the first of two", Act("walking"))
            assert talk.end == Finished()
            assert len(talk.grammar.consumed) == 2
            lines = (await harness.asked())[-1]
            assert of_role(lines, "user") == ["the first of two", "oh and this", "and that"]

    @pytest.mark.parametrize("acts", [True, False], ids=["boundary", "no boundary"])
    async def test_what_is_said_to_be_taken_in_was_given(
        self, harness: RuntimeHarness, acts: bool
    ) -> None:
        """And what was given is said to be taken in; the rest waits for the next turn."""
        async with staged(harness) as stage, _steered(stage) as runtime:
            talk = await _offer(stage, runtime, "just this", *([Act("walking")] if acts else []))
            given = {text for lines in await harness.asked() for text in of_role(lines, "user")}
            waiting = {one.text for one in talk.host.session.waiting}
            assert given.isdisjoint(waiting)
            assert given | waiting == {"just this", "oh and this", "and that"}

    async def test_what_was_taken_in_is_remembered_once(self, harness: RuntimeHarness) -> None:
        """In its place, whoever stored it."""
        async with staged(harness) as stage, _steered(stage) as runtime:
            talk = await _offer(stage, runtime, "the beginning", Act("walking"))
            await stage.say(runtime, "the rest", session=talk.host.session)
            [lines] = await stage.asked("the rest")
            said = of_role(lines, "user")
            taken = ["oh and this", "and that"][: len(talk.grammar.consumed)]
            assert said == ["the beginning", *taken, "the rest"]


@asynccontextmanager
async def _steered(stage: Stage) -> AsyncIterator[Runtime]:
    """Open a runtime that says that it can be steered."""
    stage.need("script", "act", "asked", "history")
    async with stage.opened() as runtime:
        if not runtime.capabilities.steer:
            pytest.skip("the runtime does not say 'steer'")
        yield runtime


async def _offer(stage: Stage, runtime: Runtime, said: str, *acts: Act) -> Talk:
    """Run a turn while two messages wait."""
    session = stage.session()
    session.waiting += [stage.message("oh and this"), stage.message("and that")]
    stage.script(said, *acts, Say(("Done.",)))
    return await stage.say(runtime, said, session=session)
