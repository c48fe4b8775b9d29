"""What an agent's tools are given of the turn they run in."""

from __future__ import annotations

import attrs

from dragoman import Address, Memory, TurnInput


@attrs.frozen(kw_only=True)
class TurnContext:
    """The context of a run: tools take it as ``RunContextWrapper[TurnContext]``.

    The model never sees it. ``inputs`` are the messages that the turn answers, and ``memory`` is
    the profile's memory for this conversation, or ``None`` where the profile has none.
    """

    turn_id: str
    session_id: str
    conversation_id: str
    profile: str
    address: Address
    inputs: tuple[TurnInput, ...]
    memory: Memory | None = None
