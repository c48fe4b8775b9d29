"""What a turn that waits for a person is kept as: the session, and the call that it waits for.

The call itself is in the transcript; the program asks about it again when the session is resumed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Final
from uuid import uuid4

import attrs

from dragoman import ApprovalRequested, FailureKind, RuntimeFailed
from dragoman_claude import history

_WITHDRAWN: Final = (
    "Not run: a person was asked about this call, and before there was an answer the question was "
    "withdrawn."
)


@attrs.frozen
class Saved:
    """A paused turn."""

    claude_id: str
    call_id: str
    digest: str
    """Of the tool and its arguments: what was decided on is what runs."""
    model: str = ""
    """What people had chosen when the turn began."""

    @classmethod
    def about(cls, asked: ApprovalRequested, claude_id: str, model: str) -> Saved:
        """Return the pause for a question."""
        return cls(claude_id, asked.call_id, digest(asked.tool, asked.arguments), model)

    def text(self) -> str:
        """Return it as text."""
        return json.dumps(attrs.asdict(self))

    @classmethod
    def of(cls, text: str) -> Saved:
        """Return what `text` gave; raises `dragoman.RuntimeFailed` for what it did not give."""
        try:
            found = json.loads(text)
            return cls(*(str({"model": "", **found}[each.name]) for each in attrs.fields(cls)))
        except (ValueError, TypeError, KeyError) as error:
            raise RuntimeFailed(FailureKind.STATE_LOST, "the state cannot be read") from error

    def is_about(self, call_id: str, tool: str, arguments: str) -> bool:
        """Whether a call is the one that a person was asked about; ``arguments`` is JSON."""
        return (call_id, digest(tool, arguments)) == (self.call_id, self.digest)

    def check(self, claude_id: str | None) -> None:
        """Raise `dragoman.RuntimeFailed` unless this is the session that paused."""
        if claude_id != self.claude_id:
            raise RuntimeFailed(FailureKind.STATE_LOST, "the session is not the one that paused")


def digest(tool: str, arguments: str) -> str:
    """Return what tells a call from another; ``arguments`` is JSON."""
    return hashlib.sha256(f"{tool}\0{arguments}".encode()).hexdigest()


def withdrawn(lines: Iterable[history.Entry], behind: str | None) -> list[history.Entry]:
    """Return what came of calls that wait for a decision which nobody will make any more.

    The program would ask about them once more. These lines follow the line ``behind``, as if it
    had written them.
    """
    made: list[history.Entry] = []
    for call in _waiting(lines):
        result = {"type": "tool_result", "tool_use_id": call, "content": _WITHDRAWN}
        name = str(uuid4())
        made.append(
            {
                "type": "user",
                "uuid": name,
                "parentUuid": behind,
                "isSidechain": False,
                "message": {"role": "user", "content": [{**result, "is_error": True}]},
            }
        )
        behind = name
    return made


def _waiting(lines: Iterable[history.Entry]) -> list[str]:
    """Return the calls that wait for a decision, in order."""
    waiting: dict[str, None] = {}
    for line in lines:
        told = line.get("attachment")
        if isinstance(told, dict) and told.get("type") == "hook_deferred_tool":
            waiting[str(told.get("toolUseID"))] = None
        for block in history.blocks(line):
            if block.get("type") == "tool_result":
                waiting.pop(str(block.get("tool_use_id")), None)
    return list(waiting)
