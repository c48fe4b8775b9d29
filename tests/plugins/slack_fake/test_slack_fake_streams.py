"""Streams: slack_sdk's own helper over the fake, and every way in which a stream ends."""

from __future__ import annotations

import pytest
from slack_sdk.models.messages.chunk import MarkdownTextChunk, PlanUpdateChunk, TaskUpdateChunk

from peers.slack_fake import SlackFake
from peers.slack_fake.judging import refused

pytestmark = pytest.mark.anyio
ADA = "U0ADA"


@pytest.fixture
def root(fake: SlackFake, room: str) -> str:
    return fake.say(room, ADA, f"{fake.mention} tell me").ts


@pytest.fixture
def place(fake: SlackFake, room: str, root: str) -> dict[str, str]:
    """What a stream in a channel needs."""
    return {
        "channel": room,
        "thread_ts": root,
        "recipient_user_id": ADA,
        "recipient_team_id": fake.team.id,
    }


async def test_the_helper_streams_an_answer(fake: SlackFake, room, root, place, web):
    stream = await web.chat_stream(**place, buffer_size=8)
    for part in ("**str", "ong** te", "xt, and", " more"):
        await stream.append(markdown_text=part)
    assert fake.shown(room, root)[1].streaming == "in_progress"
    await stream.stop(metadata={"event_type": "run", "event_payload": {"id": "1"}})
    [_, shown] = fake.shown(room, root)
    assert (shown.source, shown.text) == ("**strong** text, and more", "*strong* text, and more")
    assert (shown.streaming, shown.edited) == ("completed", False)
    assert shown.metadata is not None
    assert len(shown.versions) > 2
    history = (await web.conversations_replies(channel=room, ts=root))["messages"]
    assert history[1]["streaming_state"] == "completed"


async def test_a_stream_that_says_nothing_may_be_stopped(fake: SlackFake, room, root, place, web):
    stream = await web.chat_stream(**place)
    await stream.stop()
    assert fake.said_by_bot(room, root) == [""]


async def test_a_stream_needs_a_thread_and_in_a_channel_somebody(fake: SlackFake, place, web):
    for missing, error in (
        ("thread_ts", "invalid_thread_ts"),
        ("recipient_user_id", "missing_recipient_user_id"),
        ("recipient_team_id", "missing_recipient_team_id"),
    ):
        some = {name: value for name, value in place.items() if name != missing}
        assert await refused(web.api_call("chat.startStream", json=some)) == error
    stranger = {**place, "recipient_user_id": "U0NOBODY"}
    assert await refused(web.chat_startStream(**stranger)) == "user_not_found"
    direct = fake.dm(ADA)
    first = fake.say(direct, ADA, "hi").ts
    await web.chat_startStream(channel=direct, thread_ts=first)


async def test_nobody_edits_or_deletes_what_is_streaming(room, place, web):
    ts = (await web.chat_startStream(**place, markdown_text="so far"))["ts"]
    target = {"channel": room, "ts": ts}
    assert await refused(web.chat_update(**target, text="x")) == "streaming_state_conflict"
    assert await refused(web.chat_delete(**target)) == "cant_delete_message"
    await web.chat_stopStream(**target)
    await web.chat_update(**target, text="x")
    await web.chat_delete(**target)


async def test_a_stream_lives_for_five_minutes(fake: SlackFake, clock, room, root, place, web):
    ts = (await web.chat_startStream(**place, markdown_text="a"))["ts"]
    for _ in range(4):
        clock.advance(60)
        await web.chat_appendStream(channel=room, ts=ts, markdown_text="b")
    clock.advance(60)
    dead = "message_not_in_streaming_state"
    target = {"channel": room, "ts": ts}
    assert await refused(web.chat_appendStream(**target, markdown_text="c")) == dead
    assert await refused(web.chat_stopStream(**target)) == dead
    assert fake.said_by_bot(room, root) == ["abbbb"]
    await web.chat_update(**target, markdown_text="all of it")
    assert fake.said_by_bot(room, root) == ["all of it"]


