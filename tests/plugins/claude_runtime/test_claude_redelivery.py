"""What the program does with a prompt that it has seen: each attempt of a turn needs its own uuid."""

from __future__ import annotations

import uuid

import pytest

from dragoman.testing.runtime_script import Say
from dragoman_claude.prompts import prompt_id
from peers.claude_program import ClaudeProgram, heard, say, tell, texts
from peers.claude_server import ClaudeServer

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def claude_server():
    with ClaudeServer() as server:
        yield server


@pytest.fixture
def page(claude_server):
    return claude_server.begin()


@pytest.fixture
def program(claude_server, tmp_path):
    return ClaudeProgram(tmp_path, claude_server.base_url)


def asked(page):
    """The newest words of each call of the model."""
    return [lines[-1].text for lines in page.asked]


@pytest.mark.parametrize("elsewhere", [False, True], ids=["same program", "resumed"])
async def test_a_prompt_that_was_answered_is_skipped_without_a_word(program, page, elsewhere):
    """B1, D11: there is neither a call of the model nor a result to wait for."""
    session, seen = str(uuid.uuid4()), prompt_id("turn_1", 1)
    page.book.add("once", (Say(("First.",)),))
    page.book.add("and then", (Say(("Second.",)),))
    async with program.connected(session_id=session) as client:
        await tell(client, "once", identity=seen)
        assert texts(await heard(client)) == ["First."]
        if not elsewhere:
            await tell(client, "once", identity=seen)
            found = await say(client, "and then")
    if elsewhere:
        async with program.connected(resume=session) as client:
            await tell(client, "once", identity=seen)
            found = await say(client, "and then")
    assert texts(found) == ["Second."]
    assert seen not in (found[-1].user_message_uuids or [])
    assert asked(page) == ["once", "and then"]


async def test_another_attempt_is_another_prompt(program, page):
    """B7, D11: what is tried again is told again, in a session that knows the first try."""
    session = str(uuid.uuid4())
    page.book.add("once", (Say(("First.",)),))
    async with program.connected(session_id=session) as client:
        for attempt in (1, 2):
            identity = prompt_id("turn_1", attempt)
            await tell(client, "once", identity=identity)
            [*_, result] = await heard(client)
            assert result.user_message_uuid == identity
    assert asked(page) == ["once", "once"]
