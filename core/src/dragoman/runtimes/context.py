"""What an agent's tools are given of the turn they run in."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

import attrs

from dragoman.inputs import FetchedFile, TurnInput
from dragoman.messages import Address, Sender
from dragoman.protocols import Memory


class Attach(Protocol):
    """Takes a file over, to be shown behind the answer: `dragoman.TurnHost.attach`."""

    async def __call__(
        self, name: str, data: bytes, *, mime: str = "", kind: str = "file", caption: str = ""
    ) -> None:
        """Keep a copy of ``data`` until it is sent; raises `ValueError` for what cannot be."""
        ...


class Fetch(Protocol):
    """Gets a file that came with a message: `dragoman.TurnHost.fetch`."""

    async def __call__(self, reference: str) -> FetchedFile:
        """Return a copy on this machine; raises `dragoman.FileUnavailable`."""
        ...


class Read(Protocol):
    """Makes text of such a file: `dragoman.TurnHost.read`."""

    async def __call__(self, reference: str, limit: int = 20_000) -> str:
        """Return at most ``limit`` characters; raises `dragoman.FileUnavailable`."""
        ...


class Suggest(Protocol):
    """Offers answers below the turn's own: `dragoman.TurnHost.suggest`."""

    async def __call__(self, answers: Sequence[str]) -> None:
        """At most 5, each of 1 to 40 characters; raises `ValueError` for others."""
        ...


@attrs.frozen(kw_only=True)
class TurnContext:
    """What an agent's tools may know and do; a runtime's documentation says how they get it.

    The model never sees it. ``inputs`` are the messages that the turn answers, and ``memory`` is
    the profile's memory for this conversation, or ``None`` where the profile has none.

    ``person`` is who sent the newest of them; in a group others may have sent the rest. ``platform``
    is the id of the platform's table. ``now`` is when the turn began, in ``time_zone``, the
    runtime's: instructions that are functions can tell a model the date.

    A function tool finds the keys of its own call: ``call_key`` belongs to the model's call, and
    is the same when a paused turn is resumed; ``effect_key`` belongs to what is done, and is the
    same when the model is asked again in this turn and wants the same. Outside tools, and in those
    of an agent that is used as a tool, they are empty or those of the call around them.

    ``await attach("report.pdf", data)`` hands a file over, which is shown behind the answer. It
    takes bytes and no path: whatever a model wrote stays out of the file system.
    ``await fetch("12.1")`` gets a file that came with a message of the conversation, and
    ``await read("12.1")`` its text; `dragoman.TurnInput.files` has the references of new ones.
    ``await suggest(["Yes", "No"])`` offers answers below the turn's own, as buttons.
    """

    turn_id: str
    session_id: str
    conversation_id: str
    profile: str
    address: Address
    person: Sender
    platform: str
    time_zone: str
    now: datetime
    inputs: tuple[TurnInput, ...]
    attach: Attach = attrs.field(repr=False, eq=False)
    fetch: Fetch = attrs.field(repr=False, eq=False)
    read: Read = attrs.field(repr=False, eq=False)
    suggest: Suggest = attrs.field(repr=False, eq=False)
    memory: Memory | None = None
    call_key: str = ""
    effect_key: str = ""
