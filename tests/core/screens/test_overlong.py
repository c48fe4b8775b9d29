"""Answers beyond what one message of a platform takes."""

import pytest

from core.screens.showing import (
    SCREENS,
    answered,
    ledger_after,
    running,
    saying,
    states,
    streaming,
    within,
    words,
)
from core.screens.slack import SlackLike
from dragoman import Finished, TextDelta, ToolFinished, ToolStarted

pytestmark = pytest.mark.anyio

LONG = (
    "invalid_blocks",
    "msg_blocks_too_long",
    "msg_too_long",
    "50035 content",
    "message is too long",
)
PARAGRAPH = words(350).rstrip()
BLOCKS = "\n\n".join(words(340, start=number * 340).rstrip() for number in range(4))


def joined(seen):
    return " ".join(seen).split()


@pytest.mark.parametrize("style", ["text", "section", "markdown"])
@pytest.mark.parametrize(
    ("text", "live"),
    [(PARAGRAPH, False), (BLOCKS, False), (BLOCKS, True)],
    ids=["paragraph", "blocks", "stream"],
)
async def test_fc_ovl_01_slack_takes_every_message_of_a_long_answer(style, text, live):
    """FC-OVL-01: in a thread, and each as long as Slack allows; nothing is missing."""
    screen = SlackLike(style=style)
    pieces = [text[at : at + 150] for at in range(0, len(text), 150)]
    script = streaming(screen.clock, pieces) if live else saying(text)
    ledger = await answered(screen, script, thread="1700000000.000100")
    seen = screen.seen(thread="1700000000.000100")
    assert joined(seen) == text.split()
    assert screen.refused() == []
    assert states(ledger) == {"delivered"}
    assert len(seen) <= len(text) / screen.capabilities.max_text + 2


@pytest.mark.parametrize("style", ["section", "markdown"])
@pytest.mark.parametrize("code", ["invalid_blocks", "msg_blocks_too_long"])
async def test_fc_ovl_01_refused_blocks_are_sent_as_text(style, code):
    """FC-OVL-01: each part once more, and the thread is not silent."""
    screen = SlackLike(style=style)
    screen.refuses = lambda _, __, message: "" if message.plain else code
    ledger = await answered(screen, saying(BLOCKS), thread="1700000000.000100")
    seen = screen.seen(thread="1700000000.000100")
    assert joined(seen) == BLOCKS.split()
    assert states(ledger) == {"delivered"}
    assert len(screen.log) == 2 * len(seen)


DELTAS = [words(15, start=number * 15) for number in range(60)]


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("every", [0.1, 1.5])
async def test_fc_ovl_02_an_answer_goes_on_in_a_new_message(streams, every):
    """FC-OVL-02: 9000 characters where an update takes 4000; steps between them take room, too."""
    screen = SlackLike(streams=streams)
    thread = "1700000000.000100"

    async def script(request, host):
        for number, delta in enumerate(DELTAS):
            yield TextDelta("1", delta)
            if number % 10 == 5:
                yield ToolStarted(str(number), "search")
                await screen.clock.sleep(3)
                yield ToolFinished(str(number), "search")
            await screen.clock.sleep(every)
        yield Finished()

    async with running(screen, script) as stage:
        await screen.say("go", thread=thread)
        ledger = await ledger_after(stage, 200)
        seen = screen.seen(thread=thread)
        assert joined(seen) == "".join(DELTAS).split()
        assert len(seen) == 3
        assert bool(screen.appended) == streams
        assert screen.refused() == []
        assert states(ledger) == {"delivered"}
        ids = [int(message.native_id) for message in screen.messages]
        assert ids == sorted(ids)


@pytest.mark.parametrize("name", SCREENS)
async def test_fc_ovl_02_no_message_outgrows_its_platform_while_it_grows(name):
    screen = SCREENS[name]()
    ledger = await answered(screen, streaming(screen.clock, DELTAS), seconds=200)
    assert joined(screen.seen()) == "".join(DELTAS).split()
    texts = [text for message in screen.messages for text in message.texts]
    assert within(screen, texts)
    assert screen.refused(*LONG) == []
    assert states(ledger) == {"delivered"}
