"""Commands, buttons, the assistant, and what becomes of the app, as Slack sends them."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from dragoman import Button, Expired, Kind, Outbound, Place, Refused
from peers.slack_fake import SlackFake

pytestmark = pytest.mark.anyio
ADA, BO = "U0ADA", "U0BO"


async def test_slash_commands_arrive_as_commands_and_questions(
    fake: SlackFake, room: str, running: Any, inbox: Any
) -> None:
    """B11."""
    async with running():
        for text in ("stop", "", "pair ABCD", "what is new, <@U0BO|bo>?"):
            fake.slash(room, ADA, "/dragoman", text)
            await inbox.until(len(inbox.events) + 1)
        fake.slash(fake.dm(ADA), ADA, "/new")
        await inbox.until(5)
        await fake.reached(lambda: all(one.fate == "acked" for one in fake.deliveries))
    assert inbox.texts == ["/stop", "/help", "/pair ABCD", "what is new, @bo?", "/new"]
    assert len({event.native_id for event in inbox.events}) == 5
    last = inbox.events[-1]
    assert (last.sender.name, last.address.place, last.addressed) == ("ada", Place.DM, True)


async def test_fc_aut_03_a_command_is_answered_to_whoever_gave_it_alone(
    fake: SlackFake, running: Any, inbox: Any, no_secret_in_logs: list[str]
) -> None:
    """FC-AUT-03: also in a channel that the app is not in; once, and not by an earlier life."""
    away = fake.channel("away", ADA, with_app=False)
    async with running() as slack:
        fake.slash(away, ADA, "/dragoman", "stop")
        [event] = await inbox.until(1)
        await slack.answer(event, "This is not for you.")
        with pytest.raises(Expired):
            await slack.answer(event, "again")
    assert event.answerable
    assert [one.source for one in fake.ephemerals(away, ADA)] == ["This is not for you."]
    assert fake.shown(away) == []
    assert not [line for line in no_secret_in_logs if "/respond/" in line]


@pytest.mark.parametrize("address", ["https://evil.example/x", "http://127.0.0.1:1/x"])
async def test_commands_are_answered_at_slack_alone(
    fake: SlackFake, room: str, running: Any, inbox: Any, address: str
) -> None:
    """Invariant 12: whatever address a command names."""
    async with running() as slack:
        fake.slash(room, ADA, "/dragoman", "stop")
        [event] = await inbox.until(1)
        slack.replies._urls[event.native_id] = address
        with pytest.raises(Refused, match="elsewhere"):
            await slack.answer(event, "no")


@pytest.mark.parametrize(
    ("told", "place", "warns"),
    [
        (("C0ONE", "channel"), Place.GROUP, False),
        (("G0ONE", "group"), Place.GROUP, False),
        (("D0ONE", "im"), Place.DM, False),
        (("G0ONE", "mpim"), Place.GROUP, False),
        (("C0ONE", "mpim"), Place.GROUP, False),
        (("D0ONE", "app_home"), Place.DM, False),
        (("C0ONE", None), Place.GROUP, False),
        (("G0ONE", None), Place.GROUP, False),
        (("D0ONE", None), Place.DM, False),
        (("X0ONE", None), Place.GROUP, True),
        (("C0ONE", "galaxy"), Place.GROUP, True),
    ],
)
async def test_fc_cmd_02_every_channel_type_has_a_place_and_an_unknown_one_warns(
    fake: SlackFake, running: Any, inbox: Any, caplog: Any, told: Any, place: Place, warns: bool
) -> None:
    """FC-CMD-02: where the type is missing, and wherever it says otherwise, the id decides."""
    caplog.set_level(logging.WARNING, "test.slack")
    channel, kind = told
    event = {"type": "message", "channel": channel, "user": ADA, "text": "hi", "ts": "1.1"}
    event |= {"channel_type": kind} if kind else {}
    async with running():
        fake.enqueue(event)
        [heard] = await inbox.until(1)
    assert heard.address.place is place
    assert any("is not known" in line for line in caplog.messages) == warns


async def test_a_press_names_the_button_in_the_thread_of_its_message(
    fake: SlackFake, room: str, running: Any, inbox: Any
) -> None:
    root = fake.say(room, ADA, "may I?").ts
    async with running() as slack:
        fake.say(room, ADA, "well?", thread=root)
        [asked] = await inbox.until(1)
        buttons = (Button("Yes", "answer:1", "primary"), Button("No", "answer:2"))
        sent = await slack.send(asked.address, Outbound("d1", "Sure?", buttons=buttons))
        fake.press(room, sent.native_id, BO, "dragoman:1")
        pressed = (await inbox.until(2))[1]
    assert (pressed.kind, pressed.data, pressed.sender.id) == (Kind.PRESS, "answer:2", BO)
    assert pressed.address == asked.address
    assert pressed.message_id == sent.native_id


async def test_the_assistant_offers_what_the_table_says(
    fake: SlackFake, running: Any, inbox: Any
) -> None:
    async with running(prompts=("What is new?", "Help")):
        opened = fake.open_assistant(ADA)
        await fake.reached(lambda: fake.prompts(opened.channel, opened.thread))
        fake.say(opened.channel, ADA, "What is new?", thread=opened.thread)
        [event] = await inbox.until(1)
    shown = fake.prompts(opened.channel, opened.thread)
    assert [one["message"] for one in shown["prompts"]] == ["What is new?", "Help"]
    assert (event.address.thread, event.address.place) == (opened.thread, Place.DM)


async def test_prompts_that_cannot_be_shown_end_nothing(
    fake: SlackFake, running: Any, inbox: Any
) -> None:
    fake.refuse("assistant.threads.setSuggestedPrompts", "missing_scope", needed="assistant:write")
    async with running(prompts=("What is new?",)):
        opened = fake.open_assistant(ADA)
        fake.say(opened.channel, ADA, "hello", thread=opened.thread)
        await inbox.until(1)


async def test_people_from_outside_write_in_our_channel(
    fake: SlackFake, running: Any, inbox: Any
) -> None:
    """A2: the same place for everybody, and each person with a workspace of their own."""
    fake.person("U0OUT", "olga", team="T0OTHER")
    shared = fake.channel("shared", ADA, "U0OUT", shared=True)
    async with running(connections=1, replies="channel"):
        fake.say(shared, ADA, "in")
        fake.say(shared, "U0OUT", "out")
        one, two = await inbox.until(2)
    assert one.address == two.address
    assert (one.sender.workspace, two.sender.workspace) == ("T0FIXTURE", "T0OTHER")


@pytest.mark.parametrize("trouble", ["missing_scope", "user_not_found", "limited", "slow"])
async def test_names_that_cannot_be_had_hold_nothing_up(
    fake: SlackFake, room: str, running: Any, inbox: Any, trouble: str
) -> None:
    if trouble == "limited":
        fake.rate_limit("users.info", 30, count=None)
    elif trouble == "slow":
        gate = fake.hold("users.info", count=None)
    else:
        fake.refuse("users.info", trouble, count=None)
    async with running():
        said = fake.say(room, ADA, "hello <@U0BO>")
        [event] = await inbox.until(1, 2.5)
        await fake.reached(lambda: said.deliveries[0].fate == "acked")
    if trouble == "slow":
        gate.open()
    assert (event.text, event.sender.name, event.sender.id) == ("hello @U0BO", "", ADA)


async def test_an_app_that_is_removed_says_so_in_the_log(
    fake: SlackFake, running: Any, inbox: Any, caplog: Any
) -> None:
    with caplog.at_level(logging.ERROR, "test.slack"):
        async with running():
            fake.uninstall()
            await fake.reached(lambda: all(one.fate == "acked" for one in fake.deliveries))
    assert any("installed again" in line for line in caplog.messages)
    assert inbox.events == []


@pytest.mark.parametrize("how", ["archive", "leave", "move"])
async def test_channels_that_go_are_told(
    fake: SlackFake, room: str, running: Any, inbox: Any, how: str
) -> None:
    """A9."""
    new = ""
    async with running():
        if how == "archive":
            fake.archive(room, ADA)
        elif how == "leave":
            fake.leave(room, fake.app.user_id)
        else:
            new = fake.change_id(room)
        [event] = await inbox.until(1)
    kind = Kind.MOVED if new else Kind.LEFT
    assert (event.kind, event.address.channel, event.data) == (kind, room, new)
