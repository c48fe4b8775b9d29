"""The tool by which an agent reads files that people sent."""

from __future__ import annotations

from typing import Any, Final

from agents import AgentBase, FunctionTool, RunContextWrapper, function_tool

from dragoman.runtimes import TurnContext, read_file
from dragoman_openai.journal import JournalledContext

READ_ONLY: Final = frozenset({"read_file"})
"""It changes nothing."""


async def _read_file(run: RunContextWrapper[TurnContext], reference: str) -> str:
    """Read a file that somebody sent in this conversation, as text.

    Args:
        reference: The number in the file's line, as 12.1 in "[document 12.1: report.pdf]".
    """
    return await read_file(run.context, reference)


def _offered(run: RunContextWrapper[Any], agent: AgentBase[Any]) -> bool:
    """Whether the model is shown a file: a new one, or one in what it sees of the history."""
    del agent
    context = run.context
    return isinstance(context, JournalledContext) and context.session.names_files


def file_tools() -> list[FunctionTool]:
    """Return ``read_file``; a model sees it only where it also sees what could be read."""
    return [function_tool(_read_file, name_override="read_file", is_enabled=_offered)]
