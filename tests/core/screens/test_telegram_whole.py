"""What only a Telegram bot in a whole gateway shows: drafts, and buttons that people press."""

import pytest

from core.screens.bots import PERSON, bot_of
from dragoman import Finished, TextBlock, TextDelta
from dragoman.manifest.model import Access

pytestmark = pytest.mark.anyio


async def test_an_answer_grows_as_a_draft_and_becomes_one_message(fake):
    """B3, B4, C2, invariant 5: nothing is left of the draft, and nothing had to be edited."""

    async def script(request, host):
        yield TextDelta("1", "One **two")
        await fake.reached(lambda: fake.preview(PERSON) is not None)
        yield TextBlock("1", "One **two** three")
        yield Finished()

    async with bot_of(fake, script, drafts=True) as stage:
        fake.say(PERSON, PERSON, "go")
        await fake.reached(lambda: fake.said_by_bot(PERSON) == ["One two three"])
        await stage.until_final()
    assert fake.drafts(PERSON)[0].text == "One two"
    assert fake.preview(PERSON) is None
    assert len(fake.calls_of("sendMessage")) == 1
    assert not fake.calls_of("editMessageText")


@pytest.mark.parametrize("drafts", [False, True])
async def test_a_pressed_button_says_its_answer_and_the_buttons_go(fake, drafts):
    """B3, C2."""
    said = []

    async def script(request, host):
        said.extend(one.text for one in request.inputs)
        if len(said) == 1:
            await host.suggest(["Yes, please", "No"])
        yield TextBlock("1", f"answer {len(said)}")
        yield Finished()

    def shown():
        return [one for one in fake.chat(PERSON) if one.sender == fake.bot_id]

    async with bot_of(fake, script, drafts=drafts) as stage:
        fake.say(PERSON, PERSON, "go")
        await fake.reached(lambda: shown() and shown()[0].buttons)
        [first] = shown()
        assert first.buttons == (("Yes, please", "No"),)
        await stage.until_final()
        data = next(
            button["callback_data"]
            for call in fake.calls_of("sendMessage", "editMessageText")
            for row in call.params.get("reply_markup", {}).get("inline_keyboard", ())
            for button in row
        )
        pressed = fake.press(PERSON, first.message_id, PERSON, data)
        await fake.reached(lambda: len(shown()) == 2 and shown()[1].text == "answer 2")
        await fake.reached(lambda: not shown()[0].buttons)
        await fake.reached(lambda: fake.answer_to(pressed.query_id) is not None)
        await stage.until_final()
    assert said == ["go", "Yes, please"]
    assert shown()[0].text == "answer 1"


@pytest.mark.parametrize("kind", ["supergroup", "forum"])
async def test_fc_thr_02_a_topic_that_goes_while_its_turn_runs_is_tried_twice_at_most(fake, kind):
    """FC-THR-02: what is still a forum never sees in one topic what was said in another."""
    team = -1001500000001
    fake.add_chat(team, "forum", "Team")
    topic = fake.topic(team, "Plans", PERSON)

    async def script(request, host):
        fake.delete_topic(team, topic)
        fake.add_chat(team, kind, "Team")
        yield TextBlock("1", "answer")
        yield Finished()

    expected = "delivered" if kind == "supergroup" else "failed"
    async with bot_of(fake, script, access=Access(channels=(f"stub:{team}",))) as stage:
        fake.say(team, PERSON, "@dragoman_bot go", thread=topic)
        await stage.until("deliveries", [expected])
    assert fake.said_by_bot(team) == (["answer"] if kind == "supergroup" else [])
    assert len(fake.calls_of("sendMessage")) <= 2


@pytest.mark.parametrize("busy", [False, True])
async def test_fc_thr_07_a_conversation_follows_its_group_to_the_new_id(fake, busy):
    """A2: also where the group moves while an answer is on its way."""
    old, new = -4001, -1001500000003
    fake.add_chat(old, "group", "Team")
    sessions = []

    async def script(request, host):
        sessions.append(request.session_id)
        if busy and len(sessions) == 1:
            fake.migrate(old, new)
        yield TextBlock("1", f"answer {len(sessions)}")
        yield Finished()

    async with bot_of(fake, script, access=Access(channels=(f"stub:{old}",))) as stage:
        fake.say(old, PERSON, "@dragoman_bot one")
        await fake.reached(lambda: fake.said_by_bot(old) + fake.said_by_bot(new) == ["answer 1"])
        if not busy:
            fake.migrate(old, new)
        fake.say(new, PERSON, "@dragoman_bot two")
        await fake.reached(lambda: "answer 2" in fake.said_by_bot(new))
        await stage.until_final()
    assert len(sessions) == 2
    assert len(set(sessions)) == 1
