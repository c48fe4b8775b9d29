"""Gateways of the end-to-end tests whose agents run in the real program of the Claude Agent SDK."""

from __future__ import annotations

import json
import re
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import attrs

from peers.botapi import BotApi
from peers.claude_process import ClaudePeer
from peers.gateway import Gateway

FIRST: Final = 700000001
"""The Telegram id of the first person of a deployment; those that follow are counted."""

PATIENCE: Final = 100.0
"""Seconds for what happens within one where nothing else is at work."""

TOOLS: Final = '''
"""Tools that write down each time that they are used, and work for as long as a file is there."""

import asyncio
from pathlib import Path

HERE = Path(__file__).parent


async def did(what: str) -> None:
    with (HERE / "done").open("a") as file:
        file.write(f"{what}\\n")
    while (HERE / "hold").exists():
        await asyncio.sleep(0.01)


async def measure(place: str) -> str:
    """Measure the temperature somewhere."""
    await did(f"measure-{place}")
    return f"It is 21 degrees in {place}."


async def delete_files(path: str) -> str:
    """Delete what is below a path."""
    await did(f"delete-{path}")
    return f"{path} is gone."
'''

MANIFEST: Final = """
manifest = 1

[platforms.telegram]
token = {{ env = "TELEGRAM_TOKEN" }}
api_url = "{api_url}"
poll_timeout = 5

[access]
users = {users}
"""

CLAUDE: Final = """
[runtimes.{name}]
plugin = "claude"
instructions = "Help."
model = "claude-sonnet-5"
functions = ["tools:measure", "tools:delete_files"]
read_only_tools = []
tools = ["Bash"]
allow = ["Bash"]
ask = ["mcp__gateway__delete_files"]
api_key = {{ env = "MODEL_KEY" }}
base_url = "{model_url}"
environment = {{ CLAUDE_CODE_MAX_RETRIES = "0" }}
"""

PROFILES: Final = """
[profiles.default]
runtime = "{name}"

[profiles.again]
runtime = "{name}"
recovery = "retry"

[profiles.hasty]
runtime = "{name}"
approval_timeout = 1
"""

ROUTE: Final = """
[[routes]]
user = "{user}"
profile = "{profile}"
"""


def until(condition: Callable[[], object], limit: float = PATIENCE) -> None:
    """Wait for what nobody tells of."""
    deadline = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def working_in(folder: Path) -> dict[int, str]:
    """Return the processes that work in a folder, or name it, by id; found without our own code."""
    found, name = {}, str(folder).encode()
    for path in Path("/proc").iterdir():
        try:
            stat = (path / "stat").read_bytes() if path.name.isdigit() else b""
            if not stat or stat.rpartition(b")")[2].split()[0] in {b"Z", b"X"}:
                continue
            about = [(path / one).read_bytes() for one in ("cmdline", "environ")]
            if name in b"".join([*about, bytes((path / "cwd").readlink())]):
                found[int(path.name)] = (path / "comm").read_text().strip()
        except OSError:
            continue
    return found


def unpaired(body: Mapping[str, Any]) -> list[str]:
    """Return what the service refuses: calls without a result right behind them, and the reverse."""
    wrong: list[str] = []
    open_: set[str] = set()
    for message in [one for one in body["messages"] if one["role"] != "system"]:
        blocks = [one for one in message["content"] if isinstance(one, dict)]
        results = [one["tool_use_id"] for one in blocks if one["type"] == "tool_result"]
        if set(results) != open_ or len(results) != len(open_):
            wrong.append(f"{sorted(open_)} answered by {results}")
        open_ = {one["id"] for one in blocks if one["type"] == "tool_use"}
    return wrong + sorted(open_)


@attrs.define(eq=False)
class Chats:
    """Private chats with one gateway, each with a person of its own."""

    api: BotApi
    model: ClaudePeer
    gateway: Gateway
    people: Sequence[str]
    said: int = 0

    def id(self, who: str) -> int:
        """Return a person's id, which is that of the chat as well."""
        return FIRST + self.people.index(who)

    def say(self, who: str, text: str) -> None:
        """Let a person say something."""
        self.said += 1
        self.api.say(self.id(who), text, message_id=self.said)

    def shown(self, who: str) -> list[str]:
        """Return what the bot's messages to a person show now."""
        return list(self.api.messages(self.id(who)).values())

    def until(self, who: str, text: str, limit: float = PATIENCE) -> None:
        """Wait until a message of the bot contains a text."""
        self.api.wait_for(lambda: any(text in one for one in self.shown(who)), limit)

    def question(self, who: str, count: int = 1) -> str:
        """Wait for the so-manieth question to a person, and return its name."""
        self.api.wait_for(lambda: len(self.questions(who)) >= count, PATIENCE)
        return self.questions(who)[count - 1]

    def questions(self, who: str) -> list[str]:
        """Return the names of all questions to a person, also of those that show an answer now."""
        sent = (one["params"] for one in self.api.calls("sendMessage") if one["answer"])
        mine = (str(one["text"]) for one in sent if one["chat_id"] == self.id(who))
        found = (re.search("/approve ([0-9a-f]{8})", text) for text in mine)
        return [one[1] for one in found if one is not None]

    def done(self, what: str) -> int:
        """Return how often a tool did something."""
        file = self.gateway.folder / "done"
        return file.read_text().split().count(what) if file.exists() else 0

    def bodies(self, who: str) -> list[dict[str, Any]]:
        """Return the model calls in which a person's name was said by people."""
        pairs = zip(self.model.journal(), self.model.heard(), strict=True)
        return [
            body
            for body, lines in pairs
            if any(role == "user" and who in text for role, text in lines)
        ]

    def heard(self, who: str) -> list[list[tuple[str, str]]]:
        """Return what those calls said, by role."""
        return [
            lines
            for lines in self.model.heard()
            if any(role == "user" and who in text for role, text in lines)
        ]

    def rows(self, sql: str) -> list[Any]:
        """Ask the gateway's store."""
        with closing(sqlite3.connect(self.gateway.folder / ".dragoman" / "dragoman.db")) as db:
            return db.execute(sql).fetchall()

    def until_sent(self) -> None:
        """Wait until the gateway knows that all it has sent is shown."""
        open_ = "SELECT 1 FROM deliveries WHERE state IN ('pending', 'sending', 'uncertain')"
        until(lambda: not self.rows(open_))


def deployed(
    folder: Path,
    api: BotApi,
    model: ClaudePeer,
    people: Sequence[str],
    profiles: Mapping[str, str],
    tables: str = "",
) -> Chats:
    """Return the chats of a deployment that is not started yet.

    ``profiles`` are those of people, ``tables`` what its manifest has besides.
    """
    folder.mkdir(exist_ok=True)
    (folder / "tools.py").write_text(TOOLS)
    users = [f"telegram:{FIRST + number}" for number in range(len(people))]
    manifest = MANIFEST.format(api_url=api.url, users=json.dumps(users))
    manifest += CLAUDE.format(name="helper", model_url=model.base_url)
    manifest += PROFILES.format(name="helper") + tables
    for who, profile in profiles.items():
        manifest += ROUTE.format(user=FIRST + people.index(who), profile=profile)
    secrets = {"TELEGRAM_TOKEN": api.token, "MODEL_KEY": "sk-ant-dummy"}
    return Chats(api, model, Gateway(folder, manifest, secrets), people)
