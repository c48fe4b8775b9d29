"""Every rule about what comes in bites: an adapter that breaks it fails there alone."""

import itertools
from datetime import UTC, datetime

import anyio
import attrs
import pytest

from dragoman import Kind
from peers.memory_platform import MemoryPlatform
from peers.memory_service import ServiceError
from platform_mutants import changed, failures_of
from suite_mutants import Mutants, names_of

pytestmark = pytest.mark.anyio
MUTANTS = Mutants()


@MUTANTS.fails("test_what_was_not_stored_comes_again_under_the_same_id")
class NewIdEachTime(MemoryPlatform):
    numbers = itertools.count()

    def read(self, event):
        found = super().read(event)
        return changed(found, native_id=f"{found and found.native_id}.{next(self.numbers)}")


@MUTANTS.fails("test_what_was_not_stored_comes_again_under_the_same_id")
class ConfirmsWhatFailed(MemoryPlatform):
    async def take(self, event, deliver):
        try:
            await super().take(event, deliver)
        except Exception:
            await self.service.confirm(event["number"] + 1)
            raise


@MUTANTS.fails("test_what_was_being_stored_in_a_crash_comes_again")
class ConfirmsAtTheEnd(MemoryPlatform):
    async def take(self, event, deliver):
        try:
            await super().take(event, deliver)
        except anyio.get_cancelled_exc_class():
            self.service.confirmed = event["number"] + 1
            raise


@MUTANTS.fails(
    "test_what_was_not_stored_comes_again_under_the_same_id",
    "test_what_was_being_stored_in_a_crash_comes_again",
)
class ConfirmsFirst(MemoryPlatform):
    async def take(self, event, deliver):
        await self.service.confirm(event["number"] + 1)
        await super().take(event, deliver)


@MUTANTS.fails("test_what_was_stored_is_confirmed")
class NeverConfirms(MemoryPlatform):
    async def run(self, deliver):
        after = 0
        while True:
            try:
                events = await self.service.listen(after)
            except ServiceError as error:
                raise self.failure(error) from None
            for event in events:
                if (inbound := self.read(event)) is not None:
                    await deliver(inbound)
                after += 1


@MUTANTS.fails("test_events_keep_their_order_inside_a_lane")
class AllAtOnce(MemoryPlatform):
    async def take(self, event, deliver):
        async def late() -> None:
            if event.get("text") == "number 0":
                await self.host.clock.sleep(0.02)
            await MemoryPlatform.take(self, event, deliver)

        if event.get("text", "").startswith("number"):
            self.host.task_group.start_soon(late)
            self.service.confirmed = event["number"] + 1
        else:
            await super().take(event, deliver)


@MUTANTS.fails("test_one_event_for_each_thing_said")
class HearsWordsOnce(MemoryPlatform):
    async def take(self, event, deliver):
        if (event["kind"], event.get("text")) == ("said", self.__dict__.get("last")):
            await self.service.confirm(event["number"] + 1)
        else:
            await super().take(event, deliver)
            self.__dict__["last"] = event.get("text")


@MUTANTS.fails("test_a_direct_message_is_well_formed")
class OldTimes(MemoryPlatform):
    def read(self, event):
        return changed(super().read(event), sent_at=datetime(2000, 1, 1, tzinfo=UTC))


@MUTANTS.fails("test_only_what_calls_the_account_is_addressed_in_a_room")
class AllIsAddressed(MemoryPlatform):
    def read(self, event):
        return changed(super().read(event), addressed=True)


@MUTANTS.fails("test_a_reply_to_the_account_is_addressed")
class QuotesNobody(MemoryPlatform):
    def read(self, event):
        return changed(super().read(event), quote=None)


@MUTANTS.fails("test_another_bot_is_marked")
class BotsArePeople(MemoryPlatform):
    def read(self, event):
        found = super().read(event)
        return found and attrs.evolve(found, sender=attrs.evolve(found.sender, bot=False))


@MUTANTS.fails("test_what_the_account_says_is_not_heard_as_of_another")
class HearsItself(MemoryPlatform):
    def read(self, event):
        return super().read(event | {"author": "?"} if "author" in event else event)


@MUTANTS.fails("test_a_thread_is_part_of_the_address")
class HearsNoThread(MemoryPlatform):
    def address_of(self, room):
        return attrs.evolve(super().address_of(room), thread="")


@MUTANTS.fails("test_an_edit_names_the_message_that_it_changes")
class EditsAreNew(MemoryPlatform):
    def read(self, event):
        found = super().read(event)
        return changed(found, message_id="0") if found and found.kind is Kind.EDIT else found


@MUTANTS.fails("test_a_deletion_names_the_message_that_is_gone")
class DeletionsAreMissed(MemoryPlatform):
    def read(self, event):
        return None if event["kind"] == "removed" else super().read(event)


@MUTANTS.fails("test_a_reaction_names_message_and_emoji")
class NamesEmoji(MemoryPlatform):
    def read(self, event):
        return super().read(event | {"data": "thumbsup"} if event["kind"] == "reacted" else event)


@MUTANTS.fails(
    "test_a_press_tells_the_button_and_its_message",
    "test_a_flag_is_said_exactly_where_there_is_behaviour[answers]",
)
class TellsLabels(MemoryPlatform):
    def read(self, event):
        return super().read(event | {"data": event["label"]} if "label" in event else event)


@MUTANTS.fails("test_a_file_is_told_of_without_being_fetched")
class SizesAreUnknown(MemoryPlatform):
    def read(self, event):
        found = super().read(event)
        files = tuple(attrs.evolve(one, size=None) for one in found.attachments) if found else ()
        return changed(found, attachments=files)


@MUTANTS.fails("test_what_cannot_be_read_is_passed_over")
class StumblesOverJunk(MemoryPlatform):
    def read(self, event):
        return super().read(event) if event["room"] else None


@pytest.mark.parametrize(("mutant", "expected"), MUTANTS.known, ids=names_of(MUTANTS))
async def test_a_wrong_adapter_fails_at_its_rule(mutant, expected, monkeypatch):
    assert await failures_of(mutant, monkeypatch) == expected
