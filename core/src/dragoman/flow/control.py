"""The commands that control an agent: stop what runs, begin anew, say how things are, and who asks.

They are recognised before any turn and never wait behind one. A stop ends the running turn and
refuses what waits behind it; what is said after the stop is a new message.
"""

from __future__ import annotations

from datetime import UTC
from typing import Final

import attrs

from dragoman.clock import Clock
from dragoman.flow.people import People
from dragoman.flow.registry import Given, Run
from dragoman.flow.turns import Turns
from dragoman.render.questions import waiting_line
from dragoman.runevents import Usage
from dragoman.store.operations import Reset, Stop, Stopped
from dragoman.store.protocol import Store

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
    _people: People

    @property
    def runs(self) -> dict[str, Run]:
        """What carries out the commands, by their names."""
        return {
            "new": self._new,
            "status": self._status,
            "stop": self._stop,
            "usage": self._usage,
            "whoami": self._whoami,
        }

    async def _cleared(self, given: Given) -> Stopped:
        """Refuse what waits in a session, and name its turn."""
        event = given.event
        return await self._store.apply(
            Stop(
                session_id=given.session_id,
                event_id=given.stored.id,
                lane=event.address.lane,
                sender=event.sender.id,
            )
        )

    async def _stop(self, given: Given) -> str:
        found = await self._cleared(given)
        if not await self._down(given.session_id, found):
            return UNCONFIRMED + _dropped(found)
        if not found.turn_id and not found.dropped:
            return IDLE
        return "Stopped." + _dropped(found)

    async def _new(self, given: Given) -> str:
        found, session_id = await self._cleared(given), given.session_id
        if not await self._down(session_id, found):
            return UNCONFIRMED + " The conversation goes on as it was." + _dropped(found)
        now = self._clock.now().timestamp()
        reset = Reset(session_id=session_id, event_id=given.stored.id, now=now)
        if session_id and not await self._store.apply(reset):
            return "Something new has begun here meanwhile, so the conversation goes on as it was."
        self._turns.look()  # what waits goes along
        return "A new conversation begins." + _dropped(found)

    async def _down(self, session_id: str, found: Stopped) -> bool:
        if not found.turn_id:
            return True
        return await self._turns.stop(session_id, found.turn_id, "stopped", CONFIRM_SECONDS)

    async def _whoami(self, given: Given) -> str:
        """Say by what the manifest names the one who asks; it is nobody else's business."""
        identity, profile = self._people.identity(given.event), given.routed.name
        return f"You are `{identity}`: {given.role.value}. Profile here: `{profile}`."

    async def _usage(self, given: Given) -> str:
        """Say what turns used; days and months are those of UTC, as for operators."""
        used, session_id = self._store.read.used, given.session_id
        today = self._clock.now().astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        month = today.replace(day=1)
        lines = [
            ("This session", await used(session_id)),
            ("This conversation, today", await used(session_id, today.timestamp(), all_=True)),
            ("This month", await used(session_id, month.timestamp(), all_=True)),
        ]
        return "\n".join(f"{name}: {_used(usage)}" for name, usage in lines)

    async def _status(self, given: Given) -> str:
        session_id = given.session_id
        if not session_id:
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


def _used(usage: Usage) -> str:
    if not usage.requests:
        return "nothing."
    cached = f" ({usage.cached_tokens:,} cached)" if usage.cached_tokens else ""
    cost = "" if usage.cost is None else f", ${usage.cost:.4f}"
    requests = "1 request" if usage.requests == 1 else f"{usage.requests:,} requests"
    tokens = f"{usage.input_tokens:,} tokens in{cached}, {usage.output_tokens:,} out"
    return f"{requests}, {tokens}{cost}."


def _messages(count: int) -> str:
    return "1 message" if count == 1 else f"{count} messages"


def _age(seconds: float) -> str:
    seconds = max(0, int(seconds))
    return f"{seconds} s" if seconds < 120 else f"{seconds // 60} min"
