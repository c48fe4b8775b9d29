"""Turns that wait for people: asked, decided once, gone on with; or ended where nobody decides."""

from __future__ import annotations

from functools import partial

import anyio
import anyio.lowlevel
import pytest

from dragoman import (
    ApprovalRequested,
    Failed,
    FailureKind,
    FileLimits,
    Finished,
    Paused,
    RuntimeCapabilities,
    TextBlock,
)
from dragoman.flow.decisions import NOT_YOURS, NOTHING_OPEN, UNCLEAR
from dragoman.manifest.model import Access, Profile
from dragoman.protocols import ToolBegins, ToolCall
from dragoman.states import ApprovalState
from dragoman.store.operations import Decide
from dragoman.testing import ScriptedRuntime, StubPlatform, StubPlugin, VirtualClock
from stage import can, gateway

pytestmark = pytest.mark.anyio

CAN = RuntimeCapabilities(stream=True, approve=True, resume=True, journal=True)
ASK = ApprovalRequested("call_1", "delete_files", '{"path": "tmp"}')


async def asks(request, host, *, calls=(ASK,)):
    """Ask first; then say what was decided, and for messages that do not ask, what was said."""
    del host
    if not request.inputs[0].text.startswith("delete"):
        yield TextBlock("1", request.inputs[0].text)
    elif request.saved is None:
        yield TextBlock("1", "Let me see.")
        for call in calls:
            yield call
        yield Paused("a state")
        return
    else:
        assert request.saved == "a state"
        told = [f"{one.tool} {one.verdict.value} {one.reason}".strip() for one in request.decisions]
        yield TextBlock("1", "; ".join(told))
    yield Finished()


def asking(script=asks):
    plugin = StubPlugin()
    plugin.runtimes["scripted"] = ScriptedRuntime(script, capabilities=CAN)
    return plugin


def texts(stage):
    """Return what people see."""
    return [message.text for message in stage.platform.messages]


def profile(**changes):
    return {"default": Profile(runtime="scripted", **changes)}


async def name_of(stage, number=0):
    """Return the name of a question, in the order in which they were asked."""
    rows = await stage.rows("SELECT id FROM approvals ORDER BY asked_at, turn_id, number")
    return rows[number][0]


async def waiting(stage, turns=("waiting",)):
    await stage.until("agent_runs", list(turns))
    await stage.quiet()


async def test_invariant_8_a_call_runs_when_somebody_has_approved_it():
    """B12, D9: people see what would run; one decision; the turn goes on from its state."""
    async with gateway(asking()) as stage:
        await stage.platform.say("delete it")
        await waiting(stage)
        before, question = texts(stage)
        assert before == "Let me see."
        assert "`delete_files`" in question
        assert '"path": "tmp"' in question
        name = await name_of(stage)
        await stage.platform.say(f"/approve {name}")
        await stage.until_final()
        assert texts(stage)[2:] in (
            ["`delete_files`: approved.", "delete_files approved"],
            ["delete_files approved", "`delete_files`: approved."],
        )
        assert await stage.states("agent_runs") == ["succeeded"]
        assert await stage.rows("SELECT saved FROM agent_runs") == [(None,)]
        await stage.platform.say(f"/deny {name}")
        await stage.until_final()
        assert texts(stage)[-1] == "That is over. `delete_files`: approved."


async def test_a_reason_reaches_the_agent_and_the_name_may_be_left_out():
    """B12: where one thing waits, people need not say which."""
    async with gateway(asking()) as stage:
        await stage.platform.say("delete it")
        await waiting(stage)
        await stage.platform.say("/deny not that folder")
        await stage.until_final()
        assert "delete_files denied not that folder" in texts(stage)
        await stage.platform.say("/approve")
        await stage.until_final()
        assert texts(stage)[-1] == NOTHING_OPEN


