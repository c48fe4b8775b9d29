"""An agent whose every word is somebody's, and the model that lets it use its tools."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final

from agents import Agent, RunContextWrapper, function_tool
from aiohttp import web

from dragoman.runtimes import TurnContext
from dragoman.testing.runtime_script import Say
from peers.model_server import ModelServer, Use

TOKEN: Final = re.compile(r"tok[0-9a-f]{16}")
"""What belongs to one session."""
PERSONA: Final = re.compile(r"pers[0-9a-f]{16}")
"""What belongs to one profile."""

PERSONAS: dict[str, str] = {}
"""By profile."""
USED: list[tuple[str, str]] = []
"""Every call of `look_up`: the session that its context names, and what the model asked for."""
FILES: dict[str, str] = {}
"""The reference of somebody's file, by what is theirs."""
KEPT: dict[str, str] = {}
"""What `look_up` knows, by session: what was last asked for there."""


@function_tool
async def look_up(run: RunContextWrapper[TurnContext], what: str) -> str:
    """Look something up."""
    session = run.context.session_id
    USED.append((session, what))
    before, KEPT[session] = KEPT.get(session, what), what
    return f"found {before} and {what}"


@function_tool
async def explode(what: str) -> str:
    """Fail."""
    raise ValueError(f"there is no {what}")


def assistant(profile: str) -> Agent[TurnContext]:
    """Return the agent of a profile."""
    return Agent("assistant", instructions=PERSONAS[profile], tools=[look_up, explode])


class Puppeteer(ModelServer):
    """Uses the tool that a message begins with, and says what came of it."""

    async def ask(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.page.bodies.append(body)
        return await self.answer(request, self.page, body, steps(body["input"]))  # type: ignore[arg-type]


def steps(items: Sequence[Any]) -> Sequence[Say | Use]:
    """Return what comes behind a history."""
    last = items[-1]
    if last.get("type") == "function_call_output":
        return [Say(("it says: ", str(last["output"])))]
    words = last["content"]
    text = words if isinstance(words, str) else "".join(part["text"] for part in words)
    verb, token = text.split()[:2]
    match verb:
        case "look":
            return [Say(("One moment. ",)), Use("look_up", {"what": token})]
        case "fail":
            return [Use("explode", {"what": token})]
        case "note":
            return [Use("remember", {"text": f"the note is {token}"})]
        case "recall":
            return [Use("recall", {"query": "the note"})]
        case "read":
            [reference] = re.findall(r"^\[document ([0-9.]+)", text, re.MULTILINE)
            FILES[token] = reference
            return [Use("read_file", {"reference": reference})]
        case "pry":
            others = [each for other, each in FILES.items() if other != token]
            return [Use("read_file", {"reference": others[-1] if others else "1.1"})]
    return [Say(("heard ", token))]


def tokens_in(value: object) -> set[str]:
    """Return the tokens of sessions that anything at all contains."""
    return set(TOKEN.findall(value if isinstance(value, str) else json.dumps(value, default=str)))
