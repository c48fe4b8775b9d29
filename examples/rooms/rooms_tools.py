"""The meeting rooms of an office: one function that looks, and one that books.

The README beside this file says how to run it.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from mcp.server.mcpserver.exceptions import ToolError

from dragoman.runtimes import TurnContext

SEATS = {"Amber": 4, "Birch": 8, "Cedar": 20}
BOOKED: dict[str, tuple[datetime, str]] = {}
"""Until when and by whom, by room. A real one asks the calendar of the office."""


async def free_rooms(context: TurnContext, people: int = 1) -> str:
    """Say which rooms are free now and seat so many people."""
    free = [
        f"{room} ({seats} seats)"
        for room, seats in SEATS.items()
        if seats >= people and not _is_taken(room, context.now)
    ]
    return f"Free now: {', '.join(free)}." if free else "No room of that size is free."


async def book_room(context: TurnContext, room: str, hours: int) -> str:
    """Book a room from now on. A person is asked before this runs.

    Args:
        room: The room's name.
        hours: For how many hours.
    """
    if room not in SEATS:
        raise ToolError(f"There is no room {room}; there are {', '.join(SEATS)}.")
    if _is_taken(room, context.now):
        raise ToolError(f"{room} is taken by {BOOKED[room][1]}.")
    until = context.now + timedelta(hours=hours)
    BOOKED[room] = until, context.person.name or "somebody"
    # A calendar that is given this key books once, however often it is asked.
    key = context.effect_key
    return f"{room} is booked until {until:%H:%M} ({context.time_zone}), reference {key[:8]}."


def _is_taken(room: str, now: datetime) -> bool:
    return room in BOOKED and BOOKED[room][0] > now
