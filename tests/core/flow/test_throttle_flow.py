"""How much people, conversations and bots may say."""

import attrs
import pytest

from dragoman import ApprovalRequested, Finished, Kind, Paused, Place, Sender, TextBlock
from dragoman.flow.throttle import BOT_TOO_MANY, TOO_MANY, TOO_MANY_NOTICE, Window
from dragoman.manifest.model import Access, Limits, Profile
from dragoman.protocols import RuntimeCapabilities
from dragoman.testing import ScriptedRuntime, StubPlugin, VirtualClock
from stage import can, gateway

pytestmark = pytest.mark.anyio


async def talk(stage, count, first=0, **more):
    for number in range(first, first + count):
        await stage.platform.say(f"message {number}", **more)
    await stage.quiet()


async def ended(stage):
    return await stage.rows("SELECT state, reason FROM inbound_events ORDER BY id")


async def test_a_person_who_says_too_much_is_told_once_in_a_minute():
    """Invariant 3: refused visibly; what follows in that minute, silently, and it is recorded."""
    clock = VirtualClock()
    limits = Limits(person_rate=3)
    async with gateway(clock=clock, limits=limits, access=Access(users=("stub:7",))) as stage:
        await talk(stage, 6, user="7")
        assert await ended(stage) == [("answered", "")] * 3 + [("refused", TOO_MANY)] * 3
        assert stage.platform.shown().count(TOO_MANY_NOTICE) == 1
        assert await stage.states("inbound_events", "rule") == ["users"] * 6
        await clock.advance(59)
        await talk(stage, 1, 6, user="7")
        await clock.advance(2)
        await talk(stage, 4, 7, user="7")
        assert (await ended(stage))[6:] == [
            ("refused", TOO_MANY),
            *[("answered", "")] * 3,
            ("refused", TOO_MANY),
        ]
        assert stage.platform.shown().count(TOO_MANY_NOTICE) == 2


async def test_the_minute_slides():
    clock = VirtualClock()
    async with gateway(clock=clock, limits=Limits(person_rate=2)) as stage:
        await talk(stage, 1)
        await clock.advance(40)
        await talk(stage, 1, 1)
        await clock.advance(21)
        await talk(stage, 2, 2)
        assert [state for state, _ in await ended(stage)] == ["answered"] * 3 + ["refused"]


async def test_limits_are_those_of_one_person_on_one_platform():
    """Invariant 11: nobody else is refused; a person is the same in every channel."""
    clock = VirtualClock()
    async with gateway(clock=clock, limits=Limits(person_rate=1)) as stage:
        await talk(stage, 1, user="7", channel="1")
        await talk(stage, 1, user="7", channel="2")
        await talk(stage, 1, user="8", channel="1")
        states = [state for state, _ in await ended(stage)]
        assert states == ["answered", "refused", "answered"]


async def test_a_conversation_has_a_limit_of_its_own():
    """Invariant 10: of many people together; each of them is told once."""
    clock = VirtualClock()
    async with gateway(clock=clock, limits=Limits(conversation_rate=2)) as stage:
        for user in "789789":
            await talk(stage, 1, user=user, channel="1", place=Place.GROUP)
        await talk(stage, 1, user="7", channel="1", thread="5", place=Place.GROUP)
        states = [state for state, _ in await ended(stage)]
        assert states == ["answered"] * 2 + ["refused"] * 4 + ["answered"]
        assert stage.platform.shown("1").count(TOO_MANY_NOTICE) == 3


async def test_no_limit_is_none():
    clock = VirtualClock()
    limits = Limits(person_rate=0, conversation_rate=0, queued_per_session=1000)
    async with gateway(clock=clock, limits=limits) as stage:
        await talk(stage, 300)
        assert {state for state, _ in await ended(stage)} == {"answered"}


async def test_strangers_and_what_does_not_address_the_bot_are_not_counted():
    clock = VirtualClock()
    async with gateway(clock=clock, limits=Limits(person_rate=1)) as stage:
        await talk(stage, 3, user="7", channel="1", place=Place.GROUP, addressed=False)
        await talk(stage, 3, user="7", channel="elsewhere")
        await talk(stage, 1, user="7", channel="1", place=Place.GROUP)
        reasons = [reason for _, reason in await ended(stage)]
        assert reasons == ["not addressed"] * 3 + ["not on any list"] * 3 + [""]


