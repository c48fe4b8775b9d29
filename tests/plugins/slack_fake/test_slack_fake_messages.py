"""slack_sdk judges how messages are posted, changed and deleted."""

from __future__ import annotations

import asyncio
import uuid

import pytest
from slack_sdk.errors import SlackApiError

from peers.slack_fake import Settings, SlackFake
from peers.slack_fake.judging import refused

pytestmark = pytest.mark.anyio
ADA = "U0ADA"
FLAT = {"type": "button", "action_id": "yes", "text": {"type": "plain_text", "text": "Yes"}}


async def test_a_message_is_posted_changed_and_deleted(fake: SlackFake, room, web):
    posted = await web.chat_postMessage(channel=room, text="a & b <c> https://example.com/x.")
    text = "a &amp; b &lt;c&gt; <https://example.com/x>."
    assert posted["message"]["text"] == text
    assert posted["message"]["bot_id"] == "B0FIXTURE"
    [block] = posted["message"]["blocks"]
    assert block["elements"][0]["elements"][0]["text"] == "a & b <c> "
    changed = await web.chat_update(channel=room, ts=posted["ts"], text="other")
    assert changed["message"]["edited"]["user"] == "U0BOT"
    [shown] = fake.shown(room)
    assert [one.source for one in shown.versions] == ["a & b <c> https://example.com/x.", "other"]
    link = await web.chat_getPermalink(channel=room, message_ts=posted["ts"])
    assert link["permalink"].endswith(posted["ts"].replace(".", ""))
    await web.chat_delete(channel=room, ts=posted["ts"])
    assert fake.said_by_bot(room) == []
    gone = {"channel": room, "ts": posted["ts"]}
    assert await refused(web.chat_update(**gone, text="x")) == "message_not_found"
    assert await refused(web.chat_delete(**gone)) == "message_not_found"


async def test_markdown_comes_back_in_slacks_own_marks(fake: SlackFake, room, web):
    markdown = "# Hi\n\n**bold** and [a link](https://example.com/)\n\n- one\n- two"
    posted = await web.chat_postMessage(channel=room, markdown_text=markdown)
    shown = "Hi\n\n*bold* and <https://example.com/|a link>\n\n• one\n• two"
    assert posted["message"]["text"] == shown
    assert posted["message"]["blocks"][0]["type"] == "rich_text"
    assert fake.said_by_bot(room) == [markdown]


async def test_long_texts_are_cut_or_refused_as_each_method_does(fake: SlackFake, room, web):
    posted = await web.chat_postMessage(channel=room, text="x" * 40_001)
    assert len(posted["message"]["text"]) == 40_000
    post, update = web.chat_postMessage, web.chat_update
    target = {"channel": room, "ts": posted["ts"]}
    assert await refused(post(channel=room, markdown_text="x" * 12_001)) == "msg_too_long"
    assert await refused(update(**target, text="x" * 4_001)) == "msg_too_long"
    await update(**target, text="x" * 4_000)
    await update(**target, markdown_text="x" * 12_000)
    parts = [{"type": "markdown", "text": "x" * 6_001}] * 2
    assert await refused(post(channel=room, text="x", blocks=parts)) == "msg_blocks_too_long"
    both = post(channel=room, text="x", markdown_text="x")
    assert await refused(both) == "markdown_text_conflict"


async def test_blocks_are_checked_and_kept_with_ids(fake: SlackFake, room, web):
    section = {"type": "section", "text": {"type": "mrkdwn", "text": "*hi*"}}
    actions = {"type": "actions", "elements": [FLAT]}
    posted = await web.chat_postMessage(channel=room, text="hi", blocks=[section, actions])
    assert all(block["block_id"] for block in posted["message"]["blocks"])
    assert fake.shown(room)[0].actions == ("yes",)
    for wrong, said in (
        ([section] * 51, "no more than 50"),
        ([{**section, "text": {"type": "mrkdwn", "text": "x" * 3001}}], "less than 3001"),
        ([{"type": "actions", "elements": [FLAT] * 26}], "no more than 25"),
        ([{"type": "header", "text": {"type": "plain_text", "text": "x" * 151}}], "less than 151"),
        ([{**section, "block_id": "x" * 256}], "less than 256"),
        ([{"type": "pigeon"}], "unsupported type: pigeon"),
    ):
        with pytest.raises(SlackApiError) as caught:
            await web.chat_postMessage(channel=room, text="hi", blocks=wrong)
        assert caught.value.response["error"] == "invalid_blocks"
        assert said in caught.value.response["errors"][0]


