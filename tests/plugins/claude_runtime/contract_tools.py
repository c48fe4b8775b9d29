"""The tool of the agent whose runtime is judged: it has its effects on a page of the model server."""

from __future__ import annotations

from dragoman import SystemClock
from dragoman.testing.runtime_script import outcome
from peers.scripted_model import Page

CLOCK = SystemClock()
PAGES = [Page()]
"""The newest one last: a test begins one of its own."""


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


async def act_if_allowed(what: str) -> str:
    """Do something outside that a person has to allow."""
    return await act(what)