CAN = RuntimeCapabilities(stream=True, approve=True, resume=True, journal=True)


def asking():
    """Return a plugin whose turns ask first."""

    async def script(request, host):
        if request.saved is None:
            yield ApprovalRequested("call-1", "refund", "{}")
            yield Paused("state")
        else:
            yield TextBlock("1", "decided")
            yield Finished()

    plugin = StubPlugin(runtimes={"scripted": ScriptedRuntime(script, capabilities=CAN)})
    plugin.platform().capabilities = can(buttons=5, answers=True)
    return plugin


@pytest.mark.parametrize(("word", "verdict"), [("/approve", "approved"), ("/deny", "denied")])
async def test_whoever_is_in_trouble_can_always_decide(word, verdict):
    """FC-APR-01: no limit holds up a decision; other commands count."""
    clock = VirtualClock()
    async with gateway(asking(), clock=clock, limits=Limits(person_rate=1)) as stage:
        await talk(stage, 2)
        await stage.platform.say("/status")
        await stage.platform.say(word)
        await stage.quiet()
        assert (await ended(stage))[1:3] == [("refused", TOO_MANY)] * 2
        assert await stage.rows("SELECT verdict FROM approvals") == [(verdict,)]


async def test_fc_con_03_whoever_is_in_trouble_can_always_stop():
    clock = VirtualClock()

    async def script(request, host):
        yield TextBlock("1", "on and on")
        await clock.sleep(100)
        yield Finished()

    plugin = StubPlugin(runtimes={"scripted": ScriptedRuntime(script)})
    async with gateway(plugin, clock=clock, limits=Limits(person_rate=1)) as stage:
        await talk(stage, 2)
        await stage.platform.say("/stop")
        await stage.quiet()
        await clock.advance(1)
        await stage.quiet()
        assert await stage.states("agent_runs") == ["cancelled"]
        assert (await ended(stage))[2] == ("handled", "command /stop")


async def test_a_press_that_decides_is_never_too_much():
    """FC-APR-05."""
    async with gateway(asking(), clock=VirtualClock(), limits=Limits(person_rate=1)) as stage:
        await talk(stage, 2)
        (card,) = [one for one in stage.platform.messages if "May I run" in one.text]
        await stage.platform.say(
            "", kind=Kind.PRESS, data=card.buttons[0].data, message_id=card.native_id
        )
        await stage.quiet()
        assert await stage.rows("SELECT verdict FROM approvals") == [("approved",)]


async def test_the_parts_of_an_album_count_once():
    """FC-CON-01: also those that come after the turn has begun."""
    clock = VirtualClock()
    async with gateway(clock=clock, limits=Limits(person_rate=1)) as stage:
        for number in range(3):
            await stage.platform.say(f"{number}", album="a", message_id=f"{number}")
        await clock.advance(2)
        await stage.quiet()
        await stage.platform.say("late", album="a", message_id="9")
        await clock.advance(2)
        await stage.quiet()
        assert "refused" not in [state for state, _ in await ended(stage)]
        await talk(stage, 1)
        assert (await ended(stage))[-1] == ("refused", TOO_MANY)


def test_nothing_is_kept_of_who_said_nothing_for_a_minute():
    """Invariant 10."""
    window = Window(2, 60.0)
    for number in range(1000):
        assert not window.full((number,), number, number / 10)
        window.add((number,), number, number / 10)
    assert len(window._said) == 600
    assert not window.full(("x",), "x", 200.0)
    assert window._said == {}


def test_what_is_decided_on_again_is_counted_once():
    """After the store was away, for one."""
    window = Window(1, 60.0)
    window.add(("a",), 1, 0.0)
    assert not window.full(("a",), 1, 1.0)
    assert window.full(("a",), 2, 1.0)


# -- bots ------------------------------------------------------------------------------------------

BOT = Sender("800", bot=True)
OPEN = Access(users=("stub:7",), bots=("stub:800",), channels=("stub:1", "stub:2"))


async def bot_says(stage, text, *, channel="1", sender=BOT, **more):
    """Say something as another account, in a group."""
    await stage.platform.connected.wait()
    deliver = stage.platform._deliver

    async def changed(event):
        await deliver(attrs.evolve(event, sender=sender))

    stage.platform._deliver = changed
    await stage.platform.say(text, channel=channel, place=Place.GROUP, **more)
    stage.platform._deliver = deliver
    await stage.quiet()


