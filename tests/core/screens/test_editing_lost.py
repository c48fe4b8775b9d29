"""Answers that grow in something that ends or is taken away meanwhile."""

import attrs
import pytest

from core.screens.showing import (
    SCREENS,
    answered,
    ledger_after,
    running,
    states,
    streaming,
    words,
)
from core.screens.slack import SlackLike
from dragoman import Finished, Place, TextDelta, ToolFinished, ToolStarted

pytestmark = pytest.mark.anyio

TEN = [words(12, start=number * 12) for number in range(10)]


@pytest.mark.parametrize("closes", [0, 60, 119.5, 300, 490])
async def test_fc_edt_05_a_stream_that_slack_closes_costs_no_text(closes):
    """FC-EDT-05: two minutes of text, six of silence in a tool, and 3000 characters more."""
    screen = SlackLike(streams=True, closes=closes)
    screen.capabilities = attrs.evolve(screen.capabilities, edit_interval=6.0)
    first = [words(2, start=number * 2) for number in range(60)]
    rest = [words(10, start=1000 + number * 10) for number in range(30)]

    async def script(request, host):
        for delta in first:
            yield TextDelta("1", delta)
            await screen.clock.sleep(2)
        yield ToolStarted("1", "search")
        await screen.clock.sleep(360)
        yield ToolFinished("1", "search")
        for delta in rest:
            yield TextDelta("1", delta)
            await screen.clock.sleep(0.5)
        yield Finished()

    ledger = await answered(screen, script, 600, thread="1700000000.000100")
    seen = screen.seen(thread="1700000000.000100")
    assert " ".join(seen).split() == "".join([*first, *rest]).split()
    assert states(ledger) == {"delivered"}
    late = screen.refused("message_not_in_streaming_state")
    assert screen.refused() == late
    assert late or closes > 120


@pytest.mark.parametrize("closes", [0.5, 3, 7.2, 13.2, 14.9, 15.2, 15.7, 20])
async def test_fc_edt_05_a_stream_may_close_at_any_moment(closes):
    """FC-EDT-05: at the last edit too."""
    screen = SlackLike(streams=True, closes=closes)
    deltas = [words(10, start=number * 10) for number in range(30)]
    ledger = await answered(screen, streaming(screen.clock, deltas, every=0.5), 60)
    assert screen.seen() == ["".join(deltas).strip()]
    assert screen.calls.count("send") == 1
    assert states(ledger) == {"delivered"}
    assert screen.appended or closes < 1.5


@pytest.mark.parametrize("name", ["discord", "telegram"])
@pytest.mark.parametrize("live", [False, True])
async def test_fc_edt_06_an_answer_comes_though_its_question_was_deleted(name, live):
    """FC-EDT-06: without the reference, once."""
    screen = SCREENS[name](questions={"question"})

    async def script(request, host):
        screen.delete("question")
        yield TextDelta("1", "the answer " * 10)
        if live:
            await screen.clock.sleep(5)
        yield TextDelta("1", "is whole")
        yield Finished()

    async with running(screen, script) as stage:
        await screen.say("go", place=Place.GROUP, message_id="question")
        ledger = await ledger_after(stage, 60)
        assert screen.seen() == [f"{'the answer ' * 10}is whole"]
        assert states(ledger) == {"delivered"}
        assert ledger[0][1] <= 2
        assert len(screen.refused()) <= 2


LOSSES = [("discord", "gone"), ("slack", "gone"), ("slack", "frozen"), ("telegram", "gone")]


def losing(screen, how, begun=4):
    """Return a script whose first message is lost when ``begun`` of ten deltas are there."""

    async def script(request, host):
        for number, delta in enumerate(TEN):
            if number == begun and how == "frozen":
                screen.frozen.add(screen.messages[0].native_id)
            elif number == begun:
                screen.delete(screen.messages[0].native_id)
            yield TextDelta("1", delta)
            if number < 9:  # the last one is first shown by the answer itself
                await screen.clock.sleep(3)
        yield Finished()

    return script


@pytest.mark.parametrize(("name", "how"), LOSSES)
@pytest.mark.parametrize("begun", [1, 9])
async def test_fc_edt_06_a_message_that_was_lost_is_replaced_by_one(name, how, begun):
    """FC-EDT-06: with the whole answer, and never a third time."""
    screen = SCREENS[name]()
    async with running(screen, losing(screen, how, begun)) as stage:
        await screen.say("go")
        ledger = await ledger_after(stage, 60)
        whole = "".join(TEN).strip()
        assert [text for text in screen.seen() if text == whole] == [whole]
        assert len(screen.seen()) == 1 + (how == "frozen")
        assert states(ledger) == {"delivered"}
        assert ledger[0][1] <= 2


@pytest.mark.parametrize(("name", "how"), LOSSES)
async def test_fc_edt_06_the_message_that_replaces_a_lost_one_goes_on_growing(name, how):
    screen = SCREENS[name]()
    async with running(screen, losing(screen, how)) as stage:
        await screen.say("go")
        await screen.clock.advance(26)
        await stage.quiet()
        assert await stage.states("agent_runs") == ["running"]
        last = screen.messages[-1]
        assert last.text.startswith("word00000 ")
        assert "word00096" in last.text
        await ledger_after(stage, 30)
        assert screen.seen()[-1] == "".join(TEN).strip()
        assert screen.calls.count("send") == 2
