"""Deployments of the OpenAI runtime whose tools act: one asks first, one does not; and one whose
history is compacted. What the model was told, what is stored and what the tools did is looked at."""

from __future__ import annotations

import json
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any, Final

from crash.backstage import DELETED, LOOK, WRITTEN, Backstage
from crash.conductor import Conductor
from crash.deployments import ASSISTANT, Deployment, Set, wire_table
from crash.judge import Judgement, plain
from crash.model import ModelRelay, told
from crash.scene import Said, Seen
from crash.wire import WirePeer

PRESS: Final = "Approve"
"""The button that is pressed below a question."""
NAME: Final = re.compile(r"\b[0-9a-f]{8}\b")
ENDED: Final = re.compile(r"interrupted by a restart|a restart interrupted")

AGENT: Final = '''
"""An agent whose tools write down each time that they are used."""

from pathlib import Path

from agents import Agent, function_tool


def did(what: str) -> str:
    with Path("done").open("a") as file:
        file.write(f"{what}\\n")
    return "done"


@function_tool(needs_approval=True, timeout=10)
async def delete(path: str) -> str:
    """Delete what is below a path."""
    return did("delete")


@function_tool(timeout=10)
async def note(text: str) -> str:
    """Write something down."""
    return did("write")


assistant = Agent(name="assistant", instructions="Help.", tools=[delete, note])
'''

CARD: Final = 'May I run `delete`?\n```json\n{\n  "path": "tmp"\n}\n```\n'
QUESTION: Final = f"{CARD}Answer with `/approve NAME` or `/deny NAME`, within 24 hours."

ERRANDS: Final = (
    Said("1", "delete it", LOOK),
    Said("1", PRESS, f"{CARD}`delete`: approved."),
    Said("1", "", DELETED),
    Said("1", "bis", "Quickly."),
    Said("2", "write it down", f"{LOOK}\n\n{WRITTEN}"),
    Said("2", "cyd", "Hello from the model."),
)
DONE: Final = {"delete": DELETED, "write": f"{LOOK}\n\n{WRITTEN}"}
"""By what a tool does, the answer that says so."""

TALK: Final = (
    Said("1", "bis", "Quickly."),
    Said("1", "cyd", "Hello from the model."),
    Said("1", "dee", "As before."),
)

COMPACT: Final = """
[runtimes.assistant.session]
compact = { above = 1 }
"""


_ACTS: Final = ("call.model", "commit.AppendRecords", "commit.BeginTool", "commit.EndTool")
"""Where a run acts. What its messages go through before and behind it, others are killed in."""

_DECIDES: Final = ("commit.Pause", "commit.Decide", "commit.ClearCard")


class PatientPeer(WirePeer):
    """People who say a thing when what they said before has come to its end."""

    def __init__(self, conductor: Conductor, said: Sequence[Said]) -> None:
        super().__init__(conductor, certain=True)
        self._all = said
        self._owed: list[Said] = []

    def visible(self) -> list[Seen]:
        """Return what all chats show, with one name for all questions."""
        return [
            Seen(one.chat, one.native_id, NAME.sub("NAME", one.text)) for one in super().visible()
        ]

    def say(self, said: Said) -> None:
        """Keep in mind what is to be said."""
        self._owed.append(said)

    def waiting(self) -> int:
        """Let people say what they now can; return how much is not confirmed, or not said yet, and
        how many questions are shown as if they were open."""
        ready = [said for said in self._owed if self._may(said)]
        self._owed = [said for said in self._owed if said not in ready]
        for said in ready:
            if said.text == PRESS:
                ((native_id, buttons),) = self.buttons().items()
                self.press(said, native_id, buttons[PRESS])
            else:
                super().say(said)
        return super().waiting() + len(self._owed) + len(self.buttons())

    def _may(self, said: Said) -> bool:
        if said.text == PRESS:
            return bool(self.buttons())
        shown = [plain(one.text) for one in self.visible() if one.chat == said.chat]
        if any(map(ENDED.search, shown)):
            return True
        before = self._all[: self._all.index(said)]
        return all(one.answer in shown for one in before if one.chat == said.chat)