async def test_fc_lop_01_a_listed_bot_has_a_budget_that_a_person_resets(caplog):
    """FC-LOP-01: two agents that answer each other come to an end, with one line in the log."""
    clock = VirtualClock()
    async with gateway(clock=clock, access=OPEN) as stage:
        for number in range(12):
            await bot_says(stage, f"answer {number}")
            await clock.advance(5)
        assert await ended(stage) == [("answered", "")] * 5 + [("ignored", BOT_TOO_MANY)] * 7
        assert stage.platform.shown("1") == [f"answer {number}" for number in range(5)]
        lines = [one for one in caplog.messages if "says too much" in one]
        assert len(lines) == 1
        await bot_says(stage, "elsewhere", channel="2")
        assert (await ended(stage))[-1] == ("answered", "")
        await stage.platform.say("by the way", user="7", place=Place.GROUP, addressed=False)
        await stage.quiet()
        await bot_says(stage, "again")
        assert (await ended(stage))[-1] == ("answered", "")


async def test_fc_lop_01_a_bot_may_go_on_after_ten_minutes():
    clock = VirtualClock()
    limits = Limits(bot_messages=1)
    async with gateway(clock=clock, access=OPEN, limits=limits) as stage:
        await bot_says(stage, "one")
        await clock.advance(599)
        await bot_says(stage, "two")
        await clock.advance(2)
        await bot_says(stage, "three")
        states = [state for state, _ in await ended(stage)]
        assert states == ["answered", "ignored", "answered"]


@pytest.mark.parametrize(
    ("sender", "reason"),
    [
        (Sender("801", bot=True), "sent by a bot"),
        (Sender("800", bot=True, workspace="T1"), "sent by a bot"),
        (Sender("800", bot=True, own=True), "sent by this account"),
    ],
)
async def test_fc_lop_01_no_other_bot_is_heard_and_never_the_account_itself(sender, reason):
    """Even where a list names it, or the channel is open for everybody."""
    async with gateway(clock=VirtualClock(), access=OPEN) as stage:
        await bot_says(stage, "hello", sender=sender)
        assert await ended(stage) == [("ignored", reason)]
        assert stage.platform.calls == []


async def test_a_bot_uses_no_commands_and_presses_nothing():
    """FC-LOP-01: its words are words, and its presses are nobody's."""
    profiles = {"default": Profile(runtime="scripted", approvers=("requester", "stub:800"))}
    clock = VirtualClock()
    async with gateway(asking(), clock=clock, access=OPEN, profiles=profiles) as stage:
        await bot_says(stage, "refund")
        await bot_says(stage, "/approve")
        await bot_says(stage, "/stop")
        (card,) = [one for one in stage.platform.messages if "May I run" in one.text]
        assert len(card.buttons) == 3
        for button in card.buttons:
            await bot_says(stage, "", kind=Kind.PRESS, data=button.data, message_id=card.native_id)
        assert await stage.rows("SELECT verdict FROM approvals") == [("open",)]
        assert await stage.states("agent_runs") == ["waiting"]


async def test_fc_lop_01_after_a_stop_no_bot_is_answered_until_a_person_goes_on():
    """FC-LOP-01: neither by the turn that was stopped, nor by the next ones."""
    clock = VirtualClock()

    async def script(request, host):
        await clock.sleep(10)
        yield TextBlock("1", "late")
        yield Finished()

    plugin = StubPlugin(runtimes={"scripted": ScriptedRuntime(script)})
    async with gateway(plugin, clock=clock, access=OPEN) as stage:
        await bot_says(stage, "one")
        await stage.platform.say("/stop", user="7", place=Place.GROUP)
        await clock.advance(20)
        await stage.quiet()
        assert await stage.states("agent_runs") == ["cancelled"]
        await bot_says(stage, "two")
        await bot_says(stage, "elsewhere", channel="2")
        assert (await ended(stage))[2:] == [("ignored", BOT_TOO_MANY), ("adopted", "")]
        await stage.platform.say("go on", user="7", place=Place.GROUP, addressed=False)
        await stage.quiet()
        await bot_says(stage, "three")
        await clock.advance(20)
        await stage.quiet()
        assert stage.platform.shown("1").count("late") == 1
        assert stage.platform.shown("2") == ["late"]
