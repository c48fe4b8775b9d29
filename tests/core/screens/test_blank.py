"""Answers in which there is nothing to see, in part or as a whole."""

import pytest

from core.screens.bots import PERSON, bot_of
from core.screens.showing import SCREENS, ledger_after, running, states, streaming
from dragoman import Finished, ToolFinished, ToolStarted
from dragoman.manifest.model import Profile

pytestmark = pytest.mark.anyio

NOTHING = "*(no answer)*"
BLANK = ("50006", "no_text", "message text is empty")
RUNS = {
    "begin": (["", "\n", " ", "Hello"], "Hello"),
    "whole": (["", " \n"], NOTHING),
    "tools": (None, NOTHING),
}


def script_of(clock, deltas, every):
    async def tools(request, host):
        yield ToolStarted("1", "search")
        await clock.sleep(every)
        yield ToolFinished("1", "search")
        yield Finished()

    return tools if deltas is None else streaming(clock, deltas, every=every)


@pytest.mark.parametrize("name", SCREENS)
@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("every", [0.1, 4])
async def test_fc_emp_01_blank_texts_are_never_sent_and_the_next_message_is_answered(
    name, run, every
):
    """FC-EMP-01: nothing but the answer or a notice stays, however slowly it came."""
    screen = SCREENS[name]()
    deltas, seen = RUNS[run]
    async with running(screen, script_of(screen.clock, deltas, every)) as stage:
        for count in (1, 2):
            await screen.say("go")
            ledger = await ledger_after(stage, 30)
            assert screen.seen() == [seen] * count
            assert states(ledger) == {"delivered"}
        assert screen.refused(*BLANK) == []
        assert all(call.text.strip() for call in screen.log)
        assert await stage.states("agent_runs") == ["succeeded"] * 2


@pytest.mark.parametrize("name", SCREENS)
@pytest.mark.parametrize("run", ["whole", "tools"])
async def test_fc_emp_01_an_operator_may_have_nothing_shown_instead_of_the_notice(name, run):
    screen = SCREENS[name]()
    quiet = Profile(runtime="scripted", silences=("",), verbosity="final")
    script = script_of(screen.clock, RUNS[run][0], 4)
    async with running(screen, script, profiles={"default": quiet}) as stage:
        for _ in range(2):
            await screen.say("go")
            await ledger_after(stage, 30)
        assert screen.seen() == []
        assert screen.log == []
        assert await stage.states("inbound_events") == ["answered"] * 2


@pytest.mark.parametrize("run", RUNS)
async def test_fc_emp_01_telegram_is_sent_no_blank_text(fake, run):
    deltas, seen = RUNS[run]

    class AtOnce:
        async def sleep(self, seconds):
            pass

    async with bot_of(fake, script_of(AtOnce(), deltas, 0)) as stage:
        for count in (1, 2):
            fake.say(PERSON, PERSON, "go")
            await fake.reached(lambda: len(fake.said_by_bot(PERSON)) == count)  # noqa: B023
            await stage.until_final()
    assert [text.strip("*") for text in fake.said_by_bot(PERSON)] == [seen.strip("*")] * 2
    assert all(call.ok for call in fake.calls_of("sendMessage", "editMessageText"))
