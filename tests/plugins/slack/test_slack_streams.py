"""Answers that grow as Slack's own streams, and every way in which that ends early."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman import Address, Button, Expired, NotSent, Outbound, Place, Receipt, Unknown
from dragoman_slack.streams import Recipient, steady
from peers.slack_fake import ManualClock, SlackFake

pytestmark = pytest.mark.anyio
ADA = "U0ADA"
TEXT = "One. Two **bold** words.\n\n```py\nx = 1\n```\n\nAnd the end of it all."


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def fake(clock: ManualClock) -> Iterator[SlackFake]:
    with SlackFake(clock=clock) as server:
        server.person(ADA, "ada", "Ada Lovelace")
        yield server


@pytest.fixture
def thread(fake: SlackFake, room: str) -> Address:
    """A thread in which Ada has said something."""
    return Address("slack", room, fake.say(room, ADA, "a question").ts, "T0FIXTURE", Place.GROUP)


def hear(slack: Any, thread: Address) -> None:
    slack.streams.heard(thread, Recipient(ADA, "T0FIXTURE"))


def grown(text: str, shown: str = "", *, final: bool = False, **more: Any) -> Outbound:
    return Outbound("d1", text, shown=shown, final=final, **more)


async def show(slack: Any, thread: Address, steps: list[str]) -> Receipt:
    """Show an answer as core does: repeated where it is in doubt, the other way where it expired."""
    receipt: Receipt | None = None
    ordinary = False
    for number, text in enumerate(steps):
        final = number == len(steps) - 1
        for _ in range(4):
            message = grown(text, final=final, ordinary=ordinary)
            try:
                if receipt is None:
                    receipt = await slack.send(thread, message)
                else:
                    receipt = await slack.edit(thread, receipt.native_id, message)
                break
            except Expired:
                ordinary = True
            except (Unknown, NotSent):
                continue
        else:
            raise AssertionError("it was never shown")
    assert receipt is not None
    return receipt


def answers(fake: SlackFake, thread: Address) -> list[str]:
    return fake.said_by_bot(thread.channel, thread.thread)


def steps_of(text: str, size: int = 7) -> list[str]:
    return [text[:end] for end in range(size, len(text), size)] + [text]


async def test_an_answer_in_a_thread_grows_as_one_stream(
    fake: SlackFake, thread: Address, open_app: Any
) -> None:
    async with open_app() as slack:
        hear(slack, thread)
        await show(slack, thread, steps_of(TEXT))
    assert answers(fake, thread) == [TEXT]
    assert not fake.calls_of("chat.update", "chat.postMessage")
    assert len(fake.calls_of("chat.startStream")) == 1
    assert fake.shown(thread.channel)[-1].streaming == "completed"


async def test_marks_and_lines_that_go_away_again_are_never_part_of_a_stream(
    fake: SlackFake, thread: Address, open_app: Any
) -> None:
    previews = [
        "Let me **look**",
        "Let me **look\n\n*(`weather` …)*",
        "Let me **look** it up.\n\n```\ncode\n```",
        "Let me **look** it up.\n\n```\ncode and more\n```\n\n*(still working, 3 min)*",
        "Let me **look** it up.\n\n```\ncode and more\n```\n\nDone.",
    ]
    async with open_app() as slack:
        hear(slack, thread)
        await show(slack, thread, previews)
    assert answers(fake, thread) == [previews[-1]]
    assert not fake.calls_of("chat.update")


async def test_a_text_that_becomes_another_one_leaves_its_stream(
    fake: SlackFake, thread: Address, open_app: Any
) -> None:
    async with open_app() as slack:
        hear(slack, thread)
        await show(slack, thread, ["Hello there", "Something else", "Something else again"])
    assert answers(fake, thread) == ["Something else again"]


@pytest.mark.parametrize("closes", range(12))
async def test_fc_edt_05_a_stream_that_slack_closes_loses_and_doubles_nothing(
    fake: SlackFake, clock: ManualClock, thread: Address, open_app: Any, closes: int
) -> None:
    """FC-EDT-05: at every step; what is unsent is shown by an update of the same message."""
    steps = steps_of(TEXT)
    async with open_app() as slack:
        hear(slack, thread)
        sent = await slack.send(thread, grown(steps[0]))
        ordinary = False
        for number, text in enumerate(steps[1:], 1):
            if number == closes + 1:
                clock.advance(301)
                await fake.reached(lambda: fake.shown(thread.channel)[-1].streaming == "completed")
            message = grown(text, final=text == TEXT, ordinary=ordinary)
            try:
                await slack.edit(thread, sent.native_id, message)
            except Expired:
                ordinary = True
                again = grown(text, final=text == TEXT, ordinary=True)
                await slack.edit(thread, sent.native_id, again)
    assert answers(fake, thread) == [TEXT]
    assert ordinary is (closes < len(steps) - 2)


@pytest.mark.parametrize("dated", [False, True])
@pytest.mark.parametrize("after_apply", [False, True])
@pytest.mark.parametrize("method", ["chat.startStream", "chat.appendStream", "chat.stopStream"])
async def test_a_call_without_an_answer_is_settled_by_the_whole_text(
    fake: SlackFake,
    thread: Address,
    open_app: Any,
    host: Any,
    method: str,
    after_apply: bool,
    dated: bool,
) -> None:
    """Invariant 5: appending is not idempotent, so it is never done twice."""

    def message(text: str, *, final: bool = False) -> Outbound:
        return grown(text, final=final, created_at=host.clock.now() if dated else None)

    async with open_app() as slack:
        hear(slack, thread)
        fake.cut(method, after_apply=after_apply)
        steps = steps_of(TEXT, 20)
        receipt: Receipt | None = None
        for text in steps:
            for _ in range(3):
                try:
                    one = message(text, final=text == TEXT)
                    if receipt is None:
                        receipt = await slack.send(thread, one)
                    else:
                        await slack.edit(thread, receipt.native_id, one)
                    break
                except Unknown:
                    continue
    assert answers(fake, thread) == [TEXT]


async def test_a_stream_of_an_earlier_life_is_found_and_gone_on_with(
    fake: SlackFake, thread: Address, open_app: Any, host: Any
) -> None:
    """B7: the process ended between the stream's begin and the note of its id."""
    created = host.clock.now()
    async with open_app() as slack:
        hear(slack, thread)
        await slack.send(thread, Outbound("d1", "One. Two", final=False, created_at=created))
    async with open_app() as slack:
        found = await slack.send(thread, Outbound("d1", "One. Two. Three.", created_at=created))
        await slack.edit(thread, found.native_id, Outbound("d1", "One. Two. Three. Four."))
        other = await slack.send(thread, Outbound("d2", "Another.", created_at=created))
    assert answers(fake, thread) == ["One. Two. Three. Four.", "Another."]
    assert other.native_id != found.native_id


