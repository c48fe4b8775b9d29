"""Answers that grow, and what can happen to the message that shows them."""

import attrs
import pytest

from core.screens.bots import PERSON, bot_of
from core.screens.showing import (
    SCREENS,
    answered,
    ledger_after,
    running,
    saying,
    states,
    streaming,
    words,
)
from core.screens.telegram import TelegramLike
from dragoman import (
    Finished,
    NotSent,
    Place,
    Rate,
    TextBlock,
    TextDelta,
    Unknown,
)

pytestmark = pytest.mark.anyio


def finishing(clock, delta, final):
    """Return a script whose preview is shown before its final text comes."""

    async def script(request, host):
        yield TextDelta("1", delta)
        await clock.sleep(5)
        yield TextBlock("1", final)
        yield Finished()

    return script


@pytest.mark.parametrize("name", SCREENS)
@pytest.mark.parametrize("final", ["Done", "Done "])
@pytest.mark.parametrize("last_edit", [False, True])
async def test_fc_edt_01_a_final_text_that_is_shown_already_is_one_message(name, final, last_edit):
    """FC-EDT-01: and is not even sent again, unless the platform asks for a last edit."""
    screen = SCREENS[name]()
    screen.capabilities = attrs.evolve(screen.capabilities, final_edit=last_edit)
    ledger = await answered(screen, finishing(screen.clock, "Done", final), seconds=20)
    assert screen.seen() == ["Done"]
    assert screen.calls.count("send") == 1
    assert screen.calls.count("edit") == (name == "telegram") + last_edit
    assert states(ledger) == {"delivered"}
    assert ledger[0][1] <= 2
    if name == "telegram":
        assert screen.unmodified == last_edit


@pytest.mark.parametrize("last_edit", [False, True])
async def test_fc_edt_01_a_text_that_was_sent_plain_is_one_message_too(last_edit):
    screen = TelegramLike()
    screen.capabilities = attrs.evolve(screen.capabilities, final_edit=last_edit)
    screen.refuses = lambda method, _, message: (
        "can't parse entities" if method == "edit" and not message.plain else ""
    )
    ledger = await answered(screen, finishing(screen.clock, "Done", "Done "), seconds=20)
    assert screen.seen() == ["Done"]
    assert screen.calls.count("send") == 1
    assert states(ledger) == {"delivered"}
    assert screen.unmodified == last_edit


@pytest.mark.parametrize("final", ["Done", "Done "])
async def test_fc_edt_01_not_modified_is_no_failure_at_telegram(fake, final):
    """FC-EDT-01: the edit landed unseen, and the server says that it changes nothing."""
    fake.cut("editMessageText", after_apply=True)

    async def script(request, host):
        yield TextDelta("1", "Done")
        await fake.reached(lambda: fake.said_by_bot(PERSON) == ["Done"])
        yield TextBlock("1", final)
        yield Finished()

    async with bot_of(fake, script) as stage:
        fake.say(PERSON, PERSON, "go")
        await fake.reached(lambda: fake.said_by_bot(PERSON) == ["Done"])
        await stage.until_final()
        assert await stage.states("deliveries") == ["delivered"]
        assert max(await stage.states("deliveries", "attempts")) <= 2
    assert fake.said_by_bot(PERSON) == ["Done"]
    assert len(fake.calls_of("sendMessage")) == 1
    [again] = [call for call in fake.calls_of("editMessageText") if call.status == 400]
    assert "not modified" in again.answer["description"]


@pytest.mark.parametrize("name", SCREENS)
@pytest.mark.parametrize("landed", [True, False])
@pytest.mark.parametrize("which", ["preview", "final"])
async def test_fc_edt_02_an_edit_without_an_answer_is_made_again_as_an_edit(name, landed, which):
    """FC-EDT-02: whether it landed or not, and no second message comes of it."""
    screen = SCREENS[name]()
    mark = "half" if which == "preview" else "the whole text"
    faulty = [Unknown("ReadTimeout") if landed else NotSent("ConnectError")]
    rows = []

    async def once(method, address, message):
        if method == "edit":
            rows.append((await stage.states("deliveries"))[0])
            if faulty and mark in message.text:
                (screen.late_faults if landed else screen.faults).append(faulty.pop())

    screen.before = once
    half = "this is the first half of it " * 4

    async def script(request, host):
        for delta in ("begin " * 20, half, half):
            yield TextDelta("1", delta)
            await screen.clock.sleep(3)
        yield TextDelta("1", "the whole text")
        yield Finished()

    async with running(screen, script) as stage:
        await screen.say("go")
        ledger = await ledger_after(stage, 60)
        assert not faulty
        assert screen.seen() == [f"{'begin ' * 20}{half * 2}the whole text"]
        assert screen.calls.count("send") == 1
        assert states(ledger) == {"delivered"}
        assert "delivered" not in rows  # it says so when it is known, and not before


