"""Operations on the sessions of one conversation: one is current, the others are set aside.

What is said in a conversation goes to its current session of the profile and runtime. Those that
are set aside keep all they have, and can be gone back to.
"""

from __future__ import annotations

from typing import ClassVar

import attrs

from dragoman.store.values import Operation


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
