"""A person's sessions: which there are, another one, its name, its last exchange.

They are those of the conversation in which somebody asks, under the profile that answers there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from dragoman.clock import Clock
from dragoman.flow.commands import BUSY
from dragoman.flow.holds import joined
from dragoman.flow.registry import Given, Run
from dragoman.inputs import one_line
from dragoman.messages import Inbound
from dragoman.protocols import Runtime
from dragoman.render.text import sanitise
from dragoman.store.operations import PastSession, Rename, Resume, StoredEvent, Undo
from dragoman.store.protocol import Store

LISTED: Final = 10
"""Sessions that one list shows."""
LONGEST: Final = 60
"""Characters of a title, and of the words that stand for one."""

NONE: Final = "There is no session here yet."
NO_MATCH: Final = "No session here is about that."
WHICH: Final = "Say which one: its number in /sessions, or the beginning of its id."
UNKNOWN: Final = "There is no such session here; /sessions lists them."
SEVERAL: Final = "Several sessions begin like that; say more of the id."
UNDONE: Final = (
    "The last exchange is taken back: the agent no longer knows it. What was shown stays."
)
NOTHING: Final = "There is nothing here that can be taken back."
ELSEWHERE: Final = (
    "The agent's history is kept elsewhere, where nothing can be taken back; /new begins a new one."
)
UNTITLED: Final = "Say the name behind the command, as in: /rename holiday plans"


@attrs.define(eq=False)
class PastSessions:
    """What the commands do, for one deployment."""

    _store: Store
    _clock: Clock
    _runtimes: Mapping[str, Runtime]

    @property
    def runs(self) -> dict[str, Run]:
        """What carries out the commands, by their names."""
        return {
            "rename": self._rename,
            "resume": self._resume,
            "retry": self._retry,
            "sessions": self._sessions,
            "undo": self._undo,
        }

    async def _listed(self, given: Given) -> Sequence[PastSession]:
        return await self._store.read.sessions(given.session_id) if given.session_id else ()

    async def _sessions(self, given: Given) -> str:
        known = await self._listed(given)
        wanted = given.call.arguments.casefold()
        found = [one for one in known if wanted in f"{one.title}\n{one.words}".casefold()]
        if not found:
            return NO_MATCH if known else NONE
        lines = [self._line(one) for one in found[:LISTED]]
        if (more := len(found) - LISTED) > 0:
            lines.append(f"and {more} more; `/sessions WORDS` finds those about something.")
        return "\n".join(lines)

    def _line(self, one: PastSession) -> str:
        ago = _age(self._clock.now().timestamp() - one.used_at)
        return f"{one.number}: {_name(one)}, {'current, ' * one.current}{ago} (`{one.id}`)"

    async def _resume(self, given: Given) -> str:
        known, wanted = await self._listed(given), given.call.arguments
        if not wanted:
            return WHICH
        found = [one for one in known if str(one.number) == wanted] or [
            one for one in known if one.id.startswith(wanted)
        ]
        if len(found) != 1:
            return SEVERAL if found else UNKNOWN
        resumed = await self._store.apply(
            Resume(session_id=given.session_id, wanted=found[0].id, event_id=given.stored.id)
        )
        now = next((one for one in known if one.id == resumed), None)
        return f"The conversation goes on with {now.number}: {_name(now)}." if now else BUSY

    async def _rename(self, given: Given) -> str:
        title = one_line(sanitise(given.call.arguments), LONGEST)
        if not given.session_id:
            return NONE
        if not title:
            return UNTITLED
        await self._store.apply(Rename(session_id=given.session_id, title=title))
        return f"This session is called {_quoted(title)} now."

    async def _undo(self, given: Given) -> str:
        if not self._history(given):
            return ELSEWHERE
        return UNDONE if await self._taken_back(given) else NOTHING

    async def _retry(self, given: Given) -> str | Inbound:
        """Let the command go on as what was said last; an answer to that is taken back.

        Where nothing can be, only what was not answered is said once more.
        """
        if inputs := await self._taken_back(given):
            return said_again(given.event, [one.inbound for one in inputs])
        return NOTHING if self._history(given) else ELSEWHERE

    async def _taken_back(self, given: Given) -> Sequence[StoredEvent]:
        history = self._history(given)
        undo = Undo(
            session_id=given.session_id,
            event_id=given.stored.id,
            namespaces=history,
            unanswered=not history,
        )
        return await self._store.apply(undo)

    def _history(self, given: Given) -> tuple[str, ...]:
        """Return the lists that a profile's runtime knows all from."""
        runtime = self._runtimes.get(given.routed.profile.runtime)
        return runtime.capabilities.history if runtime else ()


def said_again(event: Inbound, said: Sequence[Inbound]) -> Inbound:
    """Return an event as the message of its sender that says once more what ``said`` did."""
    whole = joined(said)
    return attrs.evolve(
        event,
        text=whole.text if whole.album else "\n".join(one.text for one in said if one.text),
        attachments=whole.attachments,
        quote=whole.quote,
        forwarded=whole.forwarded,
        notes=tuple(note for one in said for note in one.notes),
        joined=whole.joined,
    )


def _name(one: PastSession) -> str:
    words = one_line(one.title or one.words, LONGEST)
    return _quoted(words) if words else "(nothing said yet)"


def _quoted(words: str) -> str:
    """Return words of people as a code span, in which they mean nothing."""
    return f"`{words.replace('`', chr(39))}`"


def _age(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
    return "just now"
