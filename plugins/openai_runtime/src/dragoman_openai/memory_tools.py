"""The two tools by which an agent uses the profile's memory."""

from __future__ import annotations

from typing import Any, Final

from agents import AgentBase, FunctionTool, RunContextWrapper, function_tool

from dragoman.runtimes import TurnContext, recall, remember

READ_ONLY: Final = frozenset({"recall"})
"""Which of the two changes nothing."""


async def _remember(run: RunContextWrapper[TurnContext], text: str) -> str:
    """Keep a note in long-term memory, for later conversations as well.

    Args:
        text: The note, in words that will make sense without this conversation.
    """
    return await remember(run.context, text)


async def _recall(run: RunContextWrapper[TurnContext], query: str) -> str:
    """Look something up in long-term memory.

    Args:
        query: A few words that the note is about.
    """
    return await recall(run.context, query)


def _offered(run: RunContextWrapper[Any], agent: AgentBase[Any]) -> bool:
    """Whether the turn's profile has a memory."""
    del agent
    return isinstance(run.context, TurnContext) and run.context.memory is not None


def memory_tools() -> list[FunctionTool]:
    """Return ``remember`` and ``recall``; a model sees them only in turns that have a memory."""
    return [
        function_tool(_remember, name_override="remember", is_enabled=_offered),
        function_tool(_recall, name_override="recall", is_enabled=_offered),
    ]