async def test_fc_edt_02_a_send_in_doubt_is_uncertain_until_it_is_known():
    screen = TelegramLike()
    screen.late_faults.append(Unknown("ReadTimeout"))
    async with running(screen, saying("the answer")) as stage:
        await screen.say("go")
        assert states(await ledger_after(stage, 0.9)) == {"uncertain"}
        assert states(await ledger_after(stage, 60)) == {"delivered"}
        assert screen.seen() == ["the answer", "*(this may be a repeat)*\n\nthe answer"]


TWELVE = [words(12, start=number * 12) for number in range(100)]


def assert_whole(ledger, screen):
    """Raise where the ledger says less than "delivered", or people see less than the text."""
    assert states(ledger) == {"delivered"}
    assert " ".join(screen.seen()).split() == "".join(TWELVE).split()


@pytest.mark.parametrize("name", SCREENS)
async def test_fc_edt_03_what_is_called_delivered_is_seen_whole(name):
    """FC-EDT-03: 12 000 characters, and no preview passes for the text."""
    screen = SCREENS[name]()
    assert len("".join(TWELVE)) == 12_000
    assert_whole(await answered(screen, streaming(screen.clock, TWELVE), 200), screen)


@pytest.mark.parametrize("name", SCREENS)
@pytest.mark.parametrize("cuts", [1500, 100])
async def test_fc_edt_03_a_platform_that_cuts_silently_is_noticed(name, cuts):
    """FC-EDT-03: nothing that shows less than was meant is called delivered."""
    screen = SCREENS[name](cuts=cuts)
    async with running(screen, streaming(screen.clock, TWELVE)) as stage:
        await screen.say("go")
        ledger = await ledger_after(stage, 200)
        rows = await stage.rows("SELECT state, text, native_id FROM deliveries ORDER BY number")
    with pytest.raises(AssertionError):
        assert_whole(ledger, screen)
    assert "failed" in states(ledger)
    for state, text, native_id in rows:
        [seen] = [m.text for m in screen.messages if m.native_id == native_id]
        assert (state == "delivered") == (seen == text), (state, len(text), len(seen))


@pytest.mark.parametrize("name", SCREENS)
async def test_fc_edt_03_a_preview_that_was_cut_is_made_whole_in_the_end(name):
    screen = SCREENS[name]()

    async def cut(method, address, message):
        screen.cuts = None if message.final else 1000

    screen.before = cut
    assert_whole(await answered(screen, streaming(screen.clock, TWELVE), 200), screen)


FLOOD = [words(20, start=number * 20) for number in range(100)]


@pytest.mark.parametrize("interval", [0.8, 3.0])
async def test_fc_edt_04_a_long_stream_never_meets_the_limit_of_a_group(interval):
    """FC-EDT-04: 20 000 characters in a minute, on a platform that punishes the 21st call in one."""
    screen = TelegramLike(bears=Rate(20, 60))
    screen.capabilities = attrs.evolve(
        screen.capabilities, edit_interval=interval, group_edit_interval=interval
    )
    script = streaming(screen.clock, FLOOD, every=0.6)
    ledger = await answered(screen, script, 300, place=Place.GROUP)
    assert screen.refused() == []
    assert " ".join(screen.seen()).split() == "".join(FLOOD).split()
    assert screen.unmodified == 0
    assert all(len(set(m.texts)) == len(m.texts) for m in screen.messages)
    assert states(ledger) == {"delivered"}
    assert max(call.at for call in screen.log) <= 130  # nothing waits behind useless edits


async def test_fc_edt_04_ten_seconds_at_fifty_tokens_a_second_are_at_most_twelve_edits():
    screen = TelegramLike()
    tokens = [f"t{number:03} " for number in range(500)]
    ledger = await answered(screen, streaming(screen.clock, tokens, every=0.02), seconds=20)
    assert 8 <= screen.calls.count("edit") <= 12
    assert screen.calls.count("send") == 1
    assert screen.seen() == ["".join(tokens).strip()]
    assert states(ledger) == {"delivered"}
