"""Functions of an agent under attack: each says in whose turn it was called."""

from __future__ import annotations

import json

from dragoman.runtimes import TurnContext


async def whose(context: TurnContext, word: str) -> str:
    """Say whose turn this is."""
    told = {
        "word": word,
        "session": context.session_id,
        "conversation": context.conversation_id,
        "turn": context.turn_id,
        "said": [one.text for one in context.inputs],
    }
    return json.dumps(told)