async def test_several_questions_are_told_apart():
    """B12: the turn goes on when all are decided, each by its own name."""
    two = (ASK, ApprovalRequested("call_2", "send_mail", "{}"))
    async with gateway(asking(partial(asks, calls=two))) as stage:
        await stage.platform.say("delete it")
        await waiting(stage)
        assert len(texts(stage)) == 3
        await stage.platform.say("/approve")
        await stage.quiet()
        assert texts(stage)[-1].startswith("Several things wait here")
        await stage.platform.say(f"/deny {await name_of(stage, 1)}")
        await stage.quiet()
        assert await stage.states("agent_runs") == ["waiting"]
        await stage.platform.say(f"/approve {await name_of(stage, 0)}")
        await stage.until_final()
        assert "delete_files approved; send_mail denied" in texts(stage)


async def test_invariant_8_only_those_whom_the_profile_names_decide():
    """B12: another member of the group may not, the owner may."""
    access = Access(channels=("stub:1",), owners=("stub:9",))
    async with gateway(asking(), access=access) as stage:
        await stage.platform.say("delete it")
        await waiting(stage)
        await stage.platform.say("/approve", user="8")
        await stage.quiet()
        assert texts(stage)[-1] == NOT_YOURS
        assert await stage.states("agent_runs") == ["waiting"]
        await stage.platform.say("/approve", user="9")
        await stage.until_final()
        assert await stage.rows("SELECT decided_by FROM approvals") == [("stub:9",)]


async def test_invariant_8_a_question_is_not_decided_from_elsewhere():
    """B12: its name alone opens nothing in another chat."""
    async with gateway(asking()) as stage:
        await stage.platform.say("delete it")
        await waiting(stage)
        name = await name_of(stage)
        await stage.platform.say(f"/approve {name}", channel="2")
        await stage.quiet()
        assert texts(stage)[-1] == f"Nothing here is called `{name}`."
        assert await stage.rows("SELECT verdict FROM approvals") == [("open",)]


@pytest.mark.parametrize("words", ["0123abcd", "12ab", "it please", "0123abcd always"])
async def test_invariant_8_what_is_not_understood_decides_nothing(words):
    """B12: another name, half of one, and words that might mean anything."""
    async with gateway(asking()) as stage:
        await stage.platform.say("delete it")
        await waiting(stage)
        await stage.platform.say(f"/approve {words}")
        await stage.quiet()
        assert texts(stage)[-1] in (UNCLEAR, "Nothing here is called `0123abcd`.")
        assert await stage.rows("SELECT verdict FROM approvals") == [("open",)]


async def test_what_nobody_decides_in_time_counts_as_no():
    """B12: the agent is told that nobody did."""
    clock = VirtualClock()
    async with gateway(asking(), clock=clock, profiles=profile(approval_timeout=3600.0)) as stage:
        await stage.platform.say("delete it")
        await clock.advance(3500)
        assert await stage.states("agent_runs") == ["waiting"]
        await clock.advance(200)
        await stage.quiet()
        assert "delete_files expired" in texts(stage)
        assert await stage.states("agent_runs") == ["succeeded"]


async def test_a_short_time_is_over_when_people_were_told_that_it_is():
    """B12: a decision that comes later than the question said does not let the tool run."""
    clock = VirtualClock()
    async with gateway(asking(), clock=clock, profiles=profile(approval_timeout=5.0)) as stage:
        await clock.advance(1)
        await stage.platform.say("delete it")
        await waiting(stage)
        await clock.advance(5.1)
        await stage.platform.say("/approve")
        await stage.quiet()
        assert "delete_files expired" in texts(stage)
        assert await stage.states("agent_runs") == ["succeeded"]


@pytest.mark.parametrize("command", ["/stop", "/new"])
async def test_a_turn_that_waits_can_be_stopped(command):
    """B11: at once; nothing that it asked about is done, and a late decision changes nothing."""
    async with gateway(asking()) as stage:
        await stage.platform.say("delete it")
        await waiting(stage)
        name = await name_of(stage)
        await stage.platform.say(command)
        await stage.platform.say(f"/approve {name}")
        await stage.platform.say("hello")
        await stage.until_final()
        assert await stage.states("agent_runs") == ["cancelled", "succeeded"]
        assert await stage.rows("SELECT verdict FROM approvals") == [("cancelled",)]
        assert "That is over. `delete_files`: cancelled." in texts(stage)
        assert texts(stage)[-1] == "hello"


