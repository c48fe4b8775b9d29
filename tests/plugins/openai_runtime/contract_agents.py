"""The agent whose runtime is judged: its one tool has its effects on a page of the model server."""

from __future__ import annotations

from typing import Any

from agents import Agent, function_tool

from dragoman import SystemClock
from dragoman.testing.runtime_suite import outcome
from peers.scripted_model import Page

CLOCK = SystemClock()
PAGES = [Page()]
"""The newest one last: a test begins one of its own."""


async def asks(run: Any, arguments: dict[str, Any], call_id: str) -> bool:
    return PAGES[-1].book.act(arguments["what"]).asks


@function_tool(needs_approval=asks)
async def act(what: str) -> str:
    """Do something outside."""
    page = PAGES[-1]
    wanted = page.book.act(what)
    page.busy += 1
    try:
        page.effects.append(what)
        while wanted.holds and not page.released.is_set():
            await CLOCK.sleep(0.002)
        if wanted.fails:
            raise ValueError(f"{what} is broken")
        return outcome(what)
    finally:
        page.busy -= 1


assistant = Agent(name="assistant", instructions="Help.", tools=[act])
