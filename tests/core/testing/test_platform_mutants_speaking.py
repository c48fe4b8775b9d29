"""Every rule about what is shown bites: an adapter that breaks it fails there alone."""

import attrs
import pytest

from dragoman import Button, Gone, LengthUnit, PlainDialect, Receipt, Refused
from peers.memory_platform import CAN, MemoryPlatform
from platform_mutants import FAILURE, LONGEST, failures_of
from suite_mutants import Mutants, names_of

pytestmark = pytest.mark.anyio
MUTANTS = Mutants()


@MUTANTS.fails("test_what_is_sent_is_shown")
class QuotesOtherWords(MemoryPlatform):
    def receipt(self, shown, message):
        return Receipt(shown.id, f"{shown.text}!")


@MUTANTS.fails("test_the_same_words_twice_are_two_messages")
class KnowsMessagesByTheirWords(MemoryPlatform):
    async def post(self, address, message, **more):
        for one in self.service.messages.values():
            if (one.text, one.author) == (message.text, "bot") and message.text == "same":
                return one
        return await super().post(address, message, **more)


@MUTANTS.fails("test_the_same_edit_again_is_success")
class RefusesNoChange(MemoryPlatform):
    async def edit(self, address, native_id, message):
        if self.service.messages[native_id].text == message.text:
            raise Refused("not modified")
        return await super().edit(address, native_id, message)


@MUTANTS.fails("test_an_edit_of_what_is_gone_says_so")
class RefusesEdits(MemoryPlatform):
    async def edit(self, address, native_id, message):
        try:
            return await super().edit(address, native_id, message)
        except Gone:
            raise Refused("no such message") from None


@MUTANTS.fails("test_what_is_gone_can_be_deleted")
class DeletesOnce(MemoryPlatform):
    async def delete(self, address, native_id):
        if not self.service.messages[native_id].there:
            raise Gone("message")
        await super().delete(address, native_id)


@MUTANTS.fails("test_a_reaction_that_is_so_already_is_success")
class ReactsOnce(MemoryPlatform):
    async def react(self, address, message_id, emoji, *, on):
        if (emoji in self.service.messages[message_id].reactions) is on:
            raise Refused("already so")
        await super().react(address, message_id, emoji, on=on)


@MUTANTS.fails("test_an_answer_to_what_is_gone_is_shown_anyway")
class RefusesAnswers(MemoryPlatform):
    async def send(self, address, message):
        try:
            return await super().send(address, message)
        except Gone as gone:
            if message.reply_to:
                raise Refused("nothing to reply to") from None
            raise gone from None


@MUTANTS.fails(f"{LONGEST}[😀]")
class CountsCodePoints(MemoryPlatform):
    capabilities = attrs.evolve(CAN, dialect=PlainDialect(LengthUnit.CODE_POINTS))


@MUTANTS.fails(f"{LONGEST}[<]", f"{LONGEST}[&]")
class CutsWhatItEscapes(MemoryPlatform):
    def text_of(self, message):
        text = super().text_of(message)
        return text if len(message.text) < 100 else text[:200]


@MUTANTS.fails("test_plain_is_plain")
class NeverPlain(MemoryPlatform):
    def text_of(self, message):
        return message.text.replace("*", "") if message.plain else super().text_of(message)


@MUTANTS.fails("test_a_thread_is_part_of_every_call")
class ReactsInTheChannel(MemoryPlatform):
    async def react(self, address, message_id, emoji, *, on):
        await super().react(attrs.evolve(address, thread=""), message_id, emoji, on=on)


@MUTANTS.fails("test_a_thread_is_part_of_every_call", f"{FAILURE}[no thread]")
class SpeaksInTheChannel(MemoryPlatform):
    async def send(self, address, message):
        try:
            return await super().send(attrs.evolve(address, thread=""), message)
        except Gone as gone:
            raise Gone("message" if gone.what == "thread" else gone.what) from None


@MUTANTS.fails("test_an_edit_without_buttons_takes_them_away")
class KeepsButtons(MemoryPlatform):
    async def edit(self, address, native_id, message):
        old = [Button(*one) for one in self.service.messages[native_id].buttons]
        return await super().edit(address, native_id, attrs.evolve(message, buttons=tuple(old)))


@pytest.mark.parametrize(("mutant", "expected"), MUTANTS.known, ids=names_of(MUTANTS))
async def test_a_wrong_adapter_fails_at_its_rule(mutant, expected, monkeypatch):
    assert await failures_of(mutant, monkeypatch) == expected
