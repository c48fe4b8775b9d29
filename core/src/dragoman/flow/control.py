"""The commands that control an agent: stop what runs, begin anew, say how things are.

They are recognised before any turn and never wait behind one. A stop ends the running turn and
refuses what waits behind it; what is said after the stop is a new message.
"""

from __future__ import annotations

from typing import Final

import attrs

from dragoman.clock import Clock
from dragoman.components import CommandCall
from dragoman.flow.turns import Turns
from dragoman.keys import conversation_key
from dragoman.manifest.model import Profile
from dragoman.render.questions import waiting_line
from dragoman.store.operations import Reset, Stop, Stopped, StoredEvent
from dragoman.store.protocol import Store

HELP: Final = {
    "new": "begin a new conversation; what was said before is no longer used",
    "status": "say what is going on here",
    "stop": "stop the answer that is being made, and what waits behind it",
}
CONFIRM_SECONDS: Final = 5.0
"""How long a stop waits for the agent to be really down."""

IDLE: Final = "Nothing is running here."
UNCONFIRMED: Final = (
    "I asked the agent to stop, but could not confirm that it did. It may still be working; "
    "nothing new begins here until it has ended."
)


@attrs.define(eq=False)
class Control:
    """What the commands do, for one deployment."""

    _store: Store
    _clock: Clock
    _turns: Turns

    async def run(self, stored: StoredEvent, call: CommandCall, profile: Profile) -> str:
        """Carry out a command; return what is shown in answer."""
        event = stored.inbound
        key = conversation_key(event.address, event.sender, profile.scope)
        session_id = await self._store.read.session(key, call.profile, profile.runtime)
        if call.name == "status":
            return await self._status(session_id)
        found = await self._store.apply(
            Stop(
                session_id=session_id or "",
                event_id=stored.id,
                lane=event.address.lane,
                sender=event.sender.id,
            )
        )
        return await (self._stop if call.name == "stop" else self._new)(
            session_id or "", stored.id, found
        )

    async def _stop(self, session_id: str, event_id: int, found: Stopped) -> str:
        del event_id
        if not await self._down(session_id, found):
            return UNCONFIRMED + _dropped(found)
        if not found.turn_id and not found.dropped:
            return IDLE
        return "Stopped." + _dropped(found)

    async def _new(self, session_id: str, event_id: int, found: Stopped) -> str:
        if not await self._down(session_id, found):
            return UNCONFIRMED + " The conversation goes on as it was." + _dropped(found)
        fresh = not session_id or await self._store.apply(
            Reset(session_id=session_id, event_id=event_id)
        )
        if not fresh:
            return "Something new has begun here meanwhile, so the conversation goes on as it was."
        return "A new conversation begins." + _dropped(found)

    async def _down(self, session_id: str, found: Stopped) -> bool:
        if not found.turn_id:
            return True
        return await self._turns.stop(session_id, found.turn_id, "stopped", CONFIRM_SECONDS)

    async def _status(self, session_id: str | None) -> str:
        if session_id is None:
            return IDLE
        running = await self._store.read.running(session_id)
        waiting = await self._store.read.queued(session_id, 1000)
        now = self._clock.now().timestamp()
        asked = await self._store.read.open_questions(session_id)
        lines = [
            f"Waiting for {waiting_line(one.question.tool, one.question.id)}." for one in asked
        ]
        if not asked:
            lines = [IDLE if running is None else f"Working for {_age(now - running[1])}."]
        if waiting:
            oldest = _age(now - waiting[0].received_at)
            lines.append(f"{_messages(len(waiting))} waiting, the oldest for {oldest}.")
        return " ".join(lines)


def _dropped(found: Stopped) -> str:
    return f" {_messages(found.dropped)} that waited will not be answered." if found.dropped else ""


def _messages(count: int) -> str:
    return "1 message" if count == 1 else f"{count} messages"


def _age(seconds: float) -> str:
    seconds = max(0, int(seconds))
    return f"{seconds} s" if seconds < 120 else f"{seconds // 60} min"
