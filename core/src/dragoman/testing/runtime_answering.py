"""What a runtime answers, as tests: a part of `dragoman.testing.runtime_suite`."""

from __future__ import annotations

from typing import ClassVar

import anyio
import pytest

from dragoman.runevents import Finished, TextDelta, Thinking, ToolFinished, ToolStarted
from dragoman.testing.runtime_harness import RuntimeHarness
from dragoman.testing.runtime_machine import run_machine
from dragoman.testing.runtime_script import Act, Count, Hold, Say, Think
from dragoman.testing.runtime_stage import Stage, Talk, of_role, staged


@pytest.mark.anyio
class AnsweringSuite:
    """What the backend says and does is what the events say, in the one grammar of all turns."""

    at_once: ClassVar[int] = 8
    """How many turns of one runtime run side by side."""
    conversations: ClassVar[int] = 10
    """How many conversations are drawn."""

    async def test_a_turn_ends_once(self, harness: RuntimeHarness) -> None:
        """D1: with exactly one end, after which the iterator stays at its end."""
        async with (
            staged(harness) as stage,
            stage.opened() as runtime,
            stage.turn(runtime, "hello") as talk,
        ):
            await talk.read()
            assert talk.end == Finished()
            with pytest.raises(StopAsyncIteration):
                await anext(talk)

    async def test_what_the_backend_says_is_the_answer(self, harness: RuntimeHarness) -> None:
        """One block, whole."""
        async with staged(harness) as stage:
            stage.need("script")
            async with stage.opened() as runtime:
                stage.script("plain", Say(("Hel", "lo.\n\n", "  *There* ", "é😀.")))
                talk = await stage.say(runtime, "plain")
            assert talk.texts == ["Hello.\n\n  *There* é😀."]

    async def test_a_part_is_shown_while_the_rest_is_to_come(self, harness: RuntimeHarness) -> None:
        """A stream is one only where people see it grow; its block then has all of it."""
        async with staged(harness) as stage:
            stage.need("script", "hold")
            async with stage.opened() as runtime:
                if not runtime.capabilities.stream:
                    pytest.skip("the runtime does not say 'stream'")
                stage.script("growing", Say(("one ",)), Hold(), Say(("two",)))
                async with stage.turn(runtime, "growing") as talk:
                    await talk.until(TextDelta)
                    assert talk.texts == ["one "]
                    await harness.release()
                    await talk.read()
                assert talk.texts == ["one two"]

    async def test_text_before_a_call_is_a_block_of_its_own(self, harness: RuntimeHarness) -> None:
        """What follows the call does not replace it."""
        async with staged(harness) as stage:
            stage.need("script", "act")
            async with stage.opened() as runtime:
                stage.script("look", Say(("Let me look.",)), Act("looking"), Say(("It is there.",)))
                talk = await stage.say(runtime, "look")
            assert talk.texts == ["Let me look.", "It is there."]

    async def test_calls_are_told_of_in_pairs(self, harness: RuntimeHarness) -> None:
        """Each begins and ends once, under an id of its own, also where several run at once."""
        async with staged(harness) as stage:
            stage.need("script", "act")
            async with stage.opened() as runtime:
                acts = [Act("left"), Act("right")]
                stage.script("both hands", *acts, Act("left"), Say(("Done.",)))
                talk = await stage.say(runtime, "both hands")
            started, finished = talk.of(ToolStarted), talk.of(ToolFinished)
            assert len(started) == len(finished) == 3
            assert {one.call_id for one in started} == {one.call_id for one in finished}
            assert not [one for one in finished if one.failed]

    async def test_thinking_is_no_part_of_the_answer(self, harness: RuntimeHarness) -> None:
        """It is an event of its own."""
        async with staged(harness) as stage:
            stage.need("script", "think")
            async with stage.opened() as runtime:
                stage.script("deep", Think("Six by nine."), Say(("42.",)))
                talk = await stage.say(runtime, "deep")
            assert talk.texts == ["42."]
            assert "".join(one.text for one in talk.of(Thinking)) == "Six by nine."

    async def test_usage_is_that_of_the_whole_turn(self, harness: RuntimeHarness) -> None:
        """D14: it is told before the end."""
        async with staged(harness) as stage:
            stage.need("script", "act", "count")
            async with stage.opened() as runtime:
                steps = (Count(11, 7), Act("counting"), Count(5, 3), Say(("Two.",)))
                stage.script("how much", *steps)
                talk = await stage.say(runtime, "how much")
            [usage] = talk.grammar.usage.values()
            assert (usage.requests, usage.input_tokens, usage.output_tokens) == (2, 16, 10)

    async def test_turns_at_once_do_not_mix(self, harness: RuntimeHarness) -> None:
        """Invariants 11 and 16: none waits for another, and each has its own words and history."""
        async with staged(harness) as stage:
            stage.need("script", "hold", "busy")
            talks: list[Talk] = []

            async def say(name: str) -> None:
                talks.append(await stage.say(runtime, f"this is {name}"))

            async with stage.opened() as runtime:
                async with anyio.create_task_group() as tasks:
                    for name in _names(self.at_once):
                        stage.script(name, Say((f"{name} ",)), Hold(), Say((name,)))
                        tasks.start_soon(say, name)
                    await stage.until_busy(self.at_once)
                    await harness.release()
                for name in _names(self.at_once):
                    [talk] = [one for one in talks if name in one.request.inputs[0].text]
                    assert talk.texts == [f"{name} {name}"]
                    await _saw_itself_alone(stage, name)

    def test_any_conversation_keeps_the_grammar(
        self, harness: RuntimeHarness, anyio_backend: str
    ) -> None:
        """D1: whatever is said, called, left in the middle or failed, in any order."""
        if anyio_backend not in harness.component.backends:
            pytest.skip(f"runs on {' and '.join(harness.component.backends)} only")
        run_machine(harness, anyio_backend, conversations=self.conversations)


def _names(count: int) -> list[str]:
    return [f"speaker-{number:02}" for number in range(count)]


async def _saw_itself_alone(stage: Stage, name: str) -> None:
    if stage.can("asked"):
        for lines in await stage.asked(name):
            assert of_role(lines, "user") == [f"this is {name}"]
            assert not [one for one in lines if "speaker" in one.text and name not in one.text]
