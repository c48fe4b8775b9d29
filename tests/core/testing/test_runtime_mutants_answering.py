"""Every rule about answers, memory and flags bites: a runtime that breaks it fails there alone."""

import itertools
import json
import time

import anyio
import attrs
import pytest

from dragoman import (
    EncodedInput,
    FailureKind,
    Finished,
    StaleLease,
    TextBlock,
    TextDelta,
    Thinking,
    ToolFinished,
    ToolStarted,
    Usage,
)
from dragoman.testing.runtime_suite import Line
from peers.memory_model import ModelError
from peers.memory_runtime import SPACE, MemoryRun, MemoryRuntime
from runtime_mutants import BROKEN, CUTS, EARLIER, FLAG, failures_of
from suite_mutants import Mutants, names_of

pytestmark = pytest.mark.anyio
MUTANTS = Mutants()
TAKEN_OUT = "test_what_is_taken_out_of_a_history_is_unknown"


@MUTANTS.fails("test_a_turn_ends_once")
class EndsInSilence(MemoryRun):
    def close(self, end):
        if self.said == "hello":
            self.feed.close()
        else:
            super().close(end)


@MUTANTS.fails("test_a_turn_ends_once")
class GoesOnAfterItsEnd(MemoryRun):
    def close(self, end):
        if self.said == "hello":
            self.put(end)
        super().close(end)


@MUTANTS.fails("test_what_the_backend_says_is_the_answer")
class DropsBlanks(MemoryRun):
    def put(self, event):
        if self.said == "plain" and isinstance(event, TextBlock):
            event = TextBlock(event.block, " ".join(event.text.split()))
        super().put(event)


@MUTANTS.fails("test_a_part_is_shown_while_the_rest_is_to_come")
class ShowsItAtTheEnd(MemoryRun):
    def put(self, event):
        if not (self.said == "growing" and isinstance(event, TextDelta)):
            super().put(event)


@MUTANTS.fails("test_text_before_a_call_is_a_block_of_its_own")
class OneBlockForAll(MemoryRun):
    @property
    def block(self):
        return "1" if self.said == "look" else super().block


@MUTANTS.fails("test_text_before_a_call_is_a_block_of_its_own")
class DeltasBehindTheBlock(MemoryRun):
    def put(self, event):
        super().put(event)
        if self.said == "look" and isinstance(event, TextBlock):
            super().put(TextDelta(event.block, event.text))


@MUTANTS.fails("test_calls_are_told_of_in_pairs")
class TellsOfNoEnd(MemoryRun):
    def put(self, event):
        if not (self.said == "both hands" and isinstance(event, ToolFinished)):
            super().put(event)


@MUTANTS.fails("test_calls_are_told_of_in_pairs")
class OneIdForAll(MemoryRun):
    def put(self, event):
        if self.said == "both hands" and isinstance(event, ToolStarted | ToolFinished):
            event = attrs.evolve(event, call_id="1")
        super().put(event)


@MUTANTS.fails("test_calls_are_told_of_in_pairs")
class AllHasFailed(MemoryRun):
    def put(self, event):
        if self.said == "both hands" and isinstance(event, ToolFinished):
            event = attrs.evolve(event, failed=True)
        super().put(event)


@MUTANTS.fails("test_thinking_is_no_part_of_the_answer")
class ThinksAloud(MemoryRun):
    def put(self, event):
        if isinstance(event, Thinking):
            event = TextBlock("thoughts", event.text)
        super().put(event)


@MUTANTS.fails("test_usage_is_that_of_the_whole_turn")
class CountsTheLastOnly(MemoryRun):
    async def answer(self, lines):
        self.usage = Usage()
        return await super().answer(lines)


@MUTANTS.fails("test_usage_is_that_of_the_whole_turn")
class CountsBehindTheEnd(MemoryRun):
    def put(self, event):
        if self.said == "how much" and isinstance(event, Finished):
            self.feed.waiting.pop()
            super().put(event)
            event = self.usage
        super().put(event)


@MUTANTS.fails("test_turns_at_once_do_not_mix")
class OneAfterTheOther(MemoryRun):
    async def work(self):
        async with self.runtime.__dict__.setdefault("lock", anyio.Lock()):
            return await super().work()


@MUTANTS.fails("test_turns_at_once_do_not_mix", "test_sessions_know_nothing_of_each_other")
class RemembersForAll(MemoryRun):
    async def history(self):
        known = self.runtime.__dict__.setdefault("known", [])
        before = list(known)
        known.append(Line("assistant", self.said))
        apart = self.said.startswith("this is") or self.said == "something else"
        return [*(before if apart else []), *await super().history()]


class Numbered(MemoryRuntime):
    numbers = itertools.count()

    def number(self, message):
        return next(self.numbers)

    def encode_input(self, message):
        encoded = super().encode_input(message)
        return EncodedInput(encoded.namespace, encoded.item + " " * (self.number(message) % 7))


@MUTANTS.fails("test_every_message_can_be_kept", "test_a_message_is_always_the_same_item")
class EachTimeAnother(Numbered):
    pass


@MUTANTS.fails("test_a_message_is_always_the_same_item")
class EachObjectAnother(Numbered):
    def number(self, message):
        return self.__dict__.setdefault("mine", next(self.numbers))


@MUTANTS.fails(
    "test_every_message_can_be_kept",
    "test_half_a_character_harms_nobody",
)
class KeepsHalves(MemoryRuntime):
    def encode_input(self, message):
        item = json.dumps({"role": "user", "text": message.words}, ensure_ascii=False)
        return EncodedInput(SPACE, item)


