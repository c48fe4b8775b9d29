"""Questions with buttons: who may press, what becomes of the card, and who is told what."""

from __future__ import annotations

import itertools
import logging
import re
from functools import partial

import attrs
import pytest

from dragoman import (
    ApprovalRequested,
    Failed,
    FailureKind,
    Finished,
    Gone,
    Kind,
    NotSent,
    Paused,
    Refused,
    TextBlock,
)
from dragoman.flow.cards import DATA
from dragoman.flow.decisions import NOT_YOURS
from dragoman.flow.presses import NO_BUTTON, NOT_ADMITTED
from dragoman.manifest.model import Access, Profile
from dragoman.protocols import RuntimeCapabilities
from dragoman.states import ApprovalState
from dragoman.store.operations import Decide
from dragoman.store.reads import Reads
from dragoman.testing import ScriptedRuntime, StubPlugin, VirtualClock
from lives import wreck
from stage import can, gateway

pytestmark = pytest.mark.anyio

NUMBERS = itertools.count()
CAN = RuntimeCapabilities(stream=True, approve=True, resume=True, journal=True)
REFUND = ApprovalRequested("call_1", "refund", '{"order": 7}')


async def asks(request, host, *, calls=(REFUND,)):
    """Ask about calls, then say what was decided; what does not ask is said again."""
    del host
    if request.inputs[0].text != "refund":
        yield TextBlock("1", request.inputs[0].text)
    elif request.saved is None:
        for call in calls:
            yield call
        yield Paused("a state")
        return
    else:
        told = [f"{one.tool} {one.verdict.value} {one.reason}".strip() for one in request.decisions]
        yield TextBlock("1", "; ".join(told))
    yield Finished()


def asking(script=asks, **capabilities):
    plugin = StubPlugin()
    plugin.runtimes["scripted"] = ScriptedRuntime(script, capabilities=CAN)
    plugin.platform().capabilities = can(**{"buttons": 5, "answers": True, **capabilities})
    return plugin


async def ask(stage, **where):
    """Let a person want a refund; return the card that comes."""
    before = len(stage.platform.messages)
    await stage.platform.say("refund", **where)
    await stage.quiet()
    (card,) = [one for one in stage.platform.messages[before:] if "May I run" in one.text]
    return card


async def press(stage, card, label, **changes):
    """Press a button of a card, or what is not quite that; return the press's own id."""
    known = {one.label: one.data for one in card.buttons}
    pressed = {
        "kind": Kind.PRESS,
        "data": known.get(label, ""),
        "channel": card.address.channel,
        "message_id": card.native_id,
        "native_id": f"press {next(NUMBERS)}",
    }
    pressed |= changes
    await stage.platform.say("", **pressed)
    return pressed["native_id"]


def comes_from(stage, **sender):
    """Let what comes from now on be of somebody else."""

    async def changed(event):
        await deliver(attrs.evolve(event, sender=attrs.evolve(event.sender, **sender)))

    deliver, stage.platform._deliver = stage.platform._deliver, changed


def texts(stage):
    return [message.text for message in stage.platform.messages]


async def verdicts(stage):
    rows = await stage.rows("SELECT verdict FROM approvals ORDER BY asked_at, turn_id, number")
    return [row[0] for row in rows]


async def test_a_press_decides_and_the_card_says_so():
    """B12, FC-APR-05: what would run stays to be read, the buttons are gone, the row says who."""
    async with gateway(asking()) as stage:
        card = await ask(stage)
        assert [(one.label, one.style) for one in card.buttons] == [
            ("Approve", "primary"),
            ("Deny", "danger"),
            ("Always here", ""),
        ]
        assert all(DATA.fullmatch(one.data) and len(one.data) <= 64 for one in card.buttons)
        pressed = await press(stage, card, "Approve")
        await stage.until_final()
        await stage.quiet()
        assert texts(stage)[-1] == "refund approved"
        assert '"order": 7' in card.text
        assert card.text.splitlines()[-1] == "`refund`: approved."
        assert card.buttons == ()
        assert stage.platform.answered == [(pressed, "")]
        assert await stage.rows(
            "SELECT a.decided_by, e.native_id, e.state, e.rule, a.live FROM approvals AS a"
            " JOIN inbound_events AS e ON e.id = a.event_id AND e.received_at = a.decided_at"
        ) == [("stub:1", pressed, "handled", "channels", 0)]


async def test_a_denial_by_button_needs_no_reason():
    async with gateway(asking()) as stage:
        card = await ask(stage)
        await press(stage, card, "Deny")
        await stage.until_final()
        assert texts(stage)[-1] == "refund denied"
        assert await stage.rows("SELECT reason FROM approvals") == [("",)]


