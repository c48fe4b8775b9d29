"""What a platform hands over, as tests: a part of `dragoman.testing.platform_suite`."""

from __future__ import annotations

import anyio
import pytest

from dragoman.errors import StoreUnavailable
from dragoman.messages import Inbound, Kind
from dragoman.testing.clock import settle
from dragoman.testing.platform_harness import PlatformHarness
from dragoman.testing.platform_stage import LIMIT, Stage, staged


@pytest.mark.anyio
class HearingSuite:
    """What people say reaches core once, in order, well-formed, and is confirmed after that."""

    async def test_what_was_not_stored_comes_again_under_the_same_id(
        self, harness: PlatformHarness
    ) -> None:
        """Invariant 1: ``deliver`` raised, so the service may not believe it received."""
        async with staged(harness) as stage:
            stage.need("replay")
            first = await _lost(stage, "raised")
            async with stage.live():
                await harness.replay(first.message_id)
                again = await stage.inbox.heard("raised")
        assert (again.native_id, again.message_id) == (first.native_id, first.message_id)

    async def test_what_was_being_stored_in_a_crash_comes_again(
        self, harness: PlatformHarness
    ) -> None:
        """Invariant 1: the process ended while ``deliver`` was at work."""
        async with staged(harness) as stage:
            stage.need("replay")

            async def hang(event: Inbound) -> None:
                if event.text == "slow":
                    await anyio.sleep_forever()

            stage.inbox.before = hang
            async with stage.live():
                said = await harness.say(harness.dm, "slow")
                await _entered(stage, "slow")
            stage.inbox.before = None
            async with stage.live():
                await harness.replay(said)
                await stage.inbox.heard("slow")

    async def test_what_was_stored_is_confirmed(self, harness: PlatformHarness) -> None:
        """After a restart it does not come again, not even where the service repeats what is open."""
        async with staged(harness) as stage:
            stage.need("replay")
            async with stage.live():
                said = await harness.say(harness.dm, "one")
                await stage.inbox.heard("one")
                await harness.say(harness.dm, "two")
                await stage.inbox.heard("two")
                with anyio.fail_after(LIMIT):
                    await harness.confirmed(said)
            async with stage.live():
                await harness.replay(said)
                await harness.say(harness.dm, "three")
                await stage.inbox.heard("three")
            entered = [one.text for one in stage.inbox.entered if one.kind is Kind.MESSAGE]
        assert entered.count("one") == 1, f"it was handed over again: {entered}"

    async def test_events_keep_their_order_inside_a_lane(self, harness: PlatformHarness) -> None:
        """They are handed over so, also where the first one takes long to be stored."""
        async with staged(harness) as stage:
            texts = [f"number {n}" for n in range(5)]

            async def slow_at_first(event: Inbound) -> None:
                if event.text == texts[0]:
                    await anyio.sleep(0.05)

            stage.inbox.before = slow_at_first
            async with stage.live():
                for text in texts:
                    await harness.say(harness.dm, text)
                for text in texts:
                    await stage.inbox.heard(text)
            entered = [one.text for one in stage.inbox.entered if one.text in texts]
            assert list(dict.fromkeys(entered)) == texts

    async def test_one_event_for_each_thing_said(self, harness: PlatformHarness) -> None:
        """Things said in the same words are two events, with ids of their own."""
        async with staged(harness) as stage:
            async with stage.live():
                first = await harness.say(harness.dm, "same")
                second = await harness.say(harness.dm, "same")
                await harness.say(harness.dm, "end")
                await stage.inbox.heard("end")
            same = [one for one in stage.inbox.events if one.text == "same"]
            assert [one.message_id for one in same] == [first, second]

    async def test_a_direct_message_is_well_formed(self, harness: PlatformHarness) -> None:
        """Instance, place, person, time and address are as `Inbound` says."""
        async with staged(harness) as stage, stage.live():
            said = await harness.say(harness.dm, "hello")
            event = await stage.inbox.heard("hello")
            assert event.address.lane == harness.dm.lane
            assert (event.address.place, event.message_id) == (harness.dm.place, said)
            assert event.addressed, "a direct message speaks to the account"
            assert event.sender.id
            assert not event.sender.own
            assert not event.sender.bot
            assert abs((event.sent_at - stage.host.clock.now()).total_seconds()) < 3600

    async def test_only_what_calls_the_account_is_addressed_in_a_room(
        self, harness: PlatformHarness
    ) -> None:
        """A mention is marked, and is no part of the text; talk of others is neither."""
        async with staged(harness) as stage:
            stage.need("mention")
            async with stage.live():
                await harness.say(harness.room, "talk")
                await harness.say(harness.room, "to you", mention=True)
                # Where two events tell of one message, either may be the one that says so.
                [called, *_] = await stage.inbox.until(
                    lambda: [one for one in stage.inbox.messages("to you") if one.addressed],
                    "a mention that speaks to the account",
                )
            assert called.address.place is harness.room.place
            assert called.address.channel == harness.room.channel
            talk = stage.inbox.messages("talk")
            assert not any(one.addressed for one in talk), "nobody spoke to the account"

    async def test_a_reply_to_the_account_is_addressed(self, harness: PlatformHarness) -> None:
        """And quotes the account's own words."""
        async with staged(harness) as stage:
            stage.need("reply")
            async with stage.live() as platform:
                receipt = await platform.send(harness.room, stage.out("my words"))
                await harness.say(harness.room, "an answer", reply_to=receipt.native_id)
                event = await stage.inbox.heard("an answer")
            assert event.addressed, "a reply to the account speaks to it"
            assert event.quote is not None
            assert (event.quote.own, event.quote.text) == (True, "my words")

    async def test_another_bot_is_marked(self, harness: PlatformHarness) -> None:
        """Core decides whether bots are heard; who is one has to be known."""
        async with staged(harness) as stage:
            stage.need("bot")
            async with stage.live():
                await harness.say(harness.dm, "beep", bot=True)
                await harness.say(harness.dm, "end")
                await stage.inbox.heard("end")
            heard = [one for one in stage.inbox.events if one.text == "beep"]
            assert all(one.sender.bot for one in heard)

    async def test_what_the_account_says_is_not_heard_as_of_another(
        self, harness: PlatformHarness
    ) -> None:
        """It is not handed over, or marked as its own."""
        async with staged(harness) as stage:
            async with stage.live() as platform:
                await platform.send(harness.room, stage.out("an echo"))
                await harness.say(harness.dm, "end")
                await stage.inbox.heard("end")
            heard = [one for one in stage.inbox.events if one.text == "an echo"]
            assert all(one.sender.own for one in heard)

    async def test_a_thread_is_part_of_the_address(self, harness: PlatformHarness) -> None:
        """What is said in it comes from it."""
        async with staged(harness) as stage:
            stage.need("thread", "mention")
            async with stage.live():
                await harness.say(harness.thread, "in here", mention=True)
                event = await stage.inbox.heard("in here")
            assert event.address.lane == harness.thread.lane

    async def test_an_edit_names_the_message_that_it_changes(
        self, harness: PlatformHarness
    ) -> None:
        """It has an id of its own, and the new text."""
        async with staged(harness) as stage:
            stage.need("edit")
            async with stage.live():
                said = await harness.say(harness.dm, "befor")
                first = await stage.inbox.heard("befor")
                await harness.edit(harness.dm, said, "before")
                event = await stage.inbox.heard("before", Kind.EDIT)
            assert event.message_id == said
            assert event.native_id != first.native_id

    async def test_a_deletion_names_the_message_that_is_gone(
        self, harness: PlatformHarness
    ) -> None:
        """In its channel."""
        async with staged(harness) as stage:
            stage.need("remove", "deletion")
            async with stage.live():
                said = await harness.say(harness.dm, "oops")
                await stage.inbox.heard("oops")
                await harness.remove(harness.dm, said)
                event = await stage.inbox.of(Kind.DELETION)
            assert (event.message_id, event.address.channel) == (said, harness.dm.channel)

    async def test_a_reaction_names_message_and_emoji(self, harness: PlatformHarness) -> None:
        """A person's, to what the account said; the emoji is the character itself."""
        async with staged(harness) as stage:
            stage.need("reaction")
            async with stage.live() as platform:
                receipt = await platform.send(harness.dm, stage.out("well done"))
                await harness.reaction(harness.dm, receipt.native_id, "👍")
                event = await stage.inbox.of(Kind.REACTION)
            assert (event.message_id, event.data) == (receipt.native_id, "👍")

    async def test_a_file_is_told_of_without_being_fetched(self, harness: PlatformHarness) -> None:
        """Name and size are known from the event."""
        async with staged(harness) as stage:
            stage.need("file")
            async with stage.live():
                await harness.say(harness.dm, "look", file=("notes.txt", b"12345"))
                event = await stage.inbox.heard("look")
            assert [(one.name, one.size) for one in event.attachments] == [("notes.txt", 5)]
            assert event.attachments[0].id

    async def test_what_cannot_be_read_is_passed_over(self, harness: PlatformHarness) -> None:
        """One event that is broken or unknown does not hinder those behind it."""
        async with staged(harness) as stage:
            stage.need("junk")
            async with stage.live():
                await harness.junk(harness.dm)
                await harness.say(harness.dm, "after all")
                await stage.inbox.heard("after all")
            assert len(stage.inbox.messages("after all")) == 1


async def _lost(stage: Stage, text: str) -> Inbound:
    """Let a message come that cannot be stored; the process ends soon after."""
    raised = anyio.Event()

    async def down(event: Inbound) -> None:
        if event.text == text:
            raised.set()
            raise StoreUnavailable

    stage.inbox.before = down
    async with stage.live():
        await stage.harness.say(stage.harness.dm, text)
        event = await _entered(stage, text)
        await raised.wait()
        await settle()
    stage.inbox.before = None
    return event


async def _entered(stage: Stage, text: str) -> Inbound:
    found = await stage.inbox.until(
        lambda: [one for one in stage.inbox.entered if one.text == text], f"{text!r} comes"
    )
    return found[0]
