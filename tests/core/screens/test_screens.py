"""The screens themselves: what they refuse, and what they show."""

from contextlib import nullcontext

import pytest

from core.screens.discord import DiscordLike
from core.screens.screen import Wire
from core.screens.slack import SlackDialect, SlackLike, check
from core.screens.telegram import TelegramLike
from dragoman import Address, Expired, Gone, Outbound, Place, RateLimited, Refused
from dragoman.testing import VirtualClock

pytestmark = pytest.mark.anyio

DM = Address("stub", "1")
GROUP = Address("stub", "1", place=Place.GROUP)


@pytest.mark.parametrize(
    ("screen", "size", "blank", "long"),
    [
        (DiscordLike, 2000, "50006", "50035 content"),
        (TelegramLike, 4096, "message text is empty", "message is too long"),
        (SlackLike, 40_000, "no_text", "msg_too_long"),
    ],
)
async def test_blank_and_overlong_texts_are_refused(screen, size, blank, long):
    screen = screen()
    with pytest.raises(Refused):
        await screen.send(DM, Outbound("a", " \n"))
    with pytest.raises(Refused):
        await screen.send(DM, Outbound("b", "x" * (size + 1)))
    await screen.send(DM, Outbound("c", "x" * size))
    assert [call.code for call in screen.log] == [blank, long, ""]
    assert screen.seen() == ["x" * size]


@pytest.mark.parametrize("screen", [DiscordLike, TelegramLike, SlackLike])
async def test_a_message_that_is_not_there_cannot_be_edited(screen):
    screen = screen()
    receipt = await screen.send(DM, Outbound("a", "one"))
    screen.delete(receipt.native_id)
    with pytest.raises(Gone) as gone:
        await screen.edit(DM, receipt.native_id, Outbound("a", "two"))
    assert gone.value.what == "message"
    assert screen.seen() == []


@pytest.mark.parametrize("screen", [DiscordLike, TelegramLike])
async def test_a_message_that_is_not_there_cannot_be_replied_to(screen):
    screen = screen(questions={"7"})
    await screen.send(DM, Outbound("a", "one", reply_to="7"))
    screen.delete("7")
    with pytest.raises(Gone) as gone:
        await screen.send(DM, Outbound("b", "two", reply_to="7"))
    assert gone.value.what == "message"


@pytest.mark.parametrize(
    ("screen", "address", "calls", "waits"),
    [(DiscordLike, DM, 5, 4.5), (TelegramLike, GROUP, 20, 200), (TelegramLike, DM, 99, 0)],
)
async def test_a_flood_says_how_long_to_wait(screen, address, calls, waits):
    clock = VirtualClock()
    screen = screen(clock=clock)
    for number in range(calls):
        await screen.send(address, Outbound(str(number), "x"))
    await clock.advance(0.5)
    if waits:
        with pytest.raises(RateLimited) as flood:
            await screen.send(address, Outbound("more", "x"))
        assert (flood.value.retry_after, flood.value.scope) == (waits, "channel")
        await clock.advance(waits)
    await screen.send(address, Outbound("more", "x"))


def section(size):
    return {"type": "section", "text": {"type": "mrkdwn", "text": "x" * size}}


def markdown(size):
    return {"type": "markdown", "text": "x" * size}


@pytest.mark.parametrize(
    ("method", "payload", "code"),
    [
        ("edit", {"text": "x" * 4000}, ""),
        ("edit", {"text": "x" * 4001}, "msg_too_long"),
        ("send", {"blocks": [section(3000)]}, ""),
        ("send", {"blocks": [section(3001)]}, "invalid_blocks"),
        ("send", {"blocks": [section(1)] * 51}, "invalid_blocks"),
        ("send", {"blocks": [section(3000)] * 5}, "msg_blocks_too_long"),
        ("send", {"blocks": [markdown(3400)] * 4}, "msg_blocks_too_long"),
        ("send", {"blocks": [markdown(12_000), section(1200)]}, ""),
        ("send", {"blocks": [markdown(12_000), section(1201)]}, "msg_blocks_too_long"),
        ("send", {"blocks": [markdown(0)]}, "no_text"),
    ],
)
def test_slack_holds_all_its_limits(method, payload, code):
    with pytest.raises(Wire, match=code) if code else nullcontext():
        check(method, payload)


@pytest.mark.parametrize(
    "text",
    ["a < b & c > d", "<!channel> <@U1>", "[a](https://example.org/a_(b)) **c**", "`**x** <@U1>`"],
)
@pytest.mark.parametrize("native", [True, False])
def test_what_people_see_of_a_text_reads_the_same_once_more(text, native):
    dialect = SlackDialect(native)
    assert dialect.normal(dialect.normal(text)) == dialect.normal(text)


async def test_a_stream_takes_what_follows_and_ends_with_time():
    clock = VirtualClock()
    screen = SlackLike(clock=clock, streams=True, closes=5)
    one = await screen.send(DM, Outbound("a", "one", final=False))
    await screen.edit(DM, one.native_id, Outbound("a", "one two", final=False, shown="one"))
    assert (screen.seen(), screen.appended) == (["one two"], [" two"])
    await clock.advance(5)
    late = Outbound("a", "one two three", shown="one two")
    with pytest.raises(Expired):
        await screen.edit(DM, one.native_id, late)
    await screen.edit(DM, one.native_id, Outbound("a", "one two three", ordinary=True))
    assert screen.seen() == ["one two three"]
