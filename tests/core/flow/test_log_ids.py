"""What a log line says it is about."""

import json
import logging

import pytest

from dragoman import NotSent
from dragoman.logs import JsonFormatter
from dragoman.testing import ScriptedRuntime, StubPlugin
from stage import gateway

pytestmark = pytest.mark.anyio


async def breaks(request, host):
    raise ValueError("what a person wrote")
    yield


async def test_lines_name_turn_session_conversation_and_part(caplog):
    """B13: from a line of the log to everything else about it, and no text on the way."""
    caplog.set_level(logging.INFO)
    plugin = StubPlugin(runtimes={"scripted": ScriptedRuntime(breaks)})
    plugin.platform().faults.append(NotSent("no route"))
    async with gateway(plugin) as stage:
        await stage.platform.say("hello")
        await stage.until_final()
        ((turn, session),) = await stage.rows("SELECT id, session_id FROM agent_runs")
        ((conversation,),) = await stage.rows("SELECT id FROM conversations")
        ((part,),) = await stage.rows("SELECT id FROM deliveries")
    lines = [json.loads(JsonFormatter().format(record)) for record in caplog.records]
    about_turn = next(line for line in lines if "ValueError" in line["message"])
    assert (
        about_turn
        | {
            "turn": turn,
            "session": session,
            "conversation": conversation,
            "platform": "stub",
        }
        == about_turn
    )
    about_part = next(line for line in lines if "no route" in line["message"])
    assert about_part | {"delivery": part, "turn": turn, "platform": "stub"} == about_part
    assert "what a person wrote" not in str(lines)
