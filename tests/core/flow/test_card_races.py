"""Decisions that meet: whatever comes first, a tool runs exactly where it was approved."""

from __future__ import annotations

from collections import Counter

import anyio
import anyio.lowlevel
import attrs
import pytest

from dragoman import ApprovalRequested, Finished, Kind, Paused, TextBlock
from dragoman.manifest.model import Limits, Profile
from dragoman.protocols import RuntimeCapabilities, ToolBegins, ToolCall
from dragoman.states import ApprovalState
from dragoman.store.operations import Decide
from dragoman.testing import ScriptedRuntime, StubPlugin, VirtualClock
from stage import can, gateway

pytestmark = pytest.mark.anyio

CAN = RuntimeCapabilities(stream=True, approve=True, resume=True, journal=True)
RACES = 100


@attrs.define(eq=False)
class Refunds:
    """An agent whose one tool asks, and counts how often it ran in each channel."""

    ran: Counter[str] = attrs.field(factory=Counter)

    async def script(self, request, host):
        if request.saved is None:
            yield ApprovalRequested("call_1", "refund", "{}")
            yield Paused("a state")
            return
        (decision,) = request.decisions
        if decision.verdict is ApprovalState.APPROVED:
            begun = await host.tool_begins(ToolCall("call_1", "refund", "{}"))
            assert isinstance(begun, ToolBegins)
            self.ran[request.address.channel] += 1
        yield TextBlock("1", f"refund {decision.verdict.value}")
        yield Finished()

    def plugin(self):
        plugin = StubPlugin()
        plugin.runtimes["scripted"] = ScriptedRuntime(self.script, capabilities=CAN)
        plugin.platform().capabilities = can(buttons=3, answers=True)
        return plugin


def deployment(**profile):
    return {
        "limits": Limits(grace=0.5, concurrent_turns=200),
        "profiles": {"default": Profile(runtime="scripted", **profile)},
    }


async def cards_of(stage):
    """Let a question be asked in each of many channels; return the cards by channel."""
    for channel in range(RACES):
        await stage.platform.say("refund", channel=str(channel))
    await stage.until("agent_runs", ["waiting"] * RACES)
    await stage.quiet()
    cards = {one.address.channel: one for one in stage.platform.messages}
    assert len(cards) == RACES
    return cards


async def press(stage, channel, card, data):
    where = {"channel": channel, "message_id": card.native_id}
    native_id = f"{channel} {data[-1]}"
    await stage.platform.say("", kind=Kind.PRESS, data=data, native_id=native_id, **where)


async def verdicts(stage):
    """Return what was decided, by channel."""
    rows = await stage.rows(
        "SELECT e.event ->> '$.address.channel', a.verdict FROM approvals AS a"
        " JOIN inbound_events AS e ON e.turn_id = a.turn_id"
    )
    return dict(rows)


def outcomes(cards):
    """Return what the cards say, by channel."""
    return {channel: card.text.splitlines()[-1] for channel, card in cards.items()}


async def test_fc_apr_05_a_hundred_races_of_two_presses_and_an_operator_have_one_winner_each():
    """FC-APR-05, invariant 8: the tool ran where it was approved, once; each press is answered."""
    agent = Refunds()
    async with gateway(agent.plugin(), **deployment()) as stage:
        cards = await cards_of(stage)
        names = await stage.rows(
            "SELECT e.event ->> '$.address.channel', a.id FROM approvals AS a"
            " JOIN inbound_events AS e ON e.turn_id = a.turn_id"
        )
        data = {channel: [one.data for one in card.buttons] for channel, card in cards.items()}
        async with anyio.create_task_group() as tasks:
            for channel, name in names:
                first = int(channel) % 2
                operator = ApprovalState.DENIED if int(channel) % 3 else ApprovalState.APPROVED
                wish = Decide(approval_id=name, verdict=operator, by="operator:root", now=1.0)
                if int(channel) % 5 == 0:
                    tasks.start_soon(stage.app.store.apply, wish)
                for number in (first, 1 - first):
                    tasks.start_soon(press, stage, channel, cards[channel], data[channel][number])
        await stage.until_final()
        await stage.quiet()
        decided = await verdicts(stage)
        assert set(decided.values()) == {"approved", "denied"}
        assert agent.ran == Counter(name for name, one in decided.items() if one == "approved")
        assert outcomes(cards) == {name: f"`refund`: {one}." for name, one in decided.items()}
        assert not any(card.buttons for card in cards.values())
        answers = Counter(bool(text) for _, text in stage.platform.answered)
        winners = await stage.rows("SELECT count(*) FROM approvals WHERE event_id IS NOT NULL")
        assert answers == {False: winners[0][0], True: 2 * RACES - winners[0][0]}


async def test_fc_apr_04_a_press_at_the_last_instant_or_the_end_of_the_time_wins():
    """FC-APR-04: pressed in time, too late, and while the time ends; never both, never neither."""
    agent, clock = Refunds(), VirtualClock()
    async with gateway(agent.plugin(), clock=clock, **deployment(approval_timeout=300)) as stage:
        cards = await cards_of(stage)
        data = {channel: card.buttons[0].data for channel, card in cards.items()}

        async def presses(first, last, pause=0):
            for number in range(first, last):
                await press(stage, str(number), cards[str(number)], data[str(number)])
                for _ in range(pause):
                    await anyio.lowlevel.checkpoint()

        await clock.advance(299.9)
        await presses(0, 20)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(presses, 20, 80, 3)
            for _ in range(20):
                await clock.advance(0.01)
        await presses(80, RACES)
        await clock.advance(1)
        await stage.until_final()
        await clock.advance(60)
        await stage.quiet()
        decided = await verdicts(stage)
        assert set(decided.values()) == {"approved", "expired"}
        assert agent.ran == Counter(name for name, one in decided.items() if one == "approved")
        said = {"approved": "approved", "expired": "not decided in time"}
        assert outcomes(cards) == {name: f"`refund`: {said[one]}." for name, one in decided.items()}
        assert len(stage.platform.answered) == RACES


async def test_fc_apr_04_a_press_and_a_stop_leave_no_tool_that_runs_unapproved():
    """FC-APR-04, B11: what was approved may still be stopped before it runs; nothing else runs."""
    agent = Refunds()
    async with gateway(agent.plugin(), **deployment()) as stage:
        cards = await cards_of(stage)
        data = {channel: card.buttons[0].data for channel, card in cards.items()}
        async with anyio.create_task_group() as tasks:
            for number, (channel, card) in enumerate(cards.items()):
                stop = {"channel": channel, "native_id": f"stop {channel}"}
                if number % 2:
                    tasks.start_soon(press, stage, channel, card, data[channel])
                    await anyio.lowlevel.checkpoint()
                tasks.start_soon(lambda stop=stop: stage.platform.say("/stop", **stop))
                if not number % 2:
                    await anyio.lowlevel.checkpoint()
                    tasks.start_soon(press, stage, channel, card, data[channel])
        await stage.until_final()
        await stage.quiet()
        decided = await verdicts(stage)
        assert set(decided.values()) == {"approved", "cancelled"}
        approved = {name for name, one in decided.items() if one == "approved"}
        assert set(agent.ran) <= approved
        assert set(agent.ran.values()) <= {1}
        assert outcomes(cards) == {name: f"`refund`: {one}." for name, one in decided.items()}
        assert len(stage.platform.answered) == RACES