async def test_a_stream_of_an_earlier_life_whose_id_is_known_is_updated(
    fake: SlackFake, thread: Address, open_app: Any
) -> None:
    async with open_app() as slack:
        hear(slack, thread)
        sent = await slack.send(thread, grown("One. Two"))
    async with open_app() as slack:
        await slack.edit(thread, sent.native_id, grown("One. Two. *(interrupted)*", final=True))
    assert answers(fake, thread) == ["One. Two. *(interrupted)*"]


async def test_where_slack_has_no_streams_answers_grow_by_updates(
    fake: SlackFake, thread: Address, open_app: Any
) -> None:
    async with open_app() as slack:
        hear(slack, thread)
        fake.refuse("chat.startStream", "unknown_method")
        await show(slack, thread, steps_of(TEXT, 30))
        await slack.send(thread, Outbound("d2", "Another", final=False))
    assert answers(fake, thread) == [TEXT, "Another"]
    assert len(fake.calls_of("chat.startStream")) == 1


async def test_no_stream_without_a_thread_a_recipient_or_leave(
    fake: SlackFake, thread: Address, room: str, open_app: Any
) -> None:
    root = Address("slack", room, "", "T0FIXTURE", Place.GROUP)
    async with open_app() as slack:
        await slack.send(thread, grown("nobody is known to have spoken"))
        await slack.send(root, Outbound("d2", "no thread", final=False))
        hear(slack, thread)
        await slack.send(thread, Outbound("d3", "whole", final=True))
    async with open_app(streams=False) as slack:
        hear(slack, thread)
        await slack.send(thread, Outbound("d4", "not wanted", final=False))
    assert not fake.calls_of("chat.startStream")


async def test_buttons_come_with_the_end_of_a_stream(
    fake: SlackFake, thread: Address, open_app: Any
) -> None:
    async with open_app() as slack:
        hear(slack, thread)
        sent = await slack.send(thread, grown("Shall I"))
        whole = grown("Shall I?", final=True, buttons=(Button("Yes", "y"),))
        await slack.edit(thread, sent.native_id, whole)
    shown = fake.shown(thread.channel)[-1]
    assert (shown.source, shown.actions) == ("Shall I?", ("dragoman:0",))


async def test_the_assistants_threads_in_direct_messages_stream_to_whoever_is_there(
    fake: SlackFake, open_app: Any
) -> None:
    opened = fake.dm(ADA)
    root = fake.say(opened, ADA, "hi").ts
    place = Address("slack", opened, root, "T0FIXTURE", Place.DM)
    async with open_app() as slack:
        await show(slack, place, steps_of(TEXT))
    assert fake.said_by_bot(opened) == [TEXT]
    assert fake.calls_of("chat.startStream")


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(cuts=st.lists(st.tuples(st.integers(0, 9), st.sampled_from("ab")), max_size=4))
async def test_whatever_is_cut_the_text_is_there_once(
    fake: SlackFake, room: str, open_app: Any, cuts: list[tuple[int, str]]
) -> None:
    thread = Address("slack", room, fake.say(room, ADA, "?").ts, "T0FIXTURE", Place.GROUP)
    steps = steps_of(TEXT, 7)
    async with open_app() as slack:
        hear(slack, thread)
        receipt = await slack.send(thread, grown(steps[0]))
        for number, text in enumerate(steps[1:]):
            for at, how in cuts:
                if at == number:
                    fake.cut("chat.appendStream", after_apply=how == "a")
            for _ in range(8):
                try:
                    await slack.edit(thread, receipt.native_id, grown(text, final=text == TEXT))
                    break
                except Unknown:
                    continue
        fake.heal()
    assert answers(fake, thread) == [TEXT]


@given(st.text(alphabet="ab *_`~\n()", max_size=40), st.text(alphabet="ab *_`~\n", max_size=10))
def test_what_is_steady_is_a_beginning(text: str, more: str) -> None:
    assert text.startswith(steady(text))
    assert (text + more).startswith(steady(text))
