"""Where something was said, and by whom: what lists and routes may name of it."""

from datetime import UTC, datetime

import attrs
import pytest

from dragoman import Address, Inbound, Place, Sender
from dragoman.flow.routing import Router
from dragoman.keys import Scope, ScopeRule
from dragoman.manifest.model import Access, Manifest, Profile, Route
from dragoman.testing import VirtualClock
from stage import gateway

pytestmark = pytest.mark.anyio

THREAD = Inbound(
    native_id="1",
    address=Address("stub", "200", thread="900", workspace="1", place=Place.GROUP),
    sender=Sender("7"),
    text="hello",
    sent_at=datetime.now(UTC),
    message_id="m",
    within=("50",),
)
"""A thread of a channel in a category of a server; a forum's post looks the same."""
SIBLING = attrs.evolve(
    THREAD, address=attrs.evolve(THREAD.address, channel="201", thread="901"), within=("51",)
)


async def deliver(stage, event, **changes):
    await stage.platform.connected.wait()
    await stage.platform._deliver(attrs.evolve(event, sent_at=datetime.now(UTC), **changes))


@pytest.mark.parametrize(
    ("listed", "event", "admitted"),
    [
        ("stub:900", THREAD, True),
        ("stub:200", THREAD, True),
        ("stub:50", THREAD, True),
        ("stub:1", SIBLING, True),
        ("stub:200", SIBLING, False),
        ("stub:50", SIBLING, False),
        ("stub:1:200", THREAD, True),
        ("stub:1:50", THREAD, True),
        ("stub:1:200:900", THREAD, True),
        ("stub:2:200", THREAD, False),
        ("stub:2", THREAD, False),
        ("stub", THREAD, False),
        ("stub:", THREAD, False),
    ],
)
async def test_fc_thr_05_a_list_names_thread_channel_category_or_server(
    listed, event, admitted, caplog
):
    """Invariant 15: and who is not let in is in the log with the reason; replies go to the thread."""
    caplog.set_level("INFO")
    async with gateway(access=Access(channels=(listed,))) as stage:
        await deliver(stage, event)
        await stage.until_final()
        assert await stage.states("inbound_events", "rule") == [
            "channels" if admitted else "not on any list"
        ]
        assert bool(stage.platform.shown(event.address.channel, event.address.thread)) == admitted
        refused = [one for one in caplog.messages if "refused: not on any list" in one]
        assert bool(refused) == (not admitted)
        if admitted:
            thread = await stage.rows("SELECT channel, thread FROM conversation_keys")
            assert thread == [(event.address.channel, event.address.thread)]


@pytest.mark.parametrize(
    ("listed", "admitted"), [("stub:7", False), ("stub:-100:7", True), ("stub:-100", True)]
)
async def test_where_there_are_no_workspaces_a_thread_is_named_with_its_channel(listed, admitted):
    """Invariant 15: its id is a number of that channel, and another channel's may be the same."""
    address = Address("stub", "-100", thread="7", place=Place.GROUP)
    async with gateway(access=Access(channels=(listed,))) as stage:
        await deliver(stage, attrs.evolve(THREAD, address=address, within=()))
        await stage.until_final()
        assert (await stage.states("inbound_events") == ["answered"]) == admitted


@pytest.mark.parametrize(
    ("listed", "workspace", "admitted"),
    [
        ("stub:7", "", True),
        ("stub:T1:7", "T1", True),
        ("stub:T1:7", "T2", False),
        ("stub:7", "T1", False),
        ("stub:1:7", "", False),
    ],
)
async def test_a_person_is_named_with_the_workspace_that_the_id_belongs_to(
    listed, workspace, admitted
):
    """FC-AUT-01: not with the one where it was said: a guest keeps the id of another workspace."""
    async with gateway(access=Access(users=(listed,))) as stage:
        await deliver(stage, THREAD, sender=Sender("7", workspace=workspace))
        await stage.until_final()
        assert (await stage.states("inbound_events") == ["answered"]) == admitted


def test_a_route_may_name_what_holds_a_channel():
    """A7: the channel itself is more specific, then what is nearer; a person is more than both."""

    def chosen(*routes, event=THREAD):
        made = tuple(Route(profile=name, **keys) for name, keys in routes)
        names = ("thread", "near", "near2", "far", "person", "server", "default")
        profiles = {name: Profile(runtime="echo") for name in names}
        found = Router.of(Manifest(routes=made, profiles=profiles)).choose(event)
        return found.name

    event = attrs.evolve(THREAD, within=("50", "5"))
    near, far = ("near", {"channel": "50"}), ("far", {"channel": "5"})
    assert chosen(far, event=event) == "far"
    assert chosen(far, near, event=event) == "near"
    assert chosen(far, near, ("near2", {"channel": "200"}), event=event) == "near2"
    assert chosen(near, ("thread", {"thread": "900"}), event=event) == "thread"
    assert chosen(near, ("server", {"workspace": "1"}), event=event) == "near"
    assert chosen(near, ("person", {"user": "7"}), event=event) == "person"
    assert chosen(near, event=SIBLING) == "default"


def following(number, text="and more?", **changes):
    event = attrs.evolve(THREAD, native_id=number, message_id=number, text=text)
    return attrs.evolve(event, **{"addressed": False, "follows": True, **changes})