@MUTANTS.fails("test_every_message_can_be_kept")
class RefusesFiles(MemoryRuntime):
    def encode_input(self, message):
        if message.attachments and message.quote is None:
            raise ValueError("no")
        return super().encode_input(message)


@MUTANTS.fails("test_keeping_a_message_is_quick")
class EncodesSlowly(MemoryRuntime):
    def encode_input(self, message):
        end = time.thread_time() + 0.06 * (len(message.text) > 1000)
        while time.thread_time() < end:
            pass
        return super().encode_input(message)


@MUTANTS.fails("test_a_message_reaches_the_backend_once")
class SaysItTwice(MemoryRun):
    async def history(self):
        lines = await super().history()
        return [*lines, lines[-1]] if self.said == "just once" else lines


@MUTANTS.fails("test_all_of_a_message_reaches_the_backend")
class GivesTheTextOnly(MemoryRuntime):
    def encode_input(self, message):
        return super().encode_input(
            attrs.evolve(message, attachments=(), quote=None, notes=(), forwarded="")
        )


@MUTANTS.fails("test_messages_of_one_turn_keep_their_order")
class GivesTheNewestOnly(MemoryRun):
    async def history(self):
        lines = await super().history()
        return lines[-1:] if self.said == "the third" else lines


@MUTANTS.fails("test_half_a_character_harms_nobody")
class ChokesOnHalves(MemoryRun):
    async def work(self):
        if "\ud83d" in self.said:
            raise ModelError(FailureKind.INTERNAL, "what is this")
        return await super().work()


@MUTANTS.fails(
    f"{EARLIER}[False]",
    f"{EARLIER}[True]",
    f"{BROKEN}[left]",
    f"{BROKEN}[failed]",
    "test_a_call_and_its_result_reach_the_next_turn",
    "test_what_was_taken_in_is_remembered_once",
    "test_a_turn_that_went_on_is_remembered",
    TAKEN_OUT,
    *CUTS,
)
class ForgetsEverything(MemoryRun):
    async def history(self):
        lines = await super().history()
        return lines[-len(self.request.inputs) :]


@MUTANTS.fails(TAKEN_OUT)
class RemembersWhatIsTakenOut(MemoryRun):
    async def history(self):
        lines = await super().history()
        known = self.runtime.__dict__.setdefault("known", {}).setdefault(self.host.session.id, [])
        known[:] = lines if lines[: len(known)] == known else [*known, lines[-1]]
        return list(known)


@MUTANTS.fails(f"{EARLIER}[True]")
class RemembersInItself(MemoryRun):
    async def keep(self, *lines):
        self.runtime.__dict__.setdefault("known", set()).update(one.text for one in lines)
        await super().keep(*lines)

    async def history(self):
        known = self.runtime.__dict__.setdefault("known", set())
        return [one for one in await super().history() if one.role == "user" or one.text in known]


@MUTANTS.fails(
    "test_a_call_and_its_result_reach_the_next_turn", "test_a_turn_that_went_on_is_remembered"
)
class ForgetsResults(MemoryRun):
    async def history(self):
        return [line for line in await super().history() if line.role != "tool"]


@MUTANTS.fails("test_another_attempt_begins_with_the_message")
class RemembersTheLostAttempt(MemoryRun):
    async def history(self):
        lost = self.request.attempt > 1 and self.said == "try again"
        return [*await super().history(), *([Line("assistant", "I begin")] if lost else [])]


@MUTANTS.fails(f"{BROKEN}[left]", f"{BROKEN}[failed]")
class ForgetsWhatWasShown(MemoryRun):
    async def keep_shown(self):
        pass


@MUTANTS.fails("test_what_is_fenced_keeps_nothing_without_a_lease")
class HasAStoreOfItsOwn(MemoryRun):
    async def keep(self, *lines):
        try:
            await super().keep(*lines)
        except StaleLease:
            self.runtime.__dict__.setdefault("own", []).extend(lines)
            raise

    async def history(self):
        return [*self.runtime.__dict__.get("own", ()), *await super().history()]


def hiding(flag):
    """A runtime that does what it does not say."""
    can = attrs.evolve(MemoryRuntime.capabilities, **{flag: False})
    return type(f"Hides_{flag}", (MemoryRuntime,), {"capabilities": can})


for flag in ("journal", "steer", "stream"):
    MUTANTS.fails(f"{FLAG}[{flag}]")(hiding(flag))


@MUTANTS.fails(f"{FLAG}[stream]")
class DoesNotStream(MemoryRun):
    def put(self, event):
        if not (self.said == "one two three" and isinstance(event, TextDelta)):
            super().put(event)


@MUTANTS.fails(f"{FLAG}[steer]")
class CannotBeSteered(MemoryRun):
    async def steer(self):
        return [] if self.said == "walk" else await super().steer()


@MUTANTS.fails(f"{FLAG}[journal]")
class KeepsNoJournal(MemoryRun):
    async def call(self, call_id, what):
        return await (self.act(what) if what == "writing" else super().call(call_id, what))


@pytest.mark.parametrize(("mutant", "expected"), MUTANTS.known, ids=names_of(MUTANTS))
async def test_a_wrong_runtime_fails_at_its_rule(mutant, expected, monkeypatch):
    assert await failures_of(mutant, monkeypatch) == expected
