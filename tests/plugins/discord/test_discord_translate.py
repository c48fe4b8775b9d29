"""Discord's events as ours, without a network."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman import Address, Inbound, Kind, Place
from dragoman_discord.gateway import Dispatch
from dragoman_discord.interactions import interaction_of
from dragoman_discord.places import Channel, Places
from dragoman_discord.translate import Scene, lives_in, translate
from dragoman_discord.words import Names

ME, ADA, EVE = "700000000000000001", "700000000000000002", "700000000000000003"
ROLE = "600000000000000001"
GUILD, CATEGORY, CHANNEL, THREAD = "1", "50", "200", "900"
FORUM, POST, MINE = "300", "901", "902"
NOW = datetime(2026, 1, 2, tzinfo=UTC)
quick = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))


async def nowhere(identity: str) -> Any:
    raise AssertionError("nothing is asked for here")


def scene(replies: Any = "channel") -> Scene:
    places = Places("discord", nowhere)
    for channel in (
        Channel(CATEGORY, 4, GUILD, name="Team"),
        Channel(CHANNEL, 0, GUILD, CATEGORY, name="general"),
        Channel(FORUM, 15, GUILD, CATEGORY),
        Channel(THREAD, 11, GUILD, CHANNEL, owner=ADA),
        Channel(POST, 11, GUILD, FORUM, owner=ADA),
        Channel(MINE, 11, GUILD, CHANNEL, owner=ME),
    ):
        places.add(channel)
    names = Names(ME, ROLE, lambda identity: (places.get(identity) or Channel("")).name)
    return Scene("discord", names, places, NOW, replies)


def said(content: str = "hello", **more: Any) -> dict[str, Any]:
    return {
        "id": "1200000000000000001",
        "type": 0,
        "channel_id": CHANNEL,
        "guild_id": GUILD,
        "author": {"id": ADA, "username": "ada", "global_name": "Ada"},
        "content": content,
        "timestamp": "2026-01-01T10:00:00.000000+00:00",
        "mentions": [],
        "mention_roles": [],
        **more,
    }


def one(data: dict[str, Any], name: str = "MESSAGE_CREATE", replies: Any = "channel") -> Inbound:
    [event] = translate(Dispatch(name, data, 5, "s:5"), scene(replies))
    return event


def none(data: dict[str, Any], name: str = "MESSAGE_CREATE") -> bool:
    return translate(Dispatch(name, data, 5, "s:5"), scene()) == ()


@pytest.mark.parametrize(
    ("channel", "address", "within", "addressed", "follows"),
    [
        (CHANNEL, ("200", ""), ("50",), False, False),
        (THREAD, ("200", "900"), ("50",), False, True),
        (POST, ("300", "901"), ("50",), False, True),
        (MINE, ("200", "902"), ("50",), True, True),
        ("999", ("999", ""), (), False, False),
    ],
)
def test_fc_thr_05_a_thread_lies_in_its_channel_and_that_in_its_category(
    channel: str, address: tuple[str, str], within: Any, addressed: bool, follows: bool
) -> None:
    """Access lists may name any of the three; the conversation is the thread's."""
    event = one(said(channel_id=channel))
    assert event.address == Address("discord", *address, GUILD, Place.GROUP)
    assert (event.within, event.addressed, event.follows) == (within, addressed, follows)


def test_a_direct_message_is_addressed() -> None:
    data = said(channel_id="77")
    del data["guild_id"]
    event = one(data)
    assert (event.address, event.addressed) == (Address("discord", "77"), True)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (f"<@{ME}> status", "status"),
        (f"😀😀 <@{ME}> status", "😀😀 status"),
        (f"😀😀 <@!{ME}> status <@{ME}>", "😀😀 status"),
        (f"status, <@{ME}>!", "status,!"),
        (f"one\n<@{ME}> two", "one\ntwo"),
        (f"<@{ME}><@{ME}> twice", "twice"),
        (f"<@&{ROLE}> by role", "by role"),
        (f"<@{EVE}> and <@{ME}>", "@Eve and"),
        (f"<@{ME}> ask <@600000000000000009>", "ask <@600000000000000009>"),
        (f"<@{ME}> see <#{CHANNEL}> and <#1>", "see #general and <#1>"),
        (f"<@{ME}> <:wave:123> <a:party:5>", ":wave: :party:"),
    ],
)
def test_fc_men_01_mentions_are_found_wherever_they_stand(content: str, text: str) -> None:
    mentions = [{"id": ME, "username": "bot"}, {"id": EVE, "username": "eve", "global_name": "Eve"}]
    roles = [ROLE] if ROLE in content else []
    event = one(said(content, mentions=mentions if ME in content else [], mention_roles=roles))
    assert (event.text, event.addressed) == (text, True)