async def test_what_comes_meanwhile_is_answered_after_it_and_told_so_once():
    """B4: one notice, whatever the number of messages."""
    async with gateway(asking()) as stage:
        await stage.platform.say("delete it")
        await waiting(stage)
        await stage.platform.say("one")
        await stage.platform.say("two")
        await stage.quiet()
        told = [text for text in texts(stage) if text.startswith("Before this comes")]
        assert len(told) == 1
        await stage.platform.say("/status")
        await stage.quiet()
        assert texts(stage)[-1].startswith("Waiting for a decision on `delete_files`")
        await stage.platform.say("/approve")
        await stage.until_final()
        assert [one for one in texts(stage) if one in ("one", "two")] == ["one", "two"]
        assert await stage.states("agent_runs") == ["succeeded"] * 3


async def test_a_newer_message_may_take_its_place():
    """B4: where the profile lets messages interrupt."""
    async with gateway(asking(), profiles=profile(busy="interrupt")) as stage:
        await stage.platform.say("delete it")
        await waiting(stage)
        await stage.platform.say("rather not")
        await stage.until_final()
        assert await stage.states("agent_runs") == ["cancelled", "succeeded"]
        assert texts(stage)[-1] == "rather not"


async def test_a_granted_tool_need_not_ask_again():
    """B12: the grant is of this conversation, profile and tool."""
    seen = []

    async def granted(request, host):
        seen.append(await host.granted("delete_files"))
        async for event in asks(request, host):
            yield event

    async with gateway(asking(granted)) as stage:
        await stage.platform.say("delete it")
        await waiting(stage)
        await stage.platform.say("/approve always")
        await stage.until_final()
        assert "`delete_files`: approved. It need not ask here again." in texts(stage)
        await stage.platform.say("hello", channel="2")
        await stage.until_final()
        assert seen == [False, True, False]


async def test_a_turn_may_ask_again():
    """D9: a second pause of the same turn, with all that was decided before."""

    async def twice(request, host):
        del host
        if len(request.decisions) < 2:
            yield ApprovalRequested(f"call_{len(request.decisions)}", "look", "{}")
            yield Paused("a state")
            return
        assert [one.verdict for one in request.decisions] == [ApprovalState.APPROVED] * 2
        yield TextBlock("1", "done")
        yield Finished()

    async with gateway(asking(twice)) as stage:
        await stage.platform.say("delete it")
        for _ in range(2):
            await waiting(stage)
            await stage.platform.say("/approve")
            await stage.quiet()
        await stage.until_final()
        assert "done" in texts(stage)


async def test_a_pause_that_asks_nothing_is_a_failure():
    """D1: nobody could ever end it."""

    async def silent(request, host):
        del request, host
        yield Paused("a state")

    async with gateway(asking(silent)) as stage:
        await stage.platform.say("delete it")
        await stage.until_final()
        assert await stage.states("agent_runs") == ["failed"]


async def test_invariant_8_a_question_outlives_its_process(tmp_path):
    """B12, D9: asked by one process, decided and gone on with in the next."""
    path = tmp_path / "a.db"
    async with gateway(asking(), store=path) as stage:
        await stage.platform.say("delete it")
        await waiting(stage)
    async with gateway(asking(), store=path) as stage:
        await stage.quiet()
        assert await stage.states("agent_runs") == ["waiting"]
        await stage.platform.say("/approve", native_id="later")
        await stage.until_final()
        assert "delete_files approved" in texts(stage)
        assert await stage.states("agent_runs", "attempt") == [1]


async def test_d9_a_state_that_is_lost_ends_visibly():
    """D9: the turn is interrupted, and people are told that nothing was done."""

    async def lost(request, host):
        if request.saved is not None:
            yield Failed(FailureKind.STATE_LOST, "schema 9")
            return
        async for event in asks(request, host):
            yield event

    async with gateway(asking(lost)) as stage:
        await stage.platform.say("delete it")
        await waiting(stage)
        await stage.platform.say("/approve")
        await stage.until_final()
        assert await stage.states("agent_runs") == ["interrupted"]
        assert any("nothing that was asked about was done" in one for one in texts(stage))


