"""A deployment of the Claude runtime: the real program, whose tools act, and one asks first.

What the model was told, what is stored, what the tools did and what processes are left is looked at.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import attrs
from aiohttp import web

from crash.agency import ERRANDS, PRESS, PatientPeer, done_wrongly
from crash.backstage import DELETED, LOOK, WRITTEN
from crash.conductor import Conductor
from crash.deployments import Deployment, Set, wire_table
from crash.judge import Judgement
from crash.model import METHOD
from crash.scene import Said
from dragoman.testing.runtime_script import Say, Step
from dragoman_claude import mending
from peers.claude_deployment import unpaired, working_in
from peers.claude_server import Call, ClaudeServer
from peers.loopback import Gone
from peers.scripted_model import Page, Pause

TOOLS: Final = '''
"""Tools that write down each time that they are used."""

from pathlib import Path


def did(what: str) -> str:
    with Path("done").open("a") as file:
        file.write(f"{what}\\n")
    return "done"


async def delete(path: str) -> str:
    """Delete what is below a path."""
    return did("delete")


async def note(text: str) -> str:
    """Write something down."""
    return did("write")
'''

HELPER: Final = """
[runtimes.helper]
plugin = "claude"
instructions = "Help."
model = "claude-sonnet-5"
functions = ["my_tools:delete", "my_tools:note"]
ask = ["mcp__gateway__delete"]
base_url = "{url}"
environment = {{ CLAUDE_CODE_MAX_RETRIES = "0" }}

[profiles.default]
runtime = "helper"
recovery = "retry"
"""

SAID: Final = tuple(one for one in ERRANDS if one.text != "cyd")
SITES: Final = (
    "call.model",
    "commit.Shown",
    "commit.AppendRecords",
    "commit.BeginTool",
    "commit.EndTool",
    "commit.Pause",
    "commit.Decide",
)
"""Where a run acts, and where the first of its words are seen."""
AT_ONCE: Final = 1.0
"""Seconds after which nothing lives that a killed gateway has started."""


def _told(text: str) -> list[Step]:
    """Return a text that takes its time."""
    return [step for word in text.split() for step in (Say((f"{word} ",)), Pause(0.025))]


def _script() -> Mapping[str, Sequence[Step]]:
    return {
        "delete": [Say((LOOK,)), Call("delete", arguments={"path": "tmp"}), *_told(DELETED)],
        "write": [Say((LOOK,)), Call("note", arguments={"text": "milk"}), *_told(WRITTEN)],
        "bis": [Say(("Quickly.",))],
    }


@attrs.define(eq=False)
class ClaudeModel(ClaudeServer):
    """The model's server, which reports each call to the conductor."""

    conductor: Conductor = attrs.field(kw_only=True)

    async def answer(
        self, request: web.Request, page: Page, body: dict[str, Any], steps: Sequence[Step]
    ) -> web.StreamResponse:
        """Answer a call of the program, unless it is killed for it."""
        number = self.conductor.call(METHOD)
        for stage in ("arrived", "applied"):
            if not self.conductor.at_call(METHOD, number, stage):
                raise Gone
        response = await super().answer(request, page, body, steps)
        self.conductor.at_call(METHOD, number, "answered")
        return response


def look_dead(folder: Path) -> Iterator[str]:
    """Say what lives after a kill for longer than it may."""
    deadline = time.monotonic() + AT_ONCE
    while left := working_in(folder):
        if time.monotonic() > deadline:
            yield f"still there: {sorted(left.values())}"
            return
        time.sleep(0.02)


def look_behind(
    model: ClaudeModel, peer: PatientPeer, said: Sequence[Said], folder: Path, judgement: Judgement
) -> Iterator[str]:
    """Say what is wrong with what models were told, with what is stored, and with what was done."""
    people = {
        chat: [one.text for one in said if one.chat == chat and one.text not in ("", PRESS)]
        for chat in {one.chat for one in said}
    }
    for body, lines in zip(model.page.bodies, model.page.asked, strict=True):
        known = [line.text for line in lines if line.role == "user"]
        if not any(known and known == texts[: len(known)] for texts in people.values()):
            yield f"a model was told {known}"
        if wrong := unpaired(body):
            yield f"a model was told halves of calls: {wrong}"
    yield from _stored_wrongly(folder / "dragoman.db", people)
    yield from done_wrongly(folder / "done", peer, said, judgement)
    yield from look_dead(folder)


def _stored_wrongly(file: Path, people: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Look at each session's newest list: it has all that was said, once, and a whole transcript."""
    with closing(sqlite3.connect(file)) as db:
        rows = db.execute(
            "SELECT session_id, generation, item FROM records WHERE namespace = 'claude' "
            "AND item IS NOT NULL ORDER BY session_id, generation, number"
        ).fetchall()
    lists: dict[str, dict[int, list[str]]] = {}
    for session, generation, item in rows:
        lists.setdefault(session, {}).setdefault(generation, []).append(item)
    newest = [one[max(one)] for one in lists.values()]
    known = sorted(
        [item["text"] for item in map(json.loads, one) if "text" in item] for one in newest
    )
    if known != sorted(map(list, people.values())):
        yield f"stored is {known}"
    for one in newest:
        if sum("id" in json.loads(item) for item in one) != 1:
            yield "a session has not one id"
        if wrong := mending.examine(one).wrong:
            yield f"a transcript is not whole: {wrong}"


@contextmanager
def _opened(conductor: Conductor) -> Iterator[Set]:
    with (
        PatientPeer(conductor, SAID) as peer,
        ClaudeModel(conductor=conductor) as model,
    ):
        for text, steps in _script().items():
            model.page.book.add(text, steps)
        tables = wire_table(peer, certain=True, buttons=3) + HELPER.format(url=model.base_url)

        def behind(folder: Path, judgement: Judgement) -> Sequence[str]:
            return list(look_behind(model, peer, SAID, folder, judgement))

        yield Set(
            peer,
            tables,
            files={"my_tools.py": TOOLS},
            look_behind=behind,
            look_dead=lambda folder: list(look_dead(folder)),
        )


CLAUDE: Final = Deployment(
    name="claude",
    certain=True,
    said=SAID,
    open=_opened,
    recovery="retry",
    sampled="passages",
    sites=SITES,
    timed=("commit.AppendRecords", "commit.Shown"),
    limit=120.0,
    effects=2,
)
"""With the harder rule: a turn that is run again may do things twice."""
