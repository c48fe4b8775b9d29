"""Who was let out decides nothing, and nothing waits on their behalf."""

from __future__ import annotations

import re

import pytest

from dragoman import ApprovalRequested, Finished, Paused, TextBlock
from dragoman.bell import ring
from dragoman.cli.pair import ENDED
from dragoman.flow.decisions import NOT_YOURS
from dragoman.flow.presses import NOT_ADMITTED
from dragoman.manifest.model import Access
from dragoman.messages import Kind, Place
from dragoman.protocols import RuntimeCapabilities
from dragoman.roles import Role
from dragoman.store import operations as ops
from dragoman.store.guest import write
from dragoman.testing import ScriptedRuntime, StubPlugin
from stage import can, eventually, gateway

pytestmark = pytest.mark.anyio

CODE = re.compile(r"(?:[2-9A-HJ-NP-Z]{4}-?){3}")
CAN = RuntimeCapabilities(stream=True, approve=True, resume=True, journal=True)


async def asks(request, host):
    """Ask first, then say what was decided."""
    del host
    if request.saved is None:
        yield ApprovalRequested("call_1", "refund", '{"order": 7}')
        yield Paused("a state")
        return
    yield TextBlock("1", " ".join(one.verdict.value for one in request.decisions))
    yield Finished()


def asking():
    plugin = StubPlugin()
    plugin.runtimes["scripted"] = ScriptedRuntime(asks, capabilities=CAN)
    plugin.platform().capabilities = can(buttons=5, answers=True)
    return plugin


async def ask(stage, account="7", **more):
    """Let somebody want what has to be approved; return the card."""
    await stage.platform.say("refund", channel=account, **more)
    await stage.until("agent_runs", ["waiting"])
    await stage.quiet()
    return next(one for one in reversed(stage.platform.messages) if one.buttons)


async def press(stage, card, data, user):
    await stage.platform.say(
        "",
        kind=Kind.PRESS,
        data=data,
        channel=card.address.channel,
        message_id=card.native_id,
        user=user,
        place=card.address.place,
    )
    await stage.quiet()


async def verdict(stage):
    [[found]] = await stage.rows("SELECT verdict FROM approvals")
    return found


async def beside(stage, operation):
    """Write an operation as another process does, and ring."""
    await write(stage.app.manifest.store, operation)
    ring(stage.app.manifest.data_dir)


async def let_in(stage, account):
    """Let an account in, and wait until the gateway knows."""
    before = len(await stage.states("inbound_events"))
    grant = ops.SetRole(identity=f"stub:{account}", role=Role.USER, by="operator:me", now=1.0)
    await beside(stage, grant)

    async def known():
        await stage.platform.say("/whoami", channel=account)
        await stage.until_final()
        return (await stage.states("inbound_events"))[-1]

    await eventually(known, "handled")
    assert len(await stage.states("inbound_events")) > before


def revoke(account):
    return ops.SetRole(
        identity=f"stub:{account}",
        role=None,
        by="operator:me",
        platforms=("stub",),
        notice=ENDED,
        now=2.0,
    )


async def test_fc_aut_04_with_empty_lists_nobody_runs_or_decides_anything(tmp_path):
    """FC-AUT-04: the bot is in a group, and one person was let in. Another member starts nothing,
    and decides nothing, neither before nor after that one is let out."""
    async with gateway(asking(), access=Access(pairing=True), store=tmp_path / "s.db") as stage:
        await let_in(stage, "7")
        await stage.platform.say("refund", channel="g", user="8", place=Place.GROUP)
        await stage.until_final()
        assert await stage.states("agent_runs") == []
        card = await ask(stage, "g", user="7", place=Place.GROUP)
        approve = card.buttons[0].data
        await press(stage, card, approve, "8")
        assert stage.platform.answered[-1][1] == NOT_ADMITTED
        assert await verdict(stage) == "open"
        await beside(stage, revoke("7"))
        await stage.until("agent_runs", ["cancelled"])
        await eventually(lambda: shows(card), "cancelled")
        assert stage.platform.shown("g")[-1] == ENDED
        for user in ("7", "8"):
            await press(stage, card, approve, user)
            assert stage.platform.answered[-1][1] == NOT_ADMITTED
        assert await verdict(stage) == "cancelled"
        [request] = stage.runtime.requests
        assert request.saved is None, "the turn never went on"


async def shows(card):
    return "cancelled" if "cancelled" in card.text.lower() and not card.buttons else card.text


async def test_fc_aut_04_what_others_have_asked_for_goes_on(tmp_path):
    """FC-AUT-04: who is let out takes nothing from others, in the same group."""
    async with gateway(asking(), access=Access(pairing=True), store=tmp_path / "s.db") as stage:
        await let_in(stage, "7")
        await let_in(stage, "8")
        card = await ask(stage, "g", user="7", place=Place.GROUP)
        approve = card.buttons[0].data
        await beside(stage, revoke("8"))
        await press(stage, card, approve, "7")
        await stage.until_final()
        assert await verdict(stage) == "approved"


async def test_an_account_decides_what_its_person_has_asked_for():
    """B12, A5: linked accounts are one requester; others in the group are not."""
    users = Access(users=("stub:7", "stub:8", "stub:9"))
    async with gateway(asking(), access=users) as stage:
        await stage.platform.say("/link", channel="7")
        await stage.until_final()
        code = CODE.search(stage.platform.shown("7")[-1])[0]
        await stage.platform.say(f"/link {code}", channel="8")
        await stage.until_final()
        card = await ask(stage, "g", user="7", place=Place.GROUP)
        approve = card.buttons[0].data
        await press(stage, card, approve, "9")
        assert stage.platform.answered[-1][1] == NOT_YOURS
        await press(stage, card, approve, "8")
        await stage.until_final()
        assert await verdict(stage) == "approved"