def test_what_others_are_called_does_not_address_the_bot() -> None:
    eve = {"id": EVE, "username": "eve"}
    assert not one(said(f"<@{EVE}> hello", mentions=[eve])).addressed
    assert not one(said("@everyone hello", mention_everyone=True)).addressed
    assert not one(said("<@&5> hello", mention_roles=["5"])).addressed


def test_fc_men_02_a_mention_beside_a_file_and_a_file_without_words() -> None:
    file = {"id": "5", "filename": "a.png", "content_type": "image/png", "size": 3, "url": "x"}
    mention = {"mentions": [{"id": ME, "username": "bot"}], "attachments": [file]}
    event = one(said(f"<@{ME}> what is it?", **mention))
    assert (event.text, event.addressed, len(event.attachments)) == ("what is it?", True, 1)
    only = one(said("", attachments=[file]))
    assert (only.text, only.attachments[0].id) == ("", f"{CHANNEL}/1200000000000000001/5")
    bare = one(said(f"<@{ME}> ", mentions=[{"id": ME, "username": "bot"}]))
    assert (bare.text, bare.addressed) == ("@bot", True)


def test_a_reply_has_its_quote_and_one_to_the_bot_addresses_it() -> None:
    original = said("what I said", author={"id": ME, "username": "bot"})
    original["id"] = "1100000000000000001"
    reference = {"type": 0, "message_id": original["id"]}
    event = one(said("yes", type=19, message_reference=reference, referenced_message=original))
    assert event.addressed
    assert event.quote is not None
    assert (event.quote.text, event.quote.own) == ("what I said", True)
    assert event.quote.message_id == original["id"]
    original["author"] = {"id": EVE, "username": "eve"}
    other = one(said("yes", type=19, message_reference=reference, referenced_message=original))
    assert other.quote is not None
    assert (other.addressed, other.quote.author, other.quote.own) == (False, "eve", False)
    gone = one(said("yes", type=19, message_reference=reference, referenced_message=None))
    assert gone.quote is None


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"sticker_items": [{"id": "1", "name": "Wave]"}]}, "[sticker Wave)]"),
        (
            {
                "poll": {
                    "question": {"text": "Tea?"},
                    "answers": [{"poll_media": {"text": "yes"}}, {"poll_media": {"text": "no"}}],
                }
            },
            "[poll Tea?: yes / no]",
        ),
        ({"poll": {"question": None}}, "[poll : ]"),
    ],
)
def test_fc_att_03_what_is_not_words_has_a_stand_in(more: Any, text: str) -> None:
    assert one(said("", **more)).text == text


def test_fc_att_03_a_forward_is_the_words_of_others_and_a_voice_message_a_file() -> None:
    inner = {"content": "forwarded words", "attachments": [{"id": "8", "filename": "x.ogg"}]}
    reference = {"type": 1, "message_id": "5"}
    data = said("", message_reference=reference, message_snapshots=[{"message": inner}])
    event = one(data)
    assert (event.text, bool(event.forwarded), event.quote) == ("forwarded words", True, None)
    assert [each.id for each in event.attachments] == [f"{CHANNEL}/{data['id']}/8"]
    voice = one(said("", flags=1 << 13, attachments=[{"id": "9", "content_type": "audio/ogg"}]))
    assert [each.kind for each in voice.attachments] == ["voice"]


@pytest.mark.parametrize("kind", [1, 3, 6, 7, 8, 12, 18, 20, 21, 46, None, "0"])
def test_fc_att_03_what_the_server_says_is_no_message(kind: Any) -> None:
    assert none(said(type=kind))


def test_own_and_empty_messages_are_none() -> None:
    assert none(said(author={"id": ME}))
    assert none(said(""))
    assert none(said(author={}))


def test_bots_and_webhooks_are_marked() -> None:
    assert one(said(author={"id": EVE, "bot": True})).sender.bot
    assert one(said(webhook_id="5")).sender.bot
    assert not one(said()).sender.bot


def test_a_name_is_a_label_on_one_line() -> None:
    event = one(said(author={"id": ADA, "username": "a\nb" * 100}, member={"nick": None}))
    assert len(event.sender.name) <= 64
    assert "\n" not in event.sender.name
    assert one(said(member={"nick": "Ada at work"})).sender.name == "Ada at work"


def test_a_long_text_may_go_on() -> None:
    assert one(said("x" * 1950)).continues
    assert not one(said("x" * 1000)).continues


