"""What operators can see of a stored session: who said what, and what is wrong with its lines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from attrs import frozen

from dragoman import Inspection, ItemLine, ItemProblem
from dragoman_claude import history
from dragoman_claude.history import NAMESPACE, Entry, Item
from dragoman_claude.mending import examine

_WORDS: Final = {"text": "text", "thinking": "thinking"}
"""Which value of a block is what was said, by the block's type."""


@frozen
class Inspector:
    """Looks through a session's items; neither the SDK nor its program is needed for that."""

    def inspect(self, lists: Mapping[str, Sequence[str]]) -> Inspection:
        """Return the items of all lists, and what is wrong with the lines of the transcript."""
        lines: list[ItemLine] = []
        for namespace, stored in lists.items():
            describe = _lines if namespace == NAMESPACE else _others
            lines += describe(namespace, stored)
        stored = lists.get(NAMESPACE, ())
        found = examine(stored)
        return Inspection(
            lines=tuple(lines),
            problems=tuple(
                ItemProblem(NAMESPACE, place + 1, text)
                for place, text in sorted(found.wrong.items())
            ),
            repaired={NAMESPACE: found.left} if found.wrong else {},
            notes=tuple(_notes(stored)),
        )


def make_inspector(config: object, table: str, profile: str) -> Inspector:
    """Return what reads the items of a runtime; it is the same for all."""
    del config, table, profile
    return Inspector()


def _notes(stored: Sequence[str]) -> Iterator[str]:
    untold = len(history.read_state(stored).untold)
    if untold:
        yield f"not given to the agent yet, and told with the next message: {untold}"
    ids = sum(history.is_session_id(str(history.decode(text).get("id"))) for text in stored)
    if ids > 1:
        yield f"the session was given {ids} ids, of which the last one counts"


def _lines(namespace: str, stored: Sequence[str]) -> Iterator[ItemLine]:
    tools: dict[str, str] = {}
    for number, text in enumerate(stored, start=1):
        item = history.decode(text)
        kind, name, identity, words = _described(item, tools)
        yield ItemLine(
            namespace=namespace,
            number=number,
            kind=f"subagent {kind}" if "sub" in item else kind,
            name=name,
            id=identity,
            size=len(text),
            text=words if kind != "no item" else text,
        )


def _others(namespace: str, stored: Sequence[str]) -> Iterator[ItemLine]:
    for number, text in enumerate(stored, start=1):
        yield ItemLine(namespace=namespace, number=number, kind="note", size=len(text), text=text)


def _described(item: Item, tools: dict[str, str]) -> tuple[str, str, str, str]:
    """Return (kind, name, id, text) of an item; ``tools`` are the names of calls, by their ids."""
    match item:
        case {"in": event_id, "text": str(words)}:
            return "message", "", str(event_id), words
        case {"past": str(words)}:
            return "past", "", "", words
        case {"id": str(session_id)}:
            return "session", "", session_id, ""
        case {"at": str(uuid), "told": told}:
            return "mark", "prompt" if told else "", uuid, ""
        case {"entry": dict(entry)}:
            return _of_entry(entry, tools)
    return "no item", "", "", ""


def _of_entry(entry: Entry, tools: dict[str, str]) -> tuple[str, str, str, str]:
    kind, uuid = str(entry.get("type")), history.uuid_of(entry) or ""
    attachment = entry.get("attachment")
    if isinstance(attachment, dict):
        return kind, str(attachment.get("type") or ""), uuid, _as_json(attachment)
    found = history.blocks(entry)
    words = "\n".join(filter(None, map(_words, found)))
    for block in found:
        if block.get("type") == "tool_use":
            called = str(block.get("id"))
            tools[called] = str(block.get("name"))
            return "tool_use", tools[called], called, words
        if block.get("type") == "tool_result":
            called = str(block.get("tool_use_id"))
            return "tool_result", tools.get(called, ""), called, words
        if block.get("type") == "thinking":
            return "thinking", "", uuid, words
    return kind, str(entry.get("subtype") or ""), uuid, words


def _words(block: Mapping[str, Any]) -> str:
    """Return what a block says: words, arguments or results; of a file that it is there."""
    kind = block.get("type")
    if kind == "tool_use":
        return _as_json(block.get("input"))
    if kind == "tool_result":
        content = block.get("content")
        if isinstance(content, list):
            return "".join(_words(part) for part in content if isinstance(part, dict))
        return str(content or "")
    words = block.get(_WORDS.get(str(kind), ""))
    return words if isinstance(words, str) else f"[{kind}]"


def _as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
