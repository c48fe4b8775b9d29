"""Operations on the sessions of one conversation: one is current, the others are set aside.

What is said in a conversation goes to its current session of the profile and runtime. Those that
are set aside keep all they have, and can be gone back to.
"""

from __future__ import annotations

from typing import ClassVar

import attrs

from dragoman.store.values import Operation, StoredEvent


@attrs.frozen(kw_only=True)
class Reset(Operation[str]):
    """Set a session aside that runs no turn, and begin another one; answers which is current then.

    Empty where a turn runs or waits. A session in which nothing was said goes on as the new one.
    What was noted before is not told any more, and what waits goes along. ``event_id`` is the event
    that asked for it, and the identity of the operation.
    """

    about: ClassVar[tuple[str, ...]] = ()

    session_id: str
    event_id: int
    now: float


@attrs.frozen(kw_only=True)
class Resume(Operation[str]):
    """Go back to the session ``wanted`` of the same conversation, profile and runtime.

    Answers which session is current by it; empty where there is no such session, and while the
    current one runs a turn or has anything waiting. Identity: ``event_id``.
    """

    about: ClassVar[tuple[str, ...]] = ()

    session_id: str
    wanted: str
    event_id: int


@attrs.frozen(kw_only=True)
class Rename(Operation[None]):
    """Name a session; with an empty title it goes by its first words again."""

    about: ClassVar[tuple[str, ...]] = ("session_id",)

    session_id: str
    title: str


@attrs.frozen(kw_only=True)
class Undo(Operation[tuple[StoredEvent, ...]]):
    """Take a session's last turn out of its records; answers the messages of that turn.

    Its items in ``namespaces`` are removed, with all that followed from them: the lists are what
    they were before it began. What it used, and what was shown, stays. Empty where there is no
    such turn or another one runs, and where a list was begun anew since by no turn. With
    ``unanswered`` a turn that succeeded is left. Identity: ``event_id``.
    """

    about: ClassVar[tuple[str, ...]] = ()

    session_id: str
    event_id: int
    namespaces: tuple[str, ...]
    unanswered: bool = False
