"""What a growing answer shows by now, and when it is shown next: no I/O, the clock comes in.

People see the text as far as it goes, below it what runs now, and after a long silence that it is
still being worked on.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import attrs

from dragoman.render.answer import Answer
from dragoman.render.endings import NO_ANSWER, final_text
from dragoman.render.pacing import Pace
from dragoman.render.text import OpenText, is_blank
from dragoman.runevents import Finished, RunEnd

Verbosity: TypeAlias = Literal["final", "status", "full"]

WORKING_SECONDS: Final = 180.0
"""How long an answer may not grow until people are told that it is still being worked on."""


@attrs.frozen
class View:
    """What of a turn people may see.

    ``silences`` are the answers that show nothing at all. With ``veiled``, nothing of the text is
    shown before it is whole.
    """

    verbosity: Verbosity = "status"
    silences: tuple[str, ...] = ()
    veiled: bool = False

    def growing(self, answer: Answer, closer: OpenText | None, *, bare: bool = False) -> str:
        """Return what an answer that is being written shows, as Markdown; blank for nothing.

        ``closer`` closes what is open in its text. A ``bare`` one has no line on what runs now.
        """
        body = ""
        if not self.veiled and not self._may_stay_silent(answer.text):
            body = self.body(answer)
        if closer:
            body = closer.shown(body)
        told = not bare and (self.veiled or self.verbosity == "status")
        status = answer.status if told else ""
        return "\n\n".join(text for text in (body, status) if text)

    def body(self, answer: Answer) -> str:
        """Return the part of the view that stays."""
        return answer.full if self.verbosity == "full" else answer.text

    def whole(self, answer: Answer, end: RunEnd) -> str:
        """Return what stays of a turn that came to its end; blank where nothing is to be shown."""
        text, body = answer.text, self.body(answer)
        if not isinstance(end, Finished):
            return final_text(body, end)
        if not is_blank(text):
            return "" if text.strip() in self.silences else body
        if "" in self.silences:
            return ""
        return f"{body}\n\n{NO_ANSWER}" if body != text else NO_ANSWER

    def _may_stay_silent(self, text: str) -> bool:
        """Whether the text may become an answer that shows nothing."""
        return any(silence.startswith(text.strip()) for silence in self.silences)


@attrs.define(eq=False)
class Preview:
    """The rhythm of one answer's previews. Times are seconds of one clock."""

    answer: Answer
    view: View
    pace: Pace
    closer: OpenText | None
    _grew_at: float
    """When something happened in the turn for the last time."""
    _since: float | None = attrs.field(init=False, default=None)
    """When there was something to show for the first time."""
    _shown: int = attrs.field(init=False, default=0)
    """The version of the answer that is shown."""
    _told: int = attrs.field(init=False, default=0)
    """What the line for a long silence says, in minutes."""

    def changed(self, now: float) -> None:
        """Say that something happened."""
        self._grew_at, self._told = now, 0
        if self._since is None and self.answer.version:
            self._since = now

    def due(
        self,
        now: float,
        *,
        shown: bool,
        changed: float | None,
        not_before: float | None = None,
    ) -> float:
        """Return the seconds until the next preview; infinite while there is none to show.

        The other words are those of `Pace.due`.
        """
        since, pending = self._since, self.answer.size or 1
        if since is None or self.answer.version == self._shown:
            since = self._grew_at + max(WORKING_SECONDS, (self._told + 1) * 60.0)
            pending = self.pace.first_chars  # the line for a long silence waits for no more of it
            if since > now:
                return since - now
        at = self.pace.due(
            now,
            pending=max(pending, 1),
            since=since,
            shown=shown,
            changed=changed,
            not_before=not_before,
        )
        return float("inf") if at is None else at - now

    def source(self, now: float, *, bare: bool = False) -> str:
        """Return what should be visible now, as Markdown; blank for nothing.

        A ``bare`` one has no lines that go away again.
        """
        source = self.view.growing(self.answer, self.closer, bare=bare)
        minutes = self._silent(now)
        if minutes * 60 >= WORKING_SECONDS and not bare:
            source = f"{source}\n\n*(still working, {minutes} min)*".lstrip("\n")
        return source

    def mark(self, now: float) -> tuple[int, int]:
        """Return what `source` is made of now, for `done`."""
        return self.answer.version, self._silent(now)

    def done(self, mark: tuple[int, int]) -> None:
        """Say that what was meant at ``mark`` is shown."""
        self._shown, self._told = mark

    def _silent(self, now: float) -> int:
        return int((now - self._grew_at) // 60)
