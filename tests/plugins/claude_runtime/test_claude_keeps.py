"""What does not end a session: a slow or silent program, a model that is away, a stop at a start."""

import json
import os
import signal
import sys
from pathlib import Path

import pytest
from anyio.lowlevel import checkpoint

from dragoman import Failed, FailureKind, Finished, Notice, TextDelta
from dragoman.testing.runtime_stage import of_role, staged
from dragoman.testing.runtime_suite import Hold, Say
from dragoman_claude.config import ProgramsTable
from dragoman_claude.starting import ANEW
from peers.claude_deployment import working_in
from peers.claude_server import ClaudeServer
from plugins.claude_runtime.harness import harness

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def keeping_server():
    with ClaudeServer() as server:
        yield server


@pytest.fixture
def judged(keeping_server):
    return harness(keeping_server)


def ids(session):
    """Every Claude session that a session of ours ever had, and has."""
    items = [json.loads(item) for item in session.spaces["claude"]]
    return [item["id"] for item in items if "id" in item]


def delete_transcript(folder):
    [transcript] = Path(folder).rglob("*.jsonl")
    transcript.unlink()


def programs(folder):
    return {pid for pid, name in working_in(folder).items() if name == "claude"}


async def test_fc_sdk_04_a_session_is_kept_whatever_hinders_its_program(judged):
    """FC-SDK-04: a slow start, a stop in it, a model that is away; the next message goes on."""
    async with staged(judged) as stage:
        session = stage.session()
        async with stage.opened() as runtime:
            await stage.say(runtime, "apple", session=session)
        chosen = ids(session)
        judged.changes = {"programs": ProgramsTable(start_timeout=0.01)}
        async with stage.opened() as runtime:
            slow = await stage.say(runtime, "birch", session=session)
        judged.changes = {}
        async with stage.opened(reachable=False) as runtime:
            away = await stage.say(runtime, "cedar", session=session)
        async with stage.opened() as runtime:
            for rounds in (1, 5, 20):
                async with stage.turn(runtime, f"dates {rounds}", session=session):
                    for _ in range(rounds):
                        await checkpoint()
            last = await stage.say(runtime, "elder", session=session)
    assert [slow.end.kind, away.end.kind] == [FailureKind.TIMEOUT, FailureKind.TRANSPORT]
    assert last.end == Finished()
    assert ids(session) == chosen
    assert last.of(Notice) == []
    said = "\n".join(of_role(judged.page.asked[-1], "user")).split("\n")
    assert said == ["apple", "birch", "cedar", "dates 1", "dates 5", "dates 20", "elder"]


async def test_fc_sdk_04_a_session_is_begun_anew_when_the_program_knows_it_no_more(judged):
    """FC-SDK-04: and people are told; what was said is told to the new one."""
    judged.changes = {"transcripts": "local"}
    async with staged(judged) as stage:
        session = stage.session()
        async with stage.opened() as runtime:
            await stage.say(runtime, "apple", session=session)
        delete_transcript(stage.host.data_dir)
        before = ids(session)
        async with stage.opened() as runtime:
            talk = await stage.say(runtime, "birch", session=session)
    assert talk.end == Finished()
    assert talk.of(Notice) == [Notice(ANEW)]
    assert not {*before} & {*ids(session)}
    told = "\n".join(of_role(judged.page.asked[-1], "user"))
    assert "apple" in told
    assert told.endswith("birch")


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("when", ["in the text", "behind the result"])
async def test_fc_sdk_02_a_program_that_says_nothing_any_more(judged, when):
    """FC-SDK-02, D7: a result ends its turn at once; without one, silence does, and all goes on."""
    judged.changes = {"programs": ProgramsTable(silence=1.0)}
    async with staged(judged) as stage, stage.opened() as runtime:
        session, folder = stage.session(), stage.host.data_dir
        stage.script("a story", Say(("Once upon",)), Hold())
        told = "a story" if when == "in the text" else "hello"
        async with stage.turn(runtime, told, session=session) as talk:
            await talk.until(TextDelta)
            if when == "behind the result":
                assert (await talk.read()).end == Finished()
            stopped = programs(folder)
            for pid in stopped:
                os.kill(pid, signal.SIGSTOP)
            silent = await talk.read() if when == "in the text" else None
        if silent is None:
            silent = await stage.say(runtime, "and then", session=session)
        assert isinstance(silent.end, Failed)
        assert silent.end.kind is FailureKind.TIMEOUT
        assert not stopped & programs(folder)
        await judged.release()
        talk = await stage.say(runtime, "go on", session=session)
        assert talk.end == Finished()
        assert not stopped & programs(folder)
    assert of_role(judged.page.asked[-1], "user")[0] == told
