"""What the items of a session's records say of its Claude session. Pure.

A list holds, in order: what people said (``in``, written as their turn starts), the id of the
session (``id``), and the entries of its transcript as the program wrote them (``entry``, with
``sub`` those of a subagent). Where the program's own file is the transcript, marks stand for the
entries (``at``). A list that began anew because its transcript could not be used tells first what
was said before (``past``).
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias
from uuid import UUID, uuid4

import attrs

NAMESPACE: Final = "claude"
NEWEST: Final = 200
"""Items in which the newest entry and what is still to be told are looked for before a turn."""
LONGEST_PAST: Final = 40_000
"""Characters of an earlier conversation that a new one is told."""
_ANEW: Final = (
    "[This conversation had to begin anew. What was said in it before, without the work between; "
    "the lines of one message are indented:]"
)
_CUT_OFF: Final = "[Your last answer was cut off. People have seen this of it, indented:]"
_FAILED: Final = "API Error"
_SHORTENED: Final = "[Earlier messages are left out.]"

Item: TypeAlias = dict[str, Any]
Entry: TypeAlias = dict[str, Any]
"""One line of a transcript, in the shape of the program."""


@attrs.frozen
class Untold:
    """What the program was not given yet; ``event_id`` is ``None`` for the past of a new session."""

    event_id: int | None
    words: str = attrs.field(repr=False)


@attrs.frozen(kw_only=True)
class State:
    """What a list says. ``newest`` is the uuid of the newest entry, or mark, outside subagents.

    ``resumable`` says whether the program could resume from it: it needs one message at least.
    ``untold`` are the inputs that came behind the newest prompt: those of the turn that starts
    now, and those of turns that ended before the program was given them.
    """

    id: str | None = None
    newest: str | None = None
    resumable: bool = False
    untold: tuple[Untold, ...] = ()


def said(event_id: int, words: str) -> str:
    """Return the item of what a person said."""
    return encode({"in": event_id, "text": words})


def chosen(session_id: str) -> str:
    """Return the item that names the Claude session; written before its first run."""
    return encode({"id": session_id})


def cut_off(words: str, behind: str | None) -> str:
    """Return the item of what people saw of an answer, and the program does not know.

    It is a line that follows the line ``behind``, as if the program had written it. Where the
    program has a file of its own (``None``), it is told with the next prompt instead.
    """
    if behind is None:
        return encode({"past": f"{_CUT_OFF}\n{textwrap.indent(words, '  ')}"})
    entry = {
        "type": "assistant",
        "uuid": str(uuid4()),
        "parentUuid": behind,
        "isSidechain": False,
        "message": {"role": "assistant", "content": [{"type": "text", "text": words}]},
    }
    return entry_item(entry, None)


def entry_item(entry: Mapping[str, Any], sub: str | None) -> str:
    """Return the item of one line of a transcript.

    What the program says of a call that failed is left out: it names hosts, and services quote keys.
    """
    message = entry.get("message")
    if entry.get("isApiErrorMessage") and isinstance(message, dict):
        said = [{"type": "text", "text": _FAILED}]
        entry = {**entry, "message": {**message, "content": said}}
    return encode({"entry": entry} if sub is None else {"entry": entry, "sub": sub})


def mark(uuid: str, *, told: bool) -> str:
    """Return the item that stands for the line ``uuid`` of a local transcript.

    ``told`` says that the line is a prompt.
    """
    return encode({"at": uuid, "told": told})


def encode(item: Mapping[str, Any]) -> str:
    """Return an item as it is stored; lone surrogates stay what they are, as escapes."""
    text = json.dumps(item, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(item, separators=(",", ":"))
    return text


def decode(text: str) -> Item:
    """Return an item; one that cannot be read is empty."""
    try:
        item = json.loads(text)
    except ValueError:
        return {}
    return item if isinstance(item, dict) else {}


def read_state(stored: Iterable[str]) -> State:
    """Return what the items say; of the newest ones alone, what those say."""
    session_id: str | None = None
    newest: str | None = None
    resumable = False
    untold: list[Untold] = []
    for item in map(decode, stored):
        match item:
            case {"id": str(named)} if is_session_id(named):
                session_id = named
            case {"in": int(event_id), "text": str(words)}:
                untold.append(Untold(event_id, words))
            case {"past": str(words)}:
                untold.append(Untold(None, words))
            case {"at": str(uuid), "told": bool(told)}:
                newest, resumable = uuid, True
                untold = [] if told else untold
            case {"entry": dict(entry)} if "sub" not in item:
                newest = uuid_of(entry) or newest
                resumable = resumable or is_message(entry)
                untold = [] if is_prompt(entry) else untold
    return State(id=session_id, newest=newest, resumable=resumable, untold=tuple(untold))


def entries(stored: Iterable[str]) -> dict[str | None, list[Entry]]:
    """Return the lines of each transcript in order, by subagent (``None``: the session's own).

    What is stored twice under one uuid comes once.
    """
    found: dict[str | None, list[Entry]] = {}
    seen: set[tuple[str | None, str]] = set()
    for item in map(decode, stored):
        entry, sub, known = item.get("entry"), item.get("sub"), identity(item)
        if known in seen or not isinstance(entry, dict) or not isinstance(sub, str | None):
            continue
        if known is not None:
            seen.add(known)
        found.setdefault(sub, []).append(entry)
    return found


def begun_anew(stored: Sequence[str], session_id: str) -> list[str]:
    """Return the items of a generation that goes on from a transcript that cannot be used.

    The new session is told in plain text what people and the agent said, the newest
    `LONGEST_PAST` characters of it; what was not told yet stays to be told as it is.
    """
    state = read_state(stored)
    waiting = [each for each in state.untold if each.event_id is not None]
    told = {each.event_id for each in waiting}
    past = _shortened(list(_spoken(stored, told)))
    return [
        chosen(session_id),
        *([encode({"past": "\n".join([_ANEW, *past])})] if past else []),
        *(said(each.event_id, each.words) for each in waiting if each.event_id is not None),
    ]


def is_session_id(text: str) -> bool:
    """Whether it is a UUID in the one form that the program resumes by; anything else is a title."""
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False


def uuid_of(entry: Mapping[str, Any]) -> str | None:
    """Return an entry's identity; some kinds have none."""
    uuid = entry.get("uuid")
    return uuid if isinstance(uuid, str) else None


def identity(item: Mapping[str, Any]) -> tuple[str | None, str] | None:
    """Return (subagent, uuid) of the line that an item holds or stands for, if it has a uuid."""
    sub, entry = item.get("sub"), item.get("entry")
    uuid = uuid_of(entry) if isinstance(entry, dict) else item.get("at")
    return (sub, uuid) if isinstance(uuid, str) and isinstance(sub, str | None) else None


def is_message(entry: Mapping[str, Any]) -> bool:
    """Whether it is of the conversation itself, and no note of the program's."""
    return entry.get("type") in ("user", "assistant") and uuid_of(entry) is not None


def is_prompt(entry: Mapping[str, Any]) -> bool:
    """Whether it is what we sent: a prompt of its own, or one taken into a running turn."""
    if entry.get("type") == "user":
        return "promptSource" in entry
    queued = entry.get("attachment")
    return (
        isinstance(queued, dict)
        and queued.get("type") == "queued_command"
        and queued.get("commandMode") == "prompt"
    )


def blocks(entry: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the content of a message; plain text is one block."""
    message = entry.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    parts = content if isinstance(content, list) else ()
    return [each for each in parts if isinstance(each, dict)]


def calls(entries: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """Return the ids of the calls of tools in these lines."""
    found = (block for entry in entries for block in blocks(entry))
    return frozenset(str(block.get("id")) for block in found if block.get("type") == "tool_use")


def _spoken(stored: Iterable[str], untold: set[int | None]) -> Iterator[str]:
    for item in map(decode, stored):
        match item:
            case {"past": str(words)}:
                yield words.removeprefix(f"{_ANEW}\n")
            case {"in": int(event_id), "text": str(words)} if event_id not in untold:
                yield _line("Message", words)
            case {"entry": {"type": "assistant"} as entry} if "sub" not in item:
                words = _answer(entry)
                if words:
                    yield _line("You", words)


def _line(who: str, words: str) -> str:
    """Return a message that cannot be taken for two: only its first line is not indented."""
    return f"{who}: " + textwrap.indent(words, "  ").lstrip()


def _answer(entry: Entry) -> str:
    """Return the text of an answer; what the program says in the model's name is none."""
    message = entry.get("message")
    synthetic = isinstance(message, dict) and message.get("model") == "<synthetic>"
    if synthetic or entry.get("isApiErrorMessage"):
        return ""
    texts = [block.get("text") for block in blocks(entry) if block.get("type") == "text"]
    return "\n".join(text for text in texts if isinstance(text, str)).strip()


def _shortened(lines: list[str]) -> list[str]:
    """Return the newest lines that fit; of a single one that does not, its end."""
    left, kept = LONGEST_PAST, len(lines)
    while kept and len(lines[kept - 1]) < left:
        kept -= 1
        left -= len(lines[kept]) + 1
    if not kept:
        return lines
    newest = lines[kept:] or [f"  {lines[-1][-LONGEST_PAST:]}"]
    return [_SHORTENED, *newest]
