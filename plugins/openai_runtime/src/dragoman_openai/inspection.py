"""What operators can see of a stored history: its items in one line each, and what is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any, Final

import anyio
import attrs

from dragoman import Inspection, ItemLine, ItemProblem
from dragoman_openai import history
from dragoman_openai.config import OpenAIConfig
from dragoman_openai.history import Item

HISTORY: Final = "openai"
HANDOFFS: Final = "openai.agent"
_NONE: Final[Item] = {}
"""Stands for what is no item."""

AgentNames = Callable[[], AbstractSet[str] | None]


@attrs.define(eq=False)
class Inspector:
    """Looks through a session's items. ``agents`` is asked only where somebody was handed over."""

    _agents: AgentNames
    _known: list[AbstractSet[str] | None] = attrs.field(factory=list)

    def inspect(self, lists: Mapping[str, Sequence[str]]) -> Inspection:
        """Return the items of all lists, and what keeps a model from being sent them."""
        lines: list[ItemLine] = []
        problems: list[ItemProblem] = []
        repaired: dict[str, tuple[str, ...]] = {}
        for namespace, stored in lists.items():
            if namespace == HISTORY:
                items = [_decoded(text) for text in stored]
                wrong = dict(_wrong(items))
                lines += _lines(namespace, stored, items)
            else:
                wrong = self._lost(stored) if namespace == HANDOFFS else {}
                lines += map(partial(_other, namespace), range(1, len(stored) + 1), stored)
            problems += [ItemProblem(namespace, n + 1, text) for n, text in sorted(wrong.items())]
            if wrong:
                left = [text for n, text in enumerate(stored) if n not in wrong]
                repaired[namespace] = tuple(left if namespace == HISTORY else ())
        return Inspection(
            lines=tuple(lines),
            problems=tuple(problems),
            repaired=repaired,
            notes=self._notes(lists.get(HANDOFFS, ())),
        )

    def _lost(self, names: Sequence[str]) -> dict[int, str]:
        """Return what is wrong with who was handed the conversation last: nobody else counts."""
        known = self._names() if names else None
        if known is None or names[-1] in known:
            return {}
        who = names[-1]
        return {len(names) - 1: f"handed over to {who!r}, and no agent of this runtime is named so"}

    def _notes(self, names: Sequence[str]) -> tuple[str, ...]:
        if names and self._names() is None:
            return (
                "the agents cannot be loaded, so handoffs were not checked; see dragoman check",
            )
        return ()

    def _names(self) -> AbstractSet[str] | None:
        if not self._known:
            self._known.append(self._agents())
        return self._known[0]


def make_inspector(config: OpenAIConfig, table: str, profile: str) -> Inspector:
    """Return what reads the items of a runtime, for one of its profiles."""
    return Inspector(partial(_agent_names, config, table, profile))


def _agent_names(config: OpenAIConfig, table: str, profile: str) -> AbstractSet[str] | None:
    """Return the names of all agents of a profile, or ``None`` where they cannot be had."""
    from dragoman_openai import agents  # imports the SDK: seconds

    try:
        return anyio.run(agents.load(config, table).of, profile).by_name.keys()
    except Exception:  # noqa: BLE001 - operator code may raise anything, and `check` tells of it
        return None


def _decoded(text: str) -> Item:
    found = history.decode([text])
    return found[0] if found else _NONE


def _wrong(items: Sequence[Item]) -> Iterator[tuple[int, str]]:
    """Yield the index and the trouble of each item that a model must not be sent."""
    known = [index for index, item in enumerate(items) if _is_item(item)]
    sent = [items[index] for index in known]
    whole, again = history.whole(sent), history.repeated(sent)
    pairs = _Pairs.of(sent, whole)
    for index, item in enumerate(items):
        if not _is_item(item):
            yield index, "it is no item that a model could be sent"
    for place, item in enumerate(sent):
        if place in again:
            yield known[place], "the same item comes again later"
        elif place not in whole:
            yield known[place], pairs.trouble(item)


@attrs.frozen
class _Pairs:
    """The calls and outputs of a history, and those of both that are whole."""

    calls: AbstractSet[history.Pair]
    outputs: AbstractSet[history.Pair]
    whole: AbstractSet[history.Pair]

    @classmethod
    def of(cls, items: Sequence[Item], whole: AbstractSet[int]) -> _Pairs:
        roles = [history.roles(item) for item in items]
        return cls(
            calls={opens for opens, _ in roles if opens},
            outputs={closes for _, closes in roles if closes},
            whole={roles[index][0] for index in whole} - {None},  # type: ignore[arg-type]
        )

    def trouble(self, item: Item) -> str:
        """Return why an item is not whole."""
        if history.is_reasoning(item):
            return "what this reasoning led to is missing"
        opens, closes = history.roles(item)
        if (opens or closes) in self.whole:
            return "its call id is used by another call, too"
        if opens is not None and opens[0] == "mcp_approval_response":
            return "an approval was asked for, and never given or refused"
        if opens is not None:
            lost = opens not in self.outputs
            return "its output is missing" if lost else "its output is in another place"
        return "its call is missing" if closes not in self.calls else "its call is in another place"


def _is_item(item: Item) -> bool:
    return isinstance(item.get("type"), str) or isinstance(item.get("role"), str)


def _lines(namespace: str, stored: Sequence[str], items: Sequence[Item]) -> Iterator[ItemLine]:
    for number, (text, item) in enumerate(zip(stored, items, strict=True), start=1):
        role, kind = item.get("role"), item.get("type")
        name, identity = item.get("name"), history.call_id(item) or item.get("id")
        yield ItemLine(
            namespace=namespace,
            number=number,
            kind=str(role or kind or "no item"),
            name=name if isinstance(name, str) else "",
            id=identity if isinstance(identity, str) else "",
            size=len(text),
            text=_text(item) if item else text,
        )


def _text(item: Item) -> str:
    """Return what an item says: words, arguments or results."""
    for key in ("content", "arguments", "output", "summary"):
        value = item.get(key)
        if isinstance(value, str):
            return value
        if isinstance(value, list):
            return "".join(_words(part) for part in value)
    return ""


def _words(part: Any) -> str:
    text = part.get("text") if isinstance(part, dict) else None
    return text if isinstance(text, str) else json.dumps(part, ensure_ascii=False)


def _other(namespace: str, number: int, text: str) -> ItemLine:
    """Return the line of what is no item of a model: who was handed the conversation, say."""
    handoff = namespace == HANDOFFS
    return ItemLine(
        namespace=namespace,
        number=number,
        kind="handoff" if handoff else "note",
        name=text if handoff else "",
        size=len(text),
        text=text,
    )