async def test_an_edit_with_blocks_bears_no_mark(fake: SlackFake, room, web):
    ts = (await web.chat_postMessage(channel=room, text="hi"))["ts"]
    section = {"type": "section", "text": {"type": "plain_text", "text": "new"}}
    answer = await web.chat_update(channel=room, ts=ts, text="new", blocks=[section])
    assert "edited" not in answer["message"]
    answer = await web.chat_update(channel=room, ts=ts, text="newer")
    assert answer["message"]["blocks"][0]["type"] == "rich_text", "a text takes blocks away"


async def test_others_messages_and_closed_windows_are_refused(fake: SlackFake, clock, room, web):
    theirs = fake.say(room, ADA, "mine").ts
    target = {"channel": room, "ts": theirs}
    assert await refused(web.chat_update(**target, text="x")) == "cant_update_message"
    assert await refused(web.chat_delete(**target)) == "cant_delete_message"
    own = (await web.chat_postMessage(channel=room, text="hi"))["ts"]
    fake.settings.edit_window = 60.0
    await web.chat_update(channel=room, ts=own, text="in time")
    clock.advance(61)
    late = web.chat_update(channel=room, ts=own, text="late")
    assert await refused(late) == "edit_window_closed"


async def test_the_same_client_id_posts_once(fake: SlackFake, clock, room, web):
    key = str(uuid.uuid4())
    other = fake.channel("other", ADA)
    first = await web.chat_postMessage(channel=room, text="once", client_msg_id=key)
    again = await web.chat_postMessage(channel=room, text="once", client_msg_id=key)
    assert again["ts"] == first["ts"]
    assert fake.said_by_bot(room) == ["once"]
    elsewhere = web.chat_postMessage(channel=other, text="once", client_msg_id=key)
    assert await refused(elsewhere) == "duplicate_channel_not_found"
    fake.delete(room, first["ts"])
    gone = web.chat_postMessage(channel=room, text="once", client_msg_id=key)
    assert await refused(gone) == "duplicate_message_not_found"
    clock.advance(3601)
    late = await web.chat_postMessage(channel=room, text="once", client_msg_id=key)
    assert late["ts"] != first["ts"]


async def test_what_the_client_sends_again_by_itself_is_posted_twice(fake: SlackFake, room, web):
    """slack_sdk repeats a call whose answer was lost; only the id keeps it from a second message."""
    fake.cut("chat.postMessage", after_apply=True, count=2)
    await asyncio.gather(
        web.chat_postMessage(channel=room, text="bare"),
        web.chat_postMessage(channel=room, text="marked", client_msg_id=str(uuid.uuid4())),
    )
    assert sorted(fake.said_by_bot(room)) == ["bare", "bare", "marked"]
    assert [call.fate for call in fake.calls_of("chat.postMessage")] == ["cut", "cut", "", ""]


async def test_metadata_is_kept_and_shown_to_who_asks(fake: SlackFake, room, web):
    mark = {"event_type": "answer", "event_payload": {"run": "r1", "part": 2}}
    ts = (await web.chat_postMessage(channel=room, text="hi", metadata=mark))["ts"]
    hidden = (await web.conversations_history(channel=room))["messages"][0]
    assert "metadata" not in hidden
    shown = await web.conversations_history(channel=room, include_all_metadata=True)
    assert shown["messages"][0]["metadata"] == mark
    await web.chat_update(channel=room, ts=ts, text="new")
    assert fake.shown(room)[0].metadata == mark
    await web.chat_update(channel=room, ts=ts, text="new", metadata={})
    assert fake.shown(room)[0].metadata is None
    for wrong, error in (("x", "invalid_metadata_format"), ({"a": 1}, "invalid_metadata_schema")):
        assert await refused(web.chat_postMessage(channel=room, text="x", metadata=wrong)) == error


async def test_ephemeral_messages_stand_apart(fake: SlackFake, room, web):
    ts = (await web.chat_postEphemeral(channel=room, user=ADA, text="for you"))["message_ts"]
    assert fake.shown(room) == []
    assert [(one.source, one.visible_to) for one in fake.ephemerals(room)] == [("for you", ADA)]
    assert await refused(web.chat_update(channel=room, ts=ts, text="x")) == "message_not_found"
    stranger = web.chat_postEphemeral(channel=room, user="U0BO", text="x")
    assert await refused(stranger) == "user_not_in_channel"


@pytest.mark.parametrize("fake", [{"settings": Settings(client_msg_ids=False)}], indirect=True)
async def test_a_slack_that_does_not_look_at_client_ids(fake: SlackFake, room, web):
    key = str(uuid.uuid4())
    for _ in range(2):
        await web.chat_postMessage(channel=room, text="x", client_msg_id=key)
    assert fake.said_by_bot(room) == ["x", "x"]
