"""Platforms that ask to wait, and people who want no more messages."""

import attrs
import pytest

from core.screens.showing import SCREENS, ledger_after, plugin_of, running, saying, states
from dragoman import Finished, Place, RateLimited, TextBlock, TextDelta, ToolFinished, ToolStarted
from dragoman.testing import StubPlugin, VirtualClock
from lives import wreck
from stage import eventually, gateway, table

pytestmark = pytest.mark.anyio

ANSWER = "This is the answer to everything that was asked, and it is long enough to be shown. " * 2


@pytest.mark.parametrize("name", SCREENS)
async def test_fc_rat_01_a_flood_at_the_last_edit_sends_no_second_answer(name):
    """FC-RAT-01: the answer stands there but for a line below it, which goes when it may."""
    screen = SCREENS[name]()

    async def script(request, host):
        yield TextDelta("1", ANSWER)
        yield ToolStarted("1", "search")
        await screen.clock.sleep(10)
        screen.faults.append(RateLimited(35.0))
        yield ToolFinished("1", "search")
        yield Finished()

    async with running(screen, script) as stage:
        await screen.say("go")
        await screen.clock.advance(44)
        await stage.quiet()
        assert screen.seen() == [f"{ANSWER.strip()}\n\n*(`search` …)*"]
        ledger = await ledger_after(stage, 2)
        assert screen.seen() == [ANSWER.strip()]
        assert screen.calls.count("send") == 1
        assert states(ledger) == {"delivered"}
        assert len([call for call in screen.log if call.at > 10]) == 1


@pytest.mark.parametrize("name", SCREENS)
@pytest.mark.parametrize("seconds", [0.4, 61.5])
async def test_what_a_platform_asks_for_is_obeyed_and_no_more(name, seconds):
    screen = SCREENS[name]()
    screen.faults.append(RateLimited(seconds))
    async with running(screen, saying(ANSWER)) as stage:
        await screen.say("go")
        await ledger_after(stage, 100)
        first, second = screen.log
        assert second.at - first.at == pytest.approx(seconds)
        assert screen.seen() == [ANSWER.strip()]


@pytest.mark.parametrize("name", SCREENS)
async def test_fc_rat_02_a_chat_that_is_closed_silences_no_other(name, tmp_path):
    """FC-RAT-02: 26 conversations of one group come back and want their messages changed."""
    screen = SCREENS[name](bears=None)
    screen.capabilities = attrs.evolve(screen.capabilities, group_rate=None)  # so that it is asked

    async def unfinished(request, host):
        if request.inputs[0].text == "go":
            yield TextDelta("1", ANSWER)
            await screen.clock.sleep(10_000)
        yield TextBlock("1", "here I am")
        yield Finished()

    file = tmp_path / "store.db"
    plugin = plugin_of(screen, unfinished)
    async with gateway(plugin, clock=screen.clock, store=file) as stage:
        for number in range(26):
            await screen.say("go", channel="1", thread=str(number), place=Place.GROUP)
        await screen.clock.advance(10)
        await stage.quiet()
        assert len(screen.messages) == 26
        left = wreck(file, plugin)
    again, clock = left.platform, VirtualClock()
    again.bears, again.clock = None, clock

    async def closed(method, address, message):
        if address.channel == "1" and clock.boot() < 60:
            raise RateLimited(60 - clock.boot())

    again.before = closed
    async with gateway(left.plugin, clock=clock, store=left.store) as stage:
        await again.say("are you there?", channel="2")
        await clock.advance(1.9)

        async def said():
            return again.seen("2")

        await eventually(said, ["here I am"])
        await clock.advance(58)
        early = [call.at for call in again.log if call.address.channel == "1"]
        assert set(early) == {0.0}  # and not again until it may
        assert len(early) <= 3
        ledger = await ledger_after(stage, 240)
        mark = "*(interrupted by a restart)*"
        for number in range(26):
            assert again.seen("1", str(number)) == [f"{ANSWER.strip()}\n\n{mark}"]
        assert states(ledger) == {"delivered"}


PERMANENT = {
    "telegram": ["bot was blocked by the user", "chat not found"],
    "discord": ["50001", "50007", "50013", "50278"],
    "slack": ["channel_not_found", "is_archived", "not_in_channel"],
}
REFUSALS = [(name, code, False) for name, codes in PERMANENT.items() for code in codes]
REFUSALS += [(name, codes[-1], True) for name, codes in PERMANENT.items()]


@pytest.mark.parametrize(("name", "code", "live"), REFUSALS)
async def test_fc_rat_03_who_wants_no_messages_is_not_asked_again(name, code, live):
    """FC-RAT-03: in the middle of an answer or at its end; the next message is answered again."""
    screen = SCREENS[name]()
    begin = ANSWER if live else "Short. "  # so that only the former is shown before it is whole

    async def script(request, host):
        yield TextDelta("1", begin)
        if live:
            await screen.clock.sleep(5)
        if not screen.refuses:
            screen.refuses = lambda *_: code
        yield TextDelta("1", "And more of it.")
        await screen.clock.sleep(5 if live else 0)
        yield Finished()

    async with running(screen, script) as stage:
        await screen.say("go")
        ledger = await ledger_after(stage, 3600)
        assert states(ledger) == {"failed"}
        assert all(attempts <= 1 for _, attempts in ledger)
        assert len(screen.refused()) == 1
        assert (await stage.app.store.read.states())["deliveries"] == {"failed": 1}
        screen.refuses = lambda *_: ""
        await screen.say("I am back")
        ledger = await ledger_after(stage, 60)
        assert [state for state, _ in ledger] == ["failed", "delivered"]
        assert screen.seen()[-1] == f"{begin}And more of it."


LOST = {"telegram": "Unauthorized", "discord": "401", "slack": "account_inactive"}


@pytest.mark.parametrize("name", SCREENS)
async def test_fc_rat_03_refused_credentials_are_a_matter_of_the_platform(name):
    """FC-RAT-03: no answer is given up for them, and other platforms go on."""
    clock = VirtualClock()
    screen = SCREENS[name](clock=clock, refuses=lambda *_: LOST[name])
    plugin = StubPlugin(platforms={"stub": screen})
    tables = [table("platforms", "stub"), table("platforms", "other")]
    async with gateway(plugin, clock=clock, components=tables) as stage:
        for number in range(3):
            await screen.say(str(number), channel=str(number))
        other = plugin.platform("other")
        await other.say("hello")
        await clock.advance(50)
        await stage.quiet()
        assert len(screen.log) == 1
        owed = await stage.rows("SELECT state FROM deliveries WHERE lane LIKE '%stub%'")
        assert not {("failed",), ("abandoned",)} & set(owed)
        assert other.shown() == ["hello"]
        screen.refuses = None
        ledger = await ledger_after(stage, 60)
        assert [screen.seen(str(number)) for number in range(3)] == [["0"], ["1"], ["2"]]
        assert states(ledger) == {"delivered"}
