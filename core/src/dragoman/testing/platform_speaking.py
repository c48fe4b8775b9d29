"""What a platform shows, as tests: a part of `dragoman.testing.platform_suite`."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.capabilities import Capabilities
from dragoman.errors import Gone
from dragoman.messages import Button, Kind
from dragoman.testing.platform_harness import PlatformHarness
from dragoman.testing.platform_stage import Stage, staged


@pytest.mark.anyio
class SpeakingSuite:
    """What core asks for is what people see."""

    async def test_what_is_sent_is_shown(self, harness: PlatformHarness) -> None:
        """Once, under the id of the receipt; where the service quotes it, in the words sent."""
        async with staged(harness) as stage, stage.opened() as platform:
            normal = platform.capabilities.dialect.normal
            for address in (harness.dm, harness.room):
                receipt = await platform.send(address, stage.out("hello"))
                shown = [(one.native_id, one.text) for one in await harness.shown(address)]
                assert shown == [(receipt.native_id, "hello")]
                assert receipt.shown is None or normal(receipt.shown) == normal("hello")

    async def test_the_same_words_twice_are_two_messages(self, harness: PlatformHarness) -> None:
        """What tells messages apart is their delivery, not their text."""
        async with staged(harness) as stage, stage.opened() as platform:
            first = await platform.send(harness.dm, stage.out("same"))
            second = await platform.send(harness.dm, stage.out("same"))
            assert first.native_id != second.native_id
            assert await stage.texts(harness.dm) == ["same", "same"]

    async def test_the_same_edit_again_is_success(self, harness: PlatformHarness) -> None:
        """A preview that says the same is no failure, and it is the message that it was."""
        async with staged(harness) as stage, stage.opened() as platform:
            stage.need_flag(platform, "edit")
            receipt = await platform.send(harness.dm, stage.out("first"))
            for _ in range(2):
                again = await platform.edit(harness.dm, receipt.native_id, stage.out("second"))
                assert again.native_id == receipt.native_id
            assert await stage.texts(harness.dm) == ["second"]

    async def test_an_edit_of_what_is_gone_says_so(self, harness: PlatformHarness) -> None:
        """Core then shows the text in a new message."""
        async with staged(harness) as stage:
            stage.need("erase")
            async with stage.opened() as platform:
                stage.need_flag(platform, "edit")
                receipt = await platform.send(harness.dm, stage.out("first"))
                await harness.erase(harness.dm, receipt.native_id)
                with pytest.raises(Gone) as raised:
                    await platform.edit(harness.dm, receipt.native_id, stage.out("second"))
                assert raised.value.what == "message"

    async def test_what_is_gone_can_be_deleted(self, harness: PlatformHarness) -> None:
        """It is so already: success."""
        async with staged(harness) as stage, stage.opened() as platform:
            stage.need_flag(platform, "delete")
            receipt = await platform.send(harness.dm, stage.out("first"))
            for _ in range(2):
                await platform.delete(harness.dm, receipt.native_id)
            assert await stage.texts(harness.dm) == []

    async def test_a_reaction_that_is_so_already_is_success(self, harness: PlatformHarness) -> None:
        """Whether it is set or taken back."""
        async with staged(harness) as stage, stage.opened() as platform:
            stage.need_flag(platform, "reactions")
            said = await harness.say(harness.dm, "news")
            for on in (True, True, False, False):
                await platform.react(harness.dm, said, "👍", on=on)
                assert bool(await harness.reactions(harness.dm, said)) is on

    async def test_an_answer_to_what_is_gone_is_shown_anyway(
        self, harness: PlatformHarness
    ) -> None:
        """Or the platform says that the message is gone, and core sends it without."""
        async with staged(harness) as stage:
            stage.need("remove")
            async with stage.opened() as platform:
                said = await harness.say(harness.room, "question")
                await harness.remove(harness.room, said)
                gone = ""
                try:
                    await platform.send(harness.room, stage.out("answer", reply_to=said))
                except Gone as error:
                    gone = error.what
                shown = await stage.texts(harness.room)
                assert (gone, shown) in [("", ["answer"]), ("message", [])]

    @pytest.mark.parametrize("piece", ["a", "é", "😀", "<", "&", "a_"])
    async def test_the_longest_text_is_taken_and_shown_whole(
        self, harness: PlatformHarness, piece: str
    ) -> None:
        """`Dialect.length` is honest: what it says fits, fits, whatever the text is made of."""
        async with staged(harness) as stage, stage.opened() as platform:
            text = longest(platform.capabilities, piece)
            await platform.send(harness.dm, stage.out(text))
            shown = "".join(await stage.texts(harness.dm))
            assert shown.count(piece) * len(piece) == len(text) > 0

    async def test_plain_is_plain(self, harness: PlatformHarness) -> None:
        """People see every character of it, and no formatting."""
        async with staged(harness) as stage, stage.opened() as platform:
            text = "*a* _b_ `c` [d](https://example.com) <e> & f"
            await platform.send(harness.dm, stage.out(text, plain=True))
            assert await stage.texts(harness.dm) == [text]

    async def test_a_thread_is_part_of_every_call(self, harness: PlatformHarness) -> None:
        """FC-THR-09: each call about a message in a thread goes to the thread."""
        async with staged(harness) as stage:
            stage.need("thread")
            async with stage.opened() as platform:
                await _speak_in_thread(stage, platform)
                assert await stage.texts(harness.room) == []

    async def test_a_press_tells_the_button_and_its_message(self, harness: PlatformHarness) -> None:
        """``data`` is what the button was given."""
        async with staged(harness) as stage:
            stage.need("press")
            async with stage.live() as platform:
                stage.need_flag(platform, "buttons")
                buttons = (Button("Yes", "say:1"), Button("No", "say:2"))
                receipt = await platform.send(harness.dm, stage.out("Sure?", buttons=buttons))
                await harness.press(harness.dm, receipt.native_id, "No")
                event = await stage.inbox.of(Kind.PRESS)
            assert (event.data, event.message_id) == ("say:2", receipt.native_id)
            assert event.sender.id

    async def test_an_edit_without_buttons_takes_them_away(self, harness: PlatformHarness) -> None:
        """The buttons of a call are all that the message has."""
        async with staged(harness) as stage, stage.opened() as platform:
            stage.need_flag(platform, "buttons")
            stage.need_flag(platform, "edit")
            buttons = (Button("Yes", "say:1"),)
            receipt = await platform.send(harness.dm, stage.out("Sure?", buttons=buttons))
            await platform.edit(harness.dm, receipt.native_id, stage.out("Sure."))
            assert [one.buttons for one in await harness.shown(harness.dm)] == [()]


async def _speak_in_thread(stage: Stage, platform: Any) -> None:
    where, can = stage.harness.thread, platform.capabilities
    receipt = await platform.send(where, stage.out("first"))
    assert await stage.texts(where) == ["first"]
    if can.edit:
        await platform.edit(where, receipt.native_id, stage.out("second"))
        assert await stage.texts(where) == ["second"]
    if can.reactions:
        said = await stage.harness.say(where, "news")
        await platform.react(where, said, "👍", on=True)
        assert await stage.harness.reactions(where, said)
    if can.typing:
        await platform.typing(where)
        assert await stage.harness.typings(where)
    if can.delete:
        extra = await platform.send(where, stage.out("extra"))
        await platform.delete(where, extra.native_id)
        assert len(await stage.texts(where)) == 1


def longest(can: Capabilities, piece: str) -> str:
    """Return the longest text of one piece over and over that the dialect says fits."""
    fits, beyond = 0, can.max_text + 1
    while beyond - fits > 1:
        middle = (fits + beyond) // 2
        if can.dialect.length(piece * middle) <= can.max_text:
            fits = middle
        else:
            beyond = middle
    return piece * fits
