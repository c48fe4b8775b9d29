"""Which profile and session an event belongs to, and that nothing of one reaches another."""

import itertools
from datetime import UTC, datetime

import anyio
import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import (
    Address,
    Finished,
    Inbound,
    Place,
    Scope,
    ScopeRule,
    Sender,
    TextBlock,
)
from dragoman.flow.routing import Router
from dragoman.keys import ConversationKey, conversation_key
from dragoman.manifest.model import Access, Manifest, Profile, Route
from dragoman.testing import ScriptedRuntime, StubPlugin
from stage import gateway, table

names = st.sampled_from(["", "a", "b", "a:b", ":", "-", "a\x00"])
places = st.sampled_from(list(Place))
situations = st.builds(
    lambda platform, workspace, channel, thread, place, user: (
        Address(platform, channel, thread, workspace, place),
        Sender(user),
    ),
    names,
    names,
    names,
    names,
    places,
    names,
)


def _identity(address, sender, scope):
    """What two situations have to share to be one conversation."""
    if scope is Scope.PERSON and address.place is Place.DM:
        return _person(sender)
    base = (address.platform, address.workspace, address.channel)
    if scope is Scope.CHANNEL:
        return base
    return (*base, address.thread, *([sender.id] if scope is Scope.USER else []))


def _person(sender):
    """Accounts of one id are one person's, whatever their platform."""
    return f"person {sender.id}"


def _rule(dm, group):
    return ScopeRule(dm=dm, group=Scope.THREAD if group is Scope.PERSON else group)


@given(situations, situations, st.sampled_from(list(Scope)))
def test_keys_are_equal_exactly_where_the_scope_says_so(one, other, scope):
    """A1, A2: injective over (platform, workspace, channel, thread, user) or person per scope."""
    rule = _rule(scope, scope)
    first, second = (conversation_key(*each, rule, _person(each[1])) for each in (one, other))
    assert (first == second) == (_identity(*one, scope) == _identity(*other, scope))


@given(situations)
def test_display_names_and_texts_are_no_part_of_a_key(one):
    """A3."""
    address, sender = one
    named = Sender(sender.id, name="somebody else")
    for dm, group in itertools.product(Scope, Scope):
        rule = _rule(dm, group)
        keys = {conversation_key(address, each, rule, "me") for each in (sender, named)}
        assert len(keys) == 1


def test_who_is_not_known_shares_nothing_with_others():
    """A2: without a person, what a person would share is what the place is."""
    rule = ScopeRule(dm=Scope.PERSON)
    for scoped in (rule, ScopeRule()):
        key = conversation_key(Address("stub", "c", "t"), Sender(""), scoped, "")
        assert key == ConversationKey("stub", "", "c", "t", "")
    with pytest.raises(ValueError, match="group"):
        ScopeRule(group=Scope.PERSON)


@pytest.mark.anyio
async def test_the_table_keeps_one_row_for_a_conversation_without_thread():
    """A2: uniqueness holds where there is no thread."""
    async with gateway() as stage:
        for _ in range(3):
            await stage.platform.say("hello")
        await stage.until_final()
        assert await stage.rows("SELECT count(*) FROM conversation_keys") == [(1,)]
        assert await stage.rows("SELECT count(*) FROM platform_sessions") == [(1,)]


@pytest.mark.anyio
@pytest.mark.parametrize("place", [Place.DM, Place.GROUP])
@pytest.mark.parametrize(
    ("scope", "sessions"),
    [(Scope.CHANNEL, 2), (Scope.THREAD, 4), (Scope.USER, 8)],
)
async def test_scopes_decide_what_shares_a_session(place, scope, sessions):
    other = Scope.USER if scope is not Scope.USER else Scope.CHANNEL
    rule = ScopeRule(**{"dm": other, "group": other, place.value: scope})
    async with gateway(profiles={"default": Profile(runtime="scripted", scope=rule)}) as stage:
        for channel, thread, user in itertools.product("12", ("", "t"), "78"):
            await stage.platform.say("x", channel=channel, thread=thread, user=user, place=place)
        await stage.until_final()
        assert len({one.session_id for one in stage.runtime.requests}) == sessions


def _inbound(**where):
    user = where.pop("user", "u")
    return Inbound(
        "1",
        Address(where.pop("platform", "p"), where.pop("channel", "c"), **where),
        Sender(user),
        "x",
        datetime.now(UTC),
    )


FIELDS = ("platform", "workspace", "channel", "thread", "user")
VALUES = {"platform": "p", "workspace": "w", "channel": "c", "thread": "t", "user": "u"}


@given(st.permutations([frozenset(c) for n in range(6) for c in itertools.combinations(FIELDS, n)]))
def test_the_most_specific_route_wins_whatever_their_order(order):
    """User over thread over channel over workspace over platform."""
    routes = tuple(
        Route(profile="+".join(sorted(fields)) or "any", **{name: VALUES[name] for name in fields})
        for fields in order
    )
    profiles = {route.profile: Profile(runtime="r") for route in routes}
    router = Router.of(Manifest(routes=routes, profiles=profiles))
    event = _inbound(workspace="w", thread="t")
    assert router.choose(event).name == "+".join(sorted(FIELDS))
    assert router.choose(_inbound(user="x", platform="q", channel="d", thread="t")).name == "thread"
    for fields in itertools.combinations(FIELDS, 2):
        asked = {name: VALUES[name] if name in fields else "other" for name in FIELDS}
        assert router.choose(_inbound(**asked)).name == "+".join(sorted(fields))


