"""Conversations of any shape: each turn keeps the grammar, and the backend is given what was said.

One runtime serves all of them. A step is a turn: the backend does what was drawn, and the turn is
read to its end, or left after some events.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, cast

import anyio
import attrs
from anyio.from_thread import BlockingPortal, start_blocking_portal
from hypothesis import HealthCheck, Phase, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from dragoman.protocols import Runtime
from dragoman.runevents import Failed, FailureKind, Finished, ToolStarted
from dragoman.testing.runtime_harness import RuntimeHarness
from dragoman.testing.runtime_script import Act, Fail, Say, Step, Think
from dragoman.testing.runtime_stage import Stage, Talk, of_role, staged

_WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12)
_PIECES = st.lists(_WORDS, min_size=1, max_size=4).map(tuple)


@attrs.define(eq=False)
class Ground:
    """What all conversations of a run share."""

    stage: Stage
    runtime: Runtime
    portal: BlockingPortal
    turns: int = 0


class ConversationMachine(RuleBasedStateMachine):
    """One conversation."""

    def __init__(self, ground: Ground) -> None:
        super().__init__()
        self.ground = ground
        self.session = ground.stage.session()
        self.said: list[str] = []

    @rule(data=st.data())
    def speak(self, data: st.DataObject) -> None:
        """Somebody says something, and the turn is read to its end."""
        steps = self._steps(data)
        talk = self.ground.portal.call(self._turn, steps, None)
        assert talk.end == Finished() or isinstance(talk.end, Failed)
        failed = any(isinstance(step, Fail) for step in steps)
        if self.ground.stage.can("script"):
            assert isinstance(talk.end, Failed) is failed, f"it ended with {talk.end!r}"
            if not failed:
                assert talk.texts == messages(steps)
            assert len(talk.of(ToolStarted)) == sum(isinstance(step, Act) for step in steps)

    @rule(data=st.data(), events=st.integers(0, 4))
    def leave(self, data: st.DataObject, events: int) -> None:
        """Somebody says something, and the turn is left after some events."""
        self.ground.portal.call(self._turn, self._steps(data), events)

    def _steps(self, data: st.DataObject) -> list[Step]:
        """Draw what the backend does: rounds with calls, and in the end text, or a failure."""
        can = self.ground.stage.can
        steps: list[Step] = []
        for number in range(data.draw(st.integers(0, 2)) if can("act") else 0):
            steps += data.draw(st.lists(_PIECES.map(Say), max_size=1))
            count = data.draw(st.integers(1, 2))
            steps += [Act(f"{self.ground.turns}.{number}.{n}") for n in range(count)]
        if can("think"):
            steps += data.draw(st.lists(_WORDS.map(Think), max_size=1))
        steps.append(Say(data.draw(_PIECES)))
        if can("transport") and data.draw(st.booleans()) and data.draw(st.booleans()):
            steps.append(Fail(FailureKind.TRANSPORT, "lost"))
        note(f"{steps}")
        return steps

    async def _turn(self, steps: list[Step], events: int | None) -> Talk:
        stage = self.ground.stage
        self.ground.turns += 1
        said = f"turn number {self.ground.turns:06}"
        self.said.append(said)
        stage.script(said, *steps)
        async with stage.turn(self.ground.runtime, said, session=self.session) as talk:
            if events is None:
                await talk.read()
            for _ in range(events or 0):
                if await anext(talk, None) is None:
                    break
        if stage.can("asked", "history"):
            for lines in await stage.asked(said):
                assert of_role(lines, "user") == self.said
        return talk


def messages(steps: list[Step]) -> list[str]:
    """Return the text of each message that a script says."""
    found = [""]
    for step in steps:
        if isinstance(step, Say):
            found[-1] += step.text
        elif isinstance(step, Act) and found[-1]:
            found.append("")
    return [text for text in found if text]


def run_machine(harness: RuntimeHarness, backend: str, *, conversations: int) -> None:
    """Run `ConversationMachine` over that many conversations."""
    with ExitStack() as open_:
        portal = open_.enter_context(start_blocking_portal(backend))
        wrap = portal.wrap_async_context_manager
        stage = open_.enter_context(wrap(portal.call(_async, staged, harness)))
        runtime = open_.enter_context(wrap(stage.opened()))
        ground = Ground(stage, runtime, portal)
        run_state_machine_as_test(
            # Any factory will do; the annotation asks for more than the function.
            cast("type[RuleBasedStateMachine]", lambda: ConversationMachine(ground)),
            settings=settings(
                max_examples=conversations,
                stateful_step_count=6,
                deadline=None,
                derandomize=True,
                database=None,
                phases=[Phase.generate],  # they are short as they are
                suppress_health_check=list(HealthCheck),
            ),
        )


async def _async(function: Any, *arguments: Any) -> Any:
    await anyio.lowlevel.checkpoint()
    return function(*arguments)