def look_behind(
    relay: ModelRelay, peer: WirePeer, said: Sequence[Said], folder: Path, judgement: Judgement
) -> Iterator[str]:
    """Say what is wrong with what models were told, with what is stored, and with what was done."""
    people = {
        chat: [one.text for one in said if one.chat == chat and one.text not in ("", PRESS)]
        for chat in {one.chat for one in said}
    }
    for asked in relay.asked:
        known = told(asked["input"])
        if not any(known and known == texts[: len(known)] for texts in people.values()):
            yield f"a model was told {known}"
        if unpaired := _unpaired(asked["input"]):
            yield f"a model was told halves of calls: {unpaired}"
    yield from _stored_wrongly(folder / "dragoman.db", people)
    yield from done_wrongly(folder / "done", peer, said, judgement)


def _unpaired(items: Sequence[Mapping[str, Any]]) -> list[str]:
    calls = Counter(one["call_id"] for one in items if one.get("type") == "function_call")
    ends = Counter(one["call_id"] for one in items if one.get("type") == "function_call_output")
    twice = [one for one, count in (calls + ends).items() if count > 2]
    return [*((calls - ends) + (ends - calls)).elements(), *twice]


def _stored_wrongly(file: Path, people: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Look at each generation of each history: its last one has all that was said, once."""
    with closing(sqlite3.connect(file)) as db:
        rows = db.execute(
            "SELECT session_id, generation, item FROM records WHERE namespace = 'openai' "
            "AND item IS NOT NULL ORDER BY session_id, generation, number"
        ).fetchall()
    histories: dict[str, dict[int, list[Any]]] = {}
    for session, generation, item in rows:
        histories.setdefault(session, {}).setdefault(generation, []).append(json.loads(item))
    last = sorted(told(one[max(one)]) for one in histories.values())
    if last != sorted(map(list, people.values())):
        yield f"stored is {last}"


def done_wrongly(
    file: Path, peer: WirePeer, said: Sequence[Said], judgement: Judgement
) -> Iterator[str]:
    """Say what was not done once; or less, where people are told of the interruption."""
    done = Counter(file.read_text().split() if file.exists() else ())
    shown = [one.text for one in peer.visible()]
    for what, answer in DONE.items():
        if all(one.answer != answer for one in said):
            continue
        if done[what] > 1 or (not done[what] and (answer in shown or not judgement.interrupted)):
            yield f"{what} was done {done[what]} times"


def _opened(
    said: Sequence[Said], backstage: Backstage, recovery: str, more: str = ""
) -> Callable[[Conductor], AbstractContextManager[Set]]:
    @contextmanager
    def opened(conductor: Conductor) -> Iterator[Set]:
        with (
            PatientPeer(conductor, said) as peer,
            ModelRelay(conductor, backstage.model()) as relay,
        ):
            tables = wire_table(peer, certain=True, buttons=3)
            tables += ASSISTANT.format(recovery=recovery, url=relay.url) + more

            def behind(folder: Path, judgement: Judgement) -> Sequence[str]:
                return list(look_behind(relay, peer, said, folder, judgement))

            yield Set(peer, tables, {"MODEL_KEY": "sk-dummy"}, {"my_agent.py": AGENT}, behind)

    return opened


def agencies(backstage: Backstage) -> Sequence[Deployment]:
    """Return them, each with the harder rule: a turn that is run again may do things twice; one
    that is only told of leaves its history as it was at the kill.
    """
    return [
        Deployment(
            name="approval",
            certain=True,
            said=ERRANDS,
            open=_opened(ERRANDS, backstage, "retry"),
            recovery="retry",
            sampled="passages",
            sites=(*_ACTS, *_DECIDES, "commit.Finish", "call.send", "call.edit"),
            effects=len(DONE),
        ),
        Deployment(
            name="compaction",
            certain=True,
            said=TALK,
            open=_opened(TALK, backstage, "notify", COMPACT),
            sampled="passages",
            sites=("call.compact", "commit.AppendRecords"),
        ),
    ]