async def test_a_stream_ends_by_itself_where_nobody_calls(fake: SlackFake, clock, room, place, web):
    await web.chat_startStream(**place, markdown_text="a")
    clock.advance(300)
    await fake.reached(lambda: fake.shown(room)[-1].streaming == "completed")


async def test_a_stopped_stream_takes_no_more(room, place, web):
    target = {"channel": room, "ts": (await web.chat_startStream(**place))["ts"]}
    await web.chat_stopStream(**target, markdown_text="end")
    dead = "message_not_in_streaming_state"
    assert await refused(web.chat_stopStream(**target)) == dead
    assert await refused(web.chat_appendStream(**target, markdown_text="x")) == dead
    plain = await web.chat_postMessage(channel=room, text="x")
    never = web.chat_appendStream(channel=room, ts=plain["ts"], markdown_text="x")
    assert await refused(never) == dead
    gone = web.chat_appendStream(channel=room, ts="1700000000.000001", markdown_text="x")
    assert await refused(gone) == "message_not_found"


async def test_text_and_chunks_do_not_mix(room, place, web):
    target = {"channel": room, "ts": (await web.chat_startStream(**place, markdown_text="a"))["ts"]}
    chunk = MarkdownTextChunk(text="b")
    mixed = web.chat_appendStream(**target, chunks=[chunk])
    assert await refused(mixed) == "streaming_mode_mismatch"
    both = web.chat_appendStream(**target, markdown_text="b", chunks=[chunk])
    assert await refused(both) == "cannot_provide_both_markdown_text_and_chunks"
    nothing = web.chat_appendStream(**target, markdown_text="")
    assert await refused(nothing) == "markdown_text_or_chunks_required"
    other = {"channel": room, "ts": (await web.chat_startStream(**place))["ts"]}
    wrong = web.chat_appendStream(**other, chunks=[{"type": "task_update", "id": "1"}])
    assert await refused(wrong) == "invalid_chunks"


async def test_a_message_holds_so_much_and_no_more(fake: SlackFake, room, root, place, web):
    ts = (await web.chat_startStream(**place, markdown_text="x" * 11_000))["ts"]
    more = web.chat_appendStream(channel=room, ts=ts, markdown_text="y" * 1_001)
    assert await refused(more) == "msg_too_long"
    await web.chat_appendStream(channel=room, ts=ts, markdown_text="y" * 1_000)
    assert [len(one) for one in fake.said_by_bot(room, root)] == [12_000]


async def test_tasks_are_cards_and_fail_when_they_are_left(fake: SlackFake, room, place, web):
    def task(number: str, status: str, **more: str) -> TaskUpdateChunk:
        return TaskUpdateChunk(id=number, title=f"Task {number}", status=status, **more)

    stream = await web.chat_stream(**place, task_display_mode="plan")
    await stream.append(chunks=[PlanUpdateChunk(title="Working"), task("1", "in_progress")])
    await stream.append(chunks=[task("1", "complete", details="a"), task("2", "in_progress")])
    await stream.append(chunks=[task("1", "complete", details="b")])
    await stream.stop()
    [*_, shown] = fake.shown(room)
    assert shown.text == "This message contains interactive elements."
    assert shown.tasks == {
        "1": {"title": "Task 1", "status": "complete", "details": "ab"},
        "2": {"title": "Task 2", "status": "error"},
    }
    [plan] = shown.blocks
    assert (plan["type"], plan["title"]) == ("plan", "Something went wrong")


async def test_the_app_is_told_of_its_own_stream_twice(fake: SlackFake, root, place, web):
    ts = (await web.chat_startStream(**place))["ts"]
    await web.chat_stopStream(channel=place["channel"], ts=ts, markdown_text="all")
    _, _, begun, ended = [one.event for one in fake.deliveries]
    assert (begun["text"], begun["streaming_state"]) == ("", "in_progress")
    assert (ended["subtype"], ended["hidden"]) == ("message_changed", True)
    assert ended["message"]["text"] == "all"
    assert ended["message"]["streaming_state"] == "completed"
    assert ended["previous_message"]["text"] == ""
