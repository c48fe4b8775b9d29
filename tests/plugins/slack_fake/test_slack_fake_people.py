"""What people do, and what the app is told of it."""

from __future__ import annotations

import pytest

from peers.slack_fake import App, SlackFake

pytestmark = pytest.mark.anyio
ADA, BO = "U0ADA", "U0BO"


def told(fake: SlackFake) -> list[dict]:
    return [one.event for one in fake.deliveries]


async def test_messages_say_where_they_are(fake: SlackFake, room):
    places = {
        "channel": room,
        "group": fake.channel("secret", ADA, kind="group"),
        "mpim": fake.channel("mpdm-ada--bo-1", ADA, BO, kind="mpim"),
        "im": fake.dm(ADA),
    }
    for place in places.values():
        fake.say(place, ADA, "hi")
    assert {event["channel_type"]: event["channel"] for event in told(fake)} == places
    assert all(event["client_msg_id"] for event in told(fake))


async def test_the_app_hears_only_where_it_is(fake: SlackFake):
    elsewhere = fake.channel("elsewhere", ADA, with_app=False)
    said = fake.say(elsewhere, ADA, f"{fake.mention} hi")
    assert said.deliveries == ()
    fake.join(elsewhere, fake.app.user_id)
    assert [one.type for one in fake.say(elsewhere, ADA, fake.mention).deliveries] == [
        "message",
        "app_mention",
    ]


@pytest.mark.parametrize(
    "fake", [{"app": App(events=frozenset({"app_mention", "message.im"}))}], indirect=True
)
async def test_the_app_hears_only_what_it_subscribed_to(fake: SlackFake, room):
    fake.say(room, ADA, f"{fake.mention} hi")
    fake.say(fake.dm(ADA), ADA, "hi")
    assert [event["type"] for event in told(fake)] == ["app_mention", "message"]


async def test_a_mention_in_a_direct_message_is_one_only_if_asked_for(fake: SlackFake):
    direct = fake.dm(ADA)
    assert len(fake.say(direct, ADA, fake.mention).deliveries) == 1
    fake.settings.mentions_in_dms = True
    assert [one.type for one in fake.say(direct, ADA, fake.mention).deliveries] == [
        "message",
        "app_mention",
    ]


async def test_edits_and_deletions(fake: SlackFake, room):
    ts = fake.say(room, ADA, "helo").ts
    fake.edit(room, ts, "hello")
    fake.delete(room, ts)
    _, changed, deleted = told(fake)
    assert (changed["subtype"], changed["message"]["text"]) == ("message_changed", "hello")
    assert changed["message"]["edited"]["user"] == ADA
    assert changed["previous_message"]["text"] == "helo"
    assert (deleted["subtype"], deleted["deleted_ts"]) == ("message_deleted", ts)
    assert deleted["previous_message"]["text"] == "hello"
    assert changed["ts"] != ts != deleted["ts"]


async def test_a_root_leaves_a_tombstone_and_its_counts_are_news(fake: SlackFake, room):
    root = fake.say(room, ADA, "question").ts
    fake.say(room, BO, "answer", thread=root)
    fake.bookkeeping(room, root)
    fake.delete(room, root)
    *_, counts, gone = told(fake)
    assert counts["message"]["text"] == counts["previous_message"]["text"] == "question"
    assert counts["message"]["reply_users"] == [BO]
    assert (gone["subtype"], gone["message"]["subtype"]) == ("message_changed", "tombstone")


async def test_an_answer_shown_to_all(fake: SlackFake, room):
    root = fake.say(room, ADA, "question").ts
    fake.say(room, BO, "answer", thread=root, broadcast=True)
    event = told(fake)[-1]
    assert (event["subtype"], event["root"]["ts"]) == ("thread_broadcast", root)
    assert (event["thread_ts"], event["parent_user_id"]) == (root, ADA)


async def test_files_of_every_kind(fake: SlackFake, room):
    fake.say(room, ADA, f"{fake.mention} look", files=[("a.png", b"\x89PNG"), ("b.txt", b"b")])
    fake.share(room, ADA, "external")
    fake.share(room, ADA, "tombstone")
    first, mention, external, tombstone = told(fake)
    assert (first["subtype"], [one["mimetype"] for one in first["files"]]) == (
        "file_share",
        ["image/png", "text/plain"],
    )
    assert mention["type"] == "app_mention"
    assert mention["files"] == first["files"]
    assert external["files"][0]["mode"] == "external"
    assert external["files"][0]["is_external"]
    assert tombstone["files"] == [{"id": tombstone["files"][0]["id"], "mode": "tombstone"}]


async def test_reactions_come_and_go(fake: SlackFake, room):
    ts = fake.say(room, ADA, "hi").ts
    fake.react(room, ts, BO, "eyes")
    fake.unreact(room, ts, BO, "eyes")
    _, added, removed = told(fake)
    assert (added["type"], removed["type"]) == ("reaction_added", "reaction_removed")
    assert added["item"] == {"type": "message", "channel": room, "ts": ts}
    assert (added["user"], added["item_user"]) == (BO, ADA)


async def test_channels_change(fake: SlackFake, room):
    fake.join(room, BO)
    fake.leave(room, BO)
    fake.rename(room, "lounge")
    fake.archive(room, ADA)
    fake.archive(room, ADA, undo=True)
    new = fake.change_id(room)
    fake.open_home(ADA)
    fake.leave(new, fake.app.user_id)
    assert [event["type"] for event in told(fake)] == [
        "member_joined_channel",
        "member_left_channel",
        "channel_rename",
        "channel_archive",
        "channel_unarchive",
        "channel_id_changed",
        "app_home_opened",
        "channel_left",
    ]
    assert told(fake)[5]["old_channel_id"] == room
    assert fake.say(new, ADA, "hi").deliveries == ()


async def test_people_from_outside_bring_their_workspace(fake: SlackFake):
    shared = fake.channel("shared", shared=True)
    fake.person("U0EVE", "eve", team="T0OTHER")
    [delivery] = fake.say(shared, "U0EVE", "hi").deliveries
    assert delivery.event["user_team"] == delivery.event["source_team"] == "T0OTHER"
    assert delivery.payload["is_ext_shared_channel"] is True
    assert delivery.payload["team_id"] == fake.team.id


async def test_assistants_threads_say_what_is_looked_at(fake: SlackFake, room):
    opened = fake.open_assistant(ADA, looking_at=room)
    fake.look_at(opened, ADA, fake.channel("other", ADA))
    started, changed = (event["assistant_thread"] for event in told(fake))
    assert started["context"]["channel_id"] == room
    assert changed["context"]["channel_id"] != room
    assert (started["user_id"], started["thread_ts"]) == (ADA, opened.thread)


async def test_any_event_at_all(fake: SlackFake):
    delivery = fake.enqueue({"type": "pigeon_arrived", "pigeon": 7})
    assert delivery.event["pigeon"] == 7
    assert delivery.payload["event_id"].startswith("Ev")