@pytest.mark.anyio
async def test_fc_prf_01_two_bots_of_one_kind_share_nothing():
    """A person's direct chat has the same channel id with every bot."""
    plugin = StubPlugin()
    async with gateway(
        plugin,
        components=[table("platforms", "bot_a"), table("platforms", "bot_b")],
        profiles={"default": Profile(runtime="scripted"), "ops": Profile(runtime="echo")},
        routes=(Route(profile="ops", platform="bot_a", channel="700000001"),),
        access=Access(users=("stub:700000001",)),
    ) as stage:
        for bot in ("bot_a", "bot_b"):
            await plugin.platform(bot).say(f"to {bot}", channel="700000001", native_id="42")
        await stage.until_final()
        assert await stage.states("inbound_events") == ["answered", "answered"]
        assert plugin.platform("bot_a").shown("700000001") == ["to bot_a"]
        assert plugin.platform("bot_b").shown("700000001") == ["to bot_b"]
        assert sorted(
            await stage.rows(
                "SELECT k.platform, s.profile FROM platform_sessions s"
                " JOIN conversation_keys k USING (conversation_id)"
            )
        ) == [("bot_a", "ops"), ("bot_b", "default")]
        conversations = await stage.rows("SELECT DISTINCT conversation_id FROM platform_sessions")
        assert len(conversations) == 2


@pytest.mark.anyio
async def test_fc_con_07_a_turn_only_ever_sees_its_own_conversation():
    """Invariant 16: 200 interleaved pairs."""

    async def script(request, host):
        records = host.records("diary")
        await records.append([request.inputs[0].text])
        await anyio.lowlevel.checkpoint()
        diary = await records.read()
        yield TextBlock("1", f"{request.address.channel}/{request.session_id}: {'+'.join(diary)}")
        yield Finished()

    plugin = StubPlugin()
    plugin.runtimes["scripted"] = ScriptedRuntime(script)
    async with gateway(plugin) as stage:
        async with anyio.create_task_group() as people:
            for pair in range(200):
                for channel in (str(2 * pair), str(2 * pair + 1)):
                    people.start_soon(lambda c: stage.platform.say(f"I am {c}", channel=c), channel)
        await stage.until_final()
        sessions = dict(
            await stage.rows(
                "SELECT k.channel, s.id FROM platform_sessions s"
                " JOIN conversation_keys k USING (conversation_id)"
            )
        )
        assert len(sessions) == 400
        for channel, session in sessions.items():
            assert stage.platform.shown(channel) == [f"{channel}/{session}: I am {channel}"]


@pytest.mark.anyio
async def test_sessions_that_span_threads_take_events_in_order_of_receipt():
    """Invariant 14: a slow hook in one thread lets nothing of another thread overtake."""
    from dragoman import hookimpl

    class Slow:
        @hookimpl
        async def dragoman_admit(self, event, view):
            if event.address.thread == "slow" and not view.profile:
                await anyio.sleep(0.1)

    plugin = StubPlugin()
    plugin.extensions["slow"] = Slow()
    rule = ScopeRule(group=Scope.CHANNEL)
    async with gateway(
        plugin,
        components=[table("extensions", "slow"), table("platforms", "stub")],
        profiles={"default": Profile(runtime="scripted", scope=rule)},
    ) as stage:
        await stage.platform.say("first", thread="slow", place=Place.GROUP)
        await stage.platform.say("second", thread="quick", place=Place.GROUP)
        await stage.until_final()
        assert [one.inputs[0].text for one in stage.runtime.requests] == ["first", "second"]


few = st.sampled_from([None, "1", "2"])


@given(
    st.lists(st.builds(dict, **dict.fromkeys(FIELDS, few)), max_size=8),
    st.builds(dict, **{name: st.sampled_from("12") for name in FIELDS}),
    st.lists(st.sampled_from("12"), max_size=2),
    st.randoms(),
)
def test_what_a_manifest_may_say_has_one_meaning(written, where, within, random):
    """A7: routes that are not the same never claim an event with the same right; a channel and
    what holds it are told apart by which is nearer."""
    routes = {tuple(keys.values()): Route(profile=str(n), **keys) for n, keys in enumerate(written)}
    profiles = {"default": Profile(runtime="r")}
    profiles |= {route.profile: Profile(runtime="r") for route in routes.values()}
    event = attrs.evolve(_inbound(**where), within=tuple(within))
    chosen = set()
    for _ in range(3):
        order = list(routes.values())
        random.shuffle(order)
        found = Router.of(Manifest(routes=tuple(order), profiles=profiles)).choose(event)
        chosen.add(found.name)
    assert len(chosen) == 1