async def test_fc_thr_04_a_thread_in_which_the_bot_takes_part_needs_no_mention(tmp_path):
    """A2: also in another process; one in which it takes no part is not its business."""
    everybody = {"access": Access(channels=("stub:1",)), "store": tmp_path / "a.db"}
    async with gateway(**everybody) as stage:
        await deliver(stage, THREAD)
        await stage.until("inbound_events", ["answered"])
        await deliver(stage, following("2"))
        await stage.until("inbound_events", ["answered"] * 2)
        elsewhere = attrs.evolve(THREAD.address, thread="901")
        await deliver(stage, following("3", address=elsewhere))
        await stage.until("inbound_events", ["answered", "answered", "ignored"])
    async with gateway(**everybody) as stage:
        await deliver(stage, following("4"))
        await deliver(stage, following("5", follows=False))
        await stage.until("inbound_events", ["answered"] * 2 + ["ignored", "answered", "ignored"])
        assert len(await stage.rows("SELECT id FROM platform_sessions")) == 1


async def test_a_thread_is_followed_only_where_it_has_a_session_of_its_own():
    """FC-THR-04: what a whole channel shares says nothing of one thread."""
    profile = Profile(runtime="scripted", scope=ScopeRule(group=Scope.CHANNEL))
    async with gateway(access=Access(channels=("stub:1",)), profiles={"default": profile}) as stage:
        await deliver(stage, THREAD)
        await stage.until("inbound_events", ["answered"])
        await deliver(stage, following("2"))
        await stage.until("inbound_events", ["answered", "ignored"])


async def test_what_the_account_says_itself_is_ignored():
    """FC-LOP-01."""
    async with gateway() as stage:
        await stage.platform.connected.wait()
        event = attrs.evolve(THREAD, address=Address("stub", "1"), sender=Sender("0", own=True))
        await deliver(stage, event)
        await stage.until("inbound_events", ["ignored"])
        assert await stage.states("inbound_events", "reason") == ["sent by this account"]
        assert await stage.states("inbound_events", "rule") == [""]


async def test_a_message_that_is_only_passed_on_gives_no_command():
    """FC-AUT-05: a stranger's words are not the sender's; nothing is done at their word."""
    async with gateway() as stage:
        await stage.platform.say("/new", forwarded="a stranger")
        await stage.until("inbound_events", ["answered"])
        assert stage.runtime.requests[0].inputs[0].words == "[forwarded from a stranger]\n> /new"


PLACES = {
    "dm": Address("stub", "1", workspace="1"),
    "channel": Address("stub", "1", workspace="1", place=Place.GROUP),
    "thread": Address("stub", "1", "9", workspace="1", place=Place.GROUP),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("mentions", [(True, True), (True, False), (False, True), (False, False)])
async def test_fc_dup_02_a_message_that_is_told_by_two_events_is_one(place, mentions):
    """Invariant 3: one turn, addressed if either event is, in either order, and no notice."""
    event = attrs.evolve(THREAD, address=PLACES[place], twin=True, within=())
    async with gateway() as stage:
        for number, mention in enumerate(mentions):
            await deliver(stage, event, native_id=f"Ev{number}", addressed=mention)
        await stage.until_final()
        count = int(any(mentions))
        assert len(stage.runtime.requests) == count
        assert len(stage.platform.messages) == count
        ends = ["answered", "merged"] if mentions[0] else ["ignored", "answered"]
        assert await stage.states("inbound_events") == (ends if count else ["ignored"] * 2)


async def test_fc_dup_02_only_the_same_message_is_one():
    """Another sender, message or thread is another message; nor is anything else looked for."""
    event = attrs.evolve(THREAD, address=PLACES["channel"], twin=True)
    others = [
        {"address": PLACES["thread"]},
        {"sender": Sender("8")},
        {"message_id": "n"},
        {"twin": False},
    ]
    async with gateway() as stage:
        for number, other in enumerate([{}, *others]):
            await deliver(stage, event, native_id=f"Ev{number}", **other)
            await stage.until_final()
        assert len(stage.runtime.requests) == 5


@pytest.mark.parametrize("mentions", [(True, False), (False, True)])
async def test_fc_dup_02_both_events_may_be_decided_by_another_process(tmp_path, mentions):
    """Invariant 5: a crash between the two, or before the first, changes nothing."""
    event = attrs.evolve(THREAD, address=PLACES["channel"], twin=True, within=())
    path = tmp_path / "a.db"
    async with gateway(store=path) as stage:
        await deliver(stage, event, native_id="Ev0", addressed=mentions[0])
        await stage.until_final()
        asked = len(stage.runtime.requests)
    async with gateway(store=path) as stage:
        await deliver(stage, event, native_id="Ev0", addressed=mentions[0])
        await deliver(stage, event, native_id="Ev1", addressed=mentions[1])
        await stage.until_final()
        assert asked + len(stage.runtime.requests) == 1


@pytest.mark.parametrize("mentions", [(True, False), (False, True), (False, False)])
async def test_fc_dup_02_a_piece_of_a_long_text_is_in_it_once(mentions):
    """What waits for more is addressed by the second event, too."""
    clock = VirtualClock()
    event = attrs.evolve(
        THREAD, address=PLACES["channel"], twin=True, within=(), continues=True, text="one, "
    )
    async with gateway(clock=clock) as stage:
        await stage.platform.connected.wait()
        for number, mention in enumerate(mentions):
            one = attrs.evolve(event, native_id=f"Ev{number}", addressed=mention)
            await stage.platform._deliver(attrs.evolve(one, sent_at=clock.now()))
        rest = {"native_id": "Ev2", "message_id": "n", "text": "two", "continues": False}
        await stage.platform._deliver(
            attrs.evolve(event, sent_at=clock.now(), addressed=False, **rest)
        )
        await clock.advance(3)
        await stage.quiet()
        asked = [request.inputs[0].text for request in stage.runtime.requests]
        assert asked == (["one, two"] if any(mentions) else [])