def test_fc_thr_06_a_mention_begins_a_thread_under_its_own_id() -> None:
    mention = {"mentions": [{"id": ME, "username": "bot"}]}
    message = said(f"<@{ME}> task", **mention)
    assert one(message, replies="thread").address.thread == message["id"]
    assert one(said("talk"), replies="thread").address.thread == ""
    assert one({**message, "channel_id": THREAD}, replies="thread").address.thread == THREAD
    edit = {**message, "edited_timestamp": "2026-01-01T11:00:00+00:00"}
    assert one(edit, "MESSAGE_UPDATE", "thread").address.thread == message["id"]


def test_fc_thr_09_the_message_that_a_thread_began_at_lies_outside_of_it() -> None:
    """Except the first one of a post in a forum."""
    places = scene().places
    begun = Address("discord", CHANNEL, THREAD, GUILD, Place.GROUP)
    post = Address("discord", FORUM, POST, GUILD, Place.GROUP)
    assert lives_in(begun, THREAD, places) == CHANNEL
    assert lives_in(begun, "5", places) == THREAD
    assert lives_in(post, POST, places) == POST
    assert lives_in(Address("discord", CHANNEL), "5", places) == CHANNEL


def test_an_edit_is_one_of_the_words_alone() -> None:
    edited = said("new", edited_timestamp="2026-01-01T11:00:00.5+00:00")
    event = one(edited, "MESSAGE_UPDATE")
    assert (event.kind, event.message_id, event.text) == (Kind.EDIT, edited["id"], "new")
    assert event.sent_at == datetime(2026, 1, 1, 11, 0, 0, 500_000, UTC)
    assert none(said("new", edited_timestamp=None), "MESSAGE_UPDATE")
    again = one({**edited, "embeds": [{"title": "a link"}]}, "MESSAGE_UPDATE")
    assert again.native_id == event.native_id


def test_a_reaction_to_others_is_nothing_to_us() -> None:
    data = {
        "user_id": ADA,
        "channel_id": CHANNEL,
        "guild_id": GUILD,
        "message_id": "5",
        "emoji": {"id": "9", "name": "wave"},
        "message_author_id": ME,
    }
    event = one(data, "MESSAGE_REACTION_ADD")
    assert (event.kind, event.data, event.native_id) == (
        Kind.REACTION,
        "wave:9",
        "reaction:s:5",
    )
    assert none({**data, "message_author_id": EVE}, "MESSAGE_REACTION_ADD")
    assert none({**data, "user_id": ME}, "MESSAGE_REACTION_ADD")


def test_a_subcommand_is_written_out() -> None:
    options = [{"type": 1, "name": "add", "options": [{"type": 4, "name": "n", "value": 5}]}]
    data = {
        "id": "1200000000000000009",
        "type": 2,
        "channel_id": THREAD,
        "guild_id": GUILD,
        "member": {"user": {"id": ADA, "username": "ada"}},
        "data": {"type": 1, "name": "note", "options": options},
    }
    event = interaction_of(data, scene())
    assert event is not None
    assert (event.text, event.address.thread) == ("/note add 5", THREAD)
    assert interaction_of({**data, "type": 4}, scene()) is None


JUNK = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-5, 10**19),
        st.sampled_from(["", "5", "\ud800", "a b", "2026-01-01"]),
        st.just(ME),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["id", "author", "user", "type", "message", "content", "name"]),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=8,
)


@quick
@given(
    st.sampled_from([*sorted(said()), "poll", "sticker_items", "attachments", "emoji", "ids"]),
    JUNK,
    st.sampled_from(
        [
            "MESSAGE_CREATE",
            "MESSAGE_UPDATE",
            "MESSAGE_DELETE",
            "MESSAGE_DELETE_BULK",
            "MESSAGE_REACTION_ADD",
            "THREAD_CREATE",
            "x",
        ]
    ),
)
def test_no_event_raises_however_broken(field: str, junk: Any, name: str) -> None:
    """One malformed event never ends a connection."""
    data = said(
        message_reference={"type": 1},
        message_snapshots=[{"message": {"content": "x"}}],
        edited_timestamp="2026-01-01T11:00:00+00:00",
    )
    data[field] = junk
    here = scene()
    here.places.learn(name, data)
    for event in translate(Dispatch(name, data, 1, "s:1"), here):
        assert event.native_id
        event.text.encode()
    interaction_of({**data, "type": 2, "member": junk, "data": junk}, here)


@quick
@given(st.text(alphabet=st.sampled_from("ab <@!&>\n😀" + ME[0] + ME[-1]), max_size=30))
def test_a_text_without_the_bots_name_is_kept(text: str) -> None:
    event = translate(Dispatch("MESSAGE_CREATE", said(text), 1, "s:1"), scene())
    assert [each.text for each in event] == ([text.strip()] if text.strip() else [])