async def test_always_here_keeps_a_grant():
    """B12: the same as `/approve ID always`."""
    async with gateway(asking()) as stage:
        card = await ask(stage)
        await press(stage, card, "Always here")
        await stage.until_final()
        await stage.quiet()
        assert card.text.splitlines()[-1] == "`refund`: approved. It need not ask here again."
        grants = await stage.rows("SELECT profile, tool, granted_by FROM grants")
        assert grants == [("default", "refund", "stub:1")]


@pytest.mark.parametrize(("room", "labels"), [(0, []), (1, []), (2, ["Approve", "Deny"])])
async def test_what_there_is_no_room_for_is_left_out(room, labels):
    """B12: yes and no, or words alone."""
    async with gateway(asking(buttons=room)) as stage:
        card = await ask(stage)
        assert [one.label for one in card.buttons] == labels
        await stage.platform.say("/approve")
        await stage.until_final()
        assert "refund approved" in texts(stage)
        assert ("Answer with" in card.text) is not bool(labels)


REFUSED = {
    "wrong person": ({"user": "8"}, NOT_YOURS),
    "nobody": ({}, NOT_YOURS),
    "another chat": ({"channel": "2", "user": "1"}, NO_BUTTON),
    "another message": ({"message_id": "999"}, NO_BUTTON),
    "made up": ({"data": f"a:{'0' * 8}:{'A' * 22}:y"}, NO_BUTTON),
    "guessed": ("guess", NO_BUTTON),
    "turned into another": ("turn", NO_BUTTON),
    "somebody unknown": ({"channel": "stranger", "user": "stranger"}, NOT_ADMITTED),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_fc_apr_02_a_press_that_may_not_decide_is_told_so_and_decides_nothing(case, caplog):
    """FC-APR-02, FC-APR-05, B12: each is answered, refused on record, and logged once."""
    changes, answer = REFUSED[case]
    caplog.set_level(logging.INFO, logger="dragoman")
    async with gateway(asking()) as stage:
        card = await ask(stage)
        if isinstance(changes, str):
            head, name, token, way = card.buttons[0].data.split(":")
            token = "A" * 22 if changes == "guess" else token
            way = "x" if changes == "turn" else way
            changes = {"data": f"{head}:{name}:{token}:{way}"}
        deliver = stage.platform._deliver
        if case == "nobody":
            comes_from(stage, id="")
        pressed = await press(stage, card, "Approve", **changes)
        stage.platform._deliver = deliver
        await stage.quiet()
        assert stage.platform.answered == [(pressed, answer)]
        assert await verdicts(stage) == ["open"]
        assert [one.label for one in card.buttons] == ["Approve", "Deny", "Always here"]
        states = await stage.rows("SELECT state FROM inbound_events WHERE event ->> '$.data' <> ''")
        assert states in ([("refused",)], [("ignored",)])
        said = [one for one in caplog.messages if re.search("refused|no question|no such", one)]
        assert len(said) == 1
        await press(stage, card, "Approve")
        await stage.until_final()
        assert "refund approved" in texts(stage)


async def test_fc_apr_02_another_member_may_not_the_requester_may():
    """FC-APR-02: in a group, by button as by word: one function says who may."""
    access = Access(channels=("stub:1",), owners=("stub:9",))
    async with gateway(asking(), access=access) as stage:
        card = await ask(stage, user="700000001")
        await press(stage, card, "Approve", user="700000002")
        await stage.platform.say("/approve", user="700000002")
        await stage.quiet()
        assert stage.platform.answered[0][1] == texts(stage)[-1] == NOT_YOURS
        assert await verdicts(stage) == ["open"]
        await press(stage, card, "Approve", user="700000001")
        await stage.until_final()
        assert await stage.rows("SELECT decided_by FROM approvals") == [("stub:700000001",)]


async def test_fc_apr_05_who_comes_second_is_told_what_was_decided():
    """FC-APR-05: a double press, another way to press, and one of an old card."""
    async with gateway(asking()) as stage:
        card = await ask(stage)
        buttons = card.buttons
        await press(stage, card, "Deny")
        await stage.until_final()
        for button in (buttons[1], buttons[0]):
            await press(stage, card, button.label, data=button.data, native_id=button.label)
        await stage.quiet()
        late = "That is over. `refund`: denied."
        assert [answer for _, answer in stage.platform.answered] == ["", late, late]
        assert texts(stage)[-1] == "refund denied"
        assert (await stage.states("inbound_events"))[-2:] == ["ignored", "ignored"]


async def test_fc_apr_05_an_answer_that_fails_undoes_no_decision():
    """FC-APR-05: "query is too old"; the same for an edit that the platform does not take."""

    async def too_old(method, address, message):
        if method in {"answer", "edit"}:
            raise Refused("query is too old")

    plugin = asking()
    plugin.platform().before = too_old
    async with gateway(plugin) as stage:
        card = await ask(stage)
        await press(stage, card, "Approve")
        await stage.until_final()
        await stage.quiet()
        assert texts(stage)[-1] == "refund approved"
        assert await stage.rows("SELECT live FROM approvals") == [(0,)]


async def test_where_presses_have_no_answer_people_are_told_in_the_chat():
    """FC-APR-05: never silence; where nothing can be edited, whoever decided is told so, too."""
    async with gateway(asking(answers=False, edit=False)) as stage:
        card = await ask(stage)
        await press(stage, card, "Approve", user="8")
        await press(stage, card, "Approve")
        await stage.until_final()
        assert NOT_YOURS in texts(stage)
        assert "`refund`: approved." in texts(stage)


ENDS = {
    "/approve": "`refund`: approved.",
    "/deny": "`refund`: denied.",
    "/stop": "`refund`: cancelled.",
    "/new": "`refund`: cancelled.",
    "another message": "`refund`: cancelled.",
}


@pytest.mark.parametrize("how", ENDS)
async def test_fc_apr_04_however_a_question_ends_its_card_says_so(how):
    """FC-APR-04, B12: and a press that comes later is told."""
    profiles = {"default": Profile(runtime="scripted", busy="interrupt")}
    async with gateway(asking(), profiles=profiles) as stage:
        card = await ask(stage)
        buttons = card.buttons
        await stage.platform.say(how)
        await stage.until_final()
        await stage.quiet()
        assert card.buttons == ()
        assert card.text.splitlines()[-1] == ENDS[how]
        await press(stage, card, "", data=buttons[0].data)
        await stage.quiet()
        assert stage.platform.answered[-1][1] == f"That is over. {ENDS[how]}"


async def test_fc_apr_04_a_card_of_what_nobody_decided_says_so():
    """FC-APR-04: 300 seconds, a press at 301, and the agent knows that nobody refused."""
    clock, profiles = VirtualClock(), {"default": Profile(runtime="scripted", approval_timeout=300)}
    async with gateway(asking(), clock=clock, profiles=profiles) as stage:
        card = await ask(stage)
        buttons = card.buttons
        await clock.advance(301)
        await stage.quiet()
        assert card.buttons == ()
        assert card.text.splitlines()[-1] == "`refund`: not decided in time."
        assert texts(stage)[-1] == "refund expired"
        await press(stage, card, "", data=buttons[0].data)
        await stage.quiet()
        assert stage.platform.answered[-1][1] == "That is over. `refund`: not decided in time."


async def test_what_another_process_decides_is_shown_on_the_card():
    """B12: as the command line does; who decided has no name there."""
    clock = VirtualClock()
    async with gateway(asking(), clock=clock) as stage:
        card = await ask(stage)
        (name,) = (await stage.rows("SELECT id FROM approvals"))[0]
        now = clock.now().timestamp()
        verdict = ApprovalState.DENIED
        wish = Decide(approval_id=name, verdict=verdict, by="operator:root", now=now)
        await stage.app.store.apply(wish)
        await clock.advance(31)
        await stage.quiet()
        assert card.text.splitlines()[-1] == "`refund`: denied."
        assert card.buttons == ()


async def test_a_card_that_is_sent_after_the_decision_loses_its_buttons():
    """FC-APR-04: it was on its way."""
    clock, plugin = VirtualClock(), asking()
    plugin.platform().faults = [NotSent("no network")] * 3
    async with gateway(plugin, clock=clock) as stage:
        await stage.platform.say("refund")
        await stage.quiet()
        assert texts(stage) == []
        await stage.platform.say("/stop")
        await clock.advance(20)
        await stage.quiet()
        card = stage.platform.messages[0]
        assert card.text.splitlines()[-1] == "`refund`: cancelled."
        assert card.buttons == ()


async def test_fc_apr_03_a_card_from_before_a_kill_decides_and_is_edited(tmp_path):
    """FC-APR-03, FC-APR-05: the first press after it is no second one."""
    plugin = asking()
    async with gateway(plugin, store=tmp_path / "a.db") as stage:
        card = await ask(stage)
        left = wreck(tmp_path / "a.db", plugin, asks)
    left.platform.messages, left.platform.capabilities = [card], plugin.platform().capabilities
    left.plugin.runtimes["scripted"].capabilities = CAN
    async with gateway(left.plugin, store=left.store) as stage:
        await press(stage, card, "Approve", native_id="later")
        await stage.until_final()
        await stage.quiet()
        assert texts(stage)[-1] == "refund approved"
        assert card.buttons == ()


async def test_fc_apr_03_a_press_on_what_cannot_go_on_runs_nothing_and_says_so():
    """FC-APR-03: the state is lost; the tool does not run now or later, and the buttons are gone."""

    async def lost(request, host):
        if request.saved is not None:
            yield Failed(FailureKind.STATE_LOST, "its process is gone")
            return
        async for event in asks(request, host):
            yield event

    async with gateway(asking(lost)) as stage:
        card = await ask(stage)
        await press(stage, card, "Approve")
        await stage.until_final()
        await stage.quiet()
        assert await stage.states("agent_runs") == ["interrupted"]
        assert "nothing that was asked about was done" in texts(stage)[-1]
        assert card.buttons == ()


@pytest.mark.parametrize("fate", ["no network", "gone"])
async def test_fc_apr_04_a_card_that_could_not_be_edited_is_edited_by_the_next_process(
    tmp_path, fate
):
    """FC-APR-04: until that has worked; one that is gone is left alone."""
    path, plugin = tmp_path / "a.db", asking()
    failure = NotSent(fate) if fate == "no network" else Gone("message")

    async def fails(method, address, message):
        if method == "edit":
            raise failure

    plugin.platform().before = fails
    async with gateway(plugin, store=path) as stage:
        card = await ask(stage)
        await press(stage, card, "Approve")
        await stage.until_final()
        await stage.quiet()
        assert await stage.rows("SELECT live FROM approvals") == [(int(fate == "no network"),)]
        assert card.buttons
    plugin.platform().before = None
    plugin.platform().calls.clear()
    async with gateway(plugin, store=path) as stage:
        await stage.quiet()
        assert bool(card.buttons) is (fate == "gone")
        assert plugin.platform().calls.count("edit") == (fate == "no network")
        assert await stage.rows("SELECT live FROM approvals") == [(0,)]


async def test_the_name_of_who_decided_is_quoted():
    """FC-AUT-01: a label, never markup, and no mention of anybody."""
    async with gateway(asking()) as stage:
        card = await ask(stage)

        comes_from(stage, name="*A`nn* @all")
        await press(stage, card, "Approve")
        await stage.until_final()
        await stage.quiet()
        assert card.text.splitlines()[-1] == "`refund`: approved by `*A'nn* @all`."


async def test_a_long_card_keeps_within_the_limit():
    """FC-APR-04: its last part gets the outcome."""
    long = ApprovalRequested("call_1", "refund", f'{{"why": "{"word " * 200}"}}')
    async with gateway(asking(partial(asks, calls=(long,)), max_text=300)) as stage:
        await stage.platform.say("refund")
        await stage.quiet()
        *before, last = stage.platform.messages
        assert [bool(one.buttons) for one in (*before, last)] == [*[False] * len(before), True]
        await press(stage, last, "Deny")
        await stage.until_final()
        await stage.quiet()
        assert last.text.splitlines()[-1] == "`refund`: denied."
        assert last.buttons == ()


async def test_two_cards_pressed_in_reverse_order_are_told_apart():
    """B12: each decides about its own call."""
    two = (REFUND, ApprovalRequested("call_2", "send_mail", "{}"))
    async with gateway(asking(partial(asks, calls=two))) as stage:
        await stage.platform.say("refund")
        await stage.quiet()
        first, second = stage.platform.messages
        await press(stage, second, "Deny")
        await stage.quiet()
        assert await stage.states("agent_runs") == ["waiting"]
        await press(stage, first, "Approve")
        await stage.until_final()
        assert texts(stage)[-1] == "refund approved; send_mail denied"


async def test_fc_apr_01_what_is_said_meanwhile_decides_nothing_and_waits():
    """FC-APR-01: neither a question nor a yes; the decision does not wait behind them."""
    async with gateway(asking()) as stage:
        await ask(stage)
        (name,) = (await stage.rows("SELECT id FROM approvals"))[0]
        await stage.platform.say("what are you doing?")
        await stage.platform.say("yes")
        await stage.quiet()
        assert await verdicts(stage) == ["open"]
        await stage.platform.say(f"/approve {name}")
        await stage.until_final()
        said = [
            one for one in texts(stage) if one in {"refund approved", "what are you doing?", "yes"}
        ]
        assert said == ["refund approved", "what are you doing?", "yes"]


@pytest.mark.parametrize("count", [5, 40])
async def test_a_decision_without_a_name_costs_the_same_however_much_is_open_elsewhere(
    count, monkeypatch
):
    """B12: the place is part of the question to the store."""
    async with gateway(asking()) as stage:
        for channel in range(count):
            await stage.platform.say("refund", channel=str(channel))
        await stage.until("agent_runs", ["waiting"] * count)
        asked = []
        query = Reads.turn_inputs

        async def counted(self, turn_id):
            asked.append(turn_id)
            return await query(self, turn_id)

        monkeypatch.setattr(Reads, "turn_inputs", counted)
        await stage.platform.say("/deny", channel="3")
        await stage.platform.until_shown("refund denied", "3")
        assert len(asked) == 1