@pytest.mark.parametrize("begun", [False, True])
async def test_invariant_7_a_crash_after_the_decision(tmp_path, begun):
    """D9: what was not begun goes on from the pause; what may have been done is not done again."""

    async def hangs(request, host):
        if request.saved is not None and len(cut) == 0:
            cut.append(request)
            if begun:
                call = ToolCall("call_1", "delete_files", "{}")
                assert isinstance(await host.tool_begins(call), ToolBegins)
            await anyio.sleep_forever()
        async for event in asks(request, host):
            yield event

    cut = []
    path, copy = tmp_path / "a.db", tmp_path / "b.db"
    async with gateway(asking(hangs), store=path) as stage:
        await stage.platform.say("delete it")
        await waiting(stage)
        await stage.platform.say("/approve")
        await stage.until("agent_runs", ["running"])
        while not cut or (begun and not await stage.rows("SELECT 1 FROM tool_calls")):
            await anyio.lowlevel.checkpoint()
        await stage.quiet()
        await stage.rows(f"VACUUM INTO '{copy}'")  # what a kill would leave
    async with gateway(asking(hangs), store=copy) as stage:
        await stage.until_final()
        assert await stage.states("agent_runs") == ["interrupted" if begun else "succeeded"]
        assert ("delete_files approved" in texts(stage)) is not begun


async def test_d10_the_same_wanted_again_after_a_pause_is_done_again():
    """D10: the model asks for it twice; only what a crash repeats is told its recorded result."""

    async def twice(request, host):
        begun = await host.tool_begins(ToolCall(f"call_{request.saved}", "look", "{}"))
        assert isinstance(begun, ToolBegins)
        await host.tool_ended(begun, "seen")
        keys.append(begun.effect_key)
        if request.saved is None:
            yield ASK
            yield Paused("a state")
        else:
            yield Finished()

    keys = []
    async with gateway(asking(twice)) as stage:
        await stage.platform.say("delete it")
        await waiting(stage)
        await stage.platform.say("/approve")
        await stage.until_final()
        assert len(set(keys)) == 2


async def test_files_that_were_attached_before_a_pause_are_shown_with_it():
    """A11: they belong to what was said so far; the rest of the turn has its own."""

    async def draws(request, host):
        await host.attach("before.txt" if request.saved is None else "after.txt", b"x")
        async for event in asks(request, host):
            yield event

    plugin = asking(draws)
    plugin.platforms["stub"] = StubPlatform(can(files=FileLimits(size=1000)))
    async with gateway(plugin) as stage:
        await stage.platform.say("delete it")
        await waiting(stage)
        assert shown_files(stage) == ["before.txt"]
        await stage.platform.say("/approve")
        await stage.until_final()
        assert shown_files(stage) == ["before.txt", "after.txt"]


def shown_files(stage):
    """Return the names of the files that people see."""
    return [message.file.name for message in stage.platform.messages if message.file]


async def test_b8_a_decision_that_is_carried_out_again_is_told_again(tmp_path, monkeypatch):
    """B8: killed behind the decision, before the command is settled; its name was not given."""
    path, copy = tmp_path / "a.db", tmp_path / "b.db"
    async with gateway(asking(), store=path) as stage:
        await stage.platform.say("delete it")
        await waiting(stage)
        apply = type(stage.app.store).apply

        async def cut(self, operation):
            answer = await apply(self, operation)
            if isinstance(operation, Decide):
                await stage.rows(f"VACUUM INTO '{copy}'")
            return answer

        monkeypatch.setattr(type(stage.app.store), "apply", cut)
        await stage.platform.say("/approve")
        await stage.until_final()
        monkeypatch.undo()
    async with gateway(asking(), store=copy) as stage:
        await stage.until_final()
        assert "`delete_files`: approved." in texts(stage)
        assert "delete_files approved" in texts(stage)
