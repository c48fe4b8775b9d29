"""One person with several accounts: linked by a code from both sides, and what is shared then."""

from __future__ import annotations

import re

import anyio
import pytest

from dragoman import Finished, RuntimeCapabilities, TextBlock
from dragoman.flow.pairing import ALONE, LATER, LOCKED, WRONG
from dragoman.keys import Scope, ScopeRule
from dragoman.manifest.model import Access, Profile
from dragoman.messages import Place
from dragoman.testing import ScriptedRuntime, StubPlugin
from stage import eventually, gateway, table

pytestmark = pytest.mark.anyio

CODE = re.compile(r"(?:[2-9A-HJ-NP-Z]{4}-?){3}")
USERS = Access(users=tuple(f"stub:{name}" for name in ("7", "8", "9")))
TWO = (table("platforms", "stub"), table("platforms", "work"))


def shared(**changes):
    return {
        "profiles": {
            "default": Profile(runtime="scripted", scope=ScopeRule(dm=Scope.PERSON), **changes)
        }
    }


async def say(stage, text, account="7", platform="stub", **more):
    """Let an account say something in its direct message; return what is shown last there."""
    there = stage.plugin.platform(platform)
    await there.say(text, channel=account, **more)
    await stage.until_final()
    return (there.shown(account) or [""])[-1]


async def linked(stage):
    """Link account 7 of one platform with account 8 of the other; return the code."""
    code = CODE.search(await say(stage, "/link"))[0]
    assert await say(stage, f"/link {code}", "8", "work") == "Linked: `stub:7` is you as well."
    return code


async def sessions(stage):
    """Return the session of each message, oldest first."""
    sql = "SELECT session_id FROM inbound_events WHERE state = 'answered' ORDER BY id"
    return [row[0] for row in await stage.rows(sql)]


async def test_a_code_from_both_sides_makes_two_accounts_one_person():
    """A5: both sides are told, and from then on they share what the profile shares."""
    async with gateway(access=USERS, components=TWO, **shared()) as stage:
        await say(stage, "one")
        await say(stage, "two", "8", "work")
        await linked(stage)
        assert stage.platform.shown("7")[-1] == "Linked: `stub:8` is you as well."
        assert await say(stage, "three", "8", "work") == "three", "answered where it was asked"
        await say(stage, "four", "9")
        first, second, third, fourth = await sessions(stage)
        assert first == third
        assert len({first, second, fourth}) == 3


@pytest.mark.parametrize("scope", [one for one in Scope if one is not Scope.PERSON])
async def test_sessions_stay_apart_where_the_profile_says_nothing_of_persons(scope):
    """A5."""
    profiles = {"default": Profile(runtime="scripted", scope=ScopeRule(dm=scope))}
    async with gateway(access=USERS, components=TWO, profiles=profiles) as stage:
        await linked(stage)
        await say(stage, "one")
        await say(stage, "two", "8", "work")
        assert len(set(await sessions(stage))) == 2


async def test_what_a_person_says_to_one_alone_stays_out_of_groups():
    """A2, A5: a group has its own session, whoever speaks in it."""
    async with gateway(access=USERS, components=TWO, **shared()) as stage:
        await linked(stage)
        await say(stage, "one")
        await say(stage, "two", "group", user="7", place=Place.GROUP)
        assert len(set(await sessions(stage))) == 2


async def test_codes_to_link_are_for_people_alone_and_for_other_accounts():
    """FC-PAI-01: in groups none is shown or taken, one's own is wrong, and guesses lock."""
    async with gateway(access=USERS, components=TWO) as stage:
        assert await say(stage, "/link", "group", user="7", place=Place.GROUP) == ALONE
        code = CODE.search(await say(stage, "/link"))[0]
        assert await say(stage, "/link") == LATER
        assert await say(stage, f"/link {code}") == WRONG
        told = [await say(stage, "/link 2222-2222-2222", "8", "work") for _ in range(5)]
        assert told == [WRONG] * 4 + [LOCKED]
        assert await say(stage, f"/link {code}", "8", "work") == LOCKED
        assert await stage.rows("SELECT * FROM identities") == []
        assert await say(stage, f"/link {code}", "9") == "Linked: `stub:7` is you as well."


@pytest.mark.parametrize("busy", ["queue", "collect", "steer"])
async def test_what_is_said_elsewhere_meanwhile_is_answered_there(busy):
    """A5, invariants 2 and 14: one turn at a time, and no answer in another account's chat."""
    release, running = anyio.Event(), []

    async def script(request, host):
        running.append(1)
        assert len(running) == 1
        if request.inputs[0].text == "slow":
            await release.wait()
            assert list(await host.offered()) == []
        running.pop()
        yield TextBlock("1", " ".join(one.text for one in request.inputs))
        yield Finished()

    plugin = StubPlugin()
    plugin.runtimes["scripted"] = ScriptedRuntime(
        script, capabilities=RuntimeCapabilities(steer=True)
    )
    async with gateway(plugin, access=USERS, components=TWO, **shared(busy=busy)) as stage:
        await linked(stage)
        await stage.platform.say("slow", channel="7")
        await stage.until("agent_runs", ["running"])
        for text in ("quick", "and this"):
            await stage.plugin.platform("work").say(text, channel="8")
        queued = ["adopted", "queued", "queued"]
        await eventually(lambda: states(stage), queued)
        release.set()
        await stage.until_final()
        assert len(set(await sessions(stage))) == 1
        assert stage.platform.shown("7")[-1] == "slow"
        assert "and this" in stage.plugin.platform("work").shown("8")[-1]


async def states(stage):
    return (await stage.states("inbound_events"))[2:]
