"""A gateway on one platform whose agent asks a person before it acts, and the model that it has."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, Final

import attrs

from dragoman.testing.runtime_script import Act, Say
from peers.claude_server import ClaudeServer
from peers.gateway import Gateway
from peers.model_server import ModelServer
from peers.scripted_model import ScriptedModel
from peers.wires import ADA, Card, Wire

PATIENCE: Final = 60.0
"""Seconds for what takes one at most where nothing else is at work."""

TOOLS: Final = '''
"""A tool that writes down each time that it is used."""

from pathlib import Path

DONE = Path(__file__).with_name("done")


async def act(what: str) -> str:
    """Do something outside."""
    with DONE.open("a") as file:
        file.write(f"{what}\\n")
    return f"{what} is done."
'''

AGENT: Final = '''
"""An agent that has the tool, and asks first."""

from agents import Agent, function_tool

from tools import act

tool = function_tool(act, needs_approval=True)
assistant = Agent(name="assistant", instructions="Help.", tools=[tool])
'''

RUNTIMES: Final = {
    "openai": """
[runtimes.assistant]
plugin = "openai"
agent = "my_agent:assistant"
api_key = {{ env = "MODEL_KEY" }}
base_url = "{url}"
""",
    "claude": """
[runtimes.assistant]
plugin = "claude"
instructions = "Help."
model = "claude-sonnet-5"
functions = ["tools:act"]
read_only_tools = []
ask = ["mcp__gateway__act"]
api_key = {{ env = "MODEL_KEY" }}
base_url = "{url}"
environment = {{ CLAUDE_CODE_MAX_RETRIES = "0" }}
""",
}

MANIFEST: Final = """
manifest = 1

{tables}
{runtime}
[limits]
person_rate = 0
conversation_rate = 0

[profiles.default]
runtime = "assistant"

[profiles.hasty]
runtime = "assistant"
approval_timeout = 1
{more}
"""

SERVERS: Final[dict[str, Callable[[], ModelServer | ClaudeServer]]] = {
    "openai": ModelServer,
    "claude": ClaudeServer,
}


def manifest(runtime: str, url: str, tables: str = "", more: str = "") -> str:
    """Return a manifest whose agent's model is at ``url``; ``tables`` is that of a platform."""
    described = RUNTIMES[runtime].format(url=url)
    return MANIFEST.format(tables=tables, runtime=described, more=more)


def write_agent(folder: Path) -> None:
    """Put the agent where a manifest is."""
    folder.mkdir(exist_ok=True)
    (folder / "tools.py").write_text(TOOLS)
    (folder / "my_agent.py").write_text(AGENT)


def until(condition: Callable[[], object], limit: float = PATIENCE) -> None:
    """Wait for what nobody tells of."""
    deadline = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def plan(model: ScriptedModel, name: str, *acts: str) -> None:
    """Let what is said by ``do <name>.`` need these acts, each by a call of its own, all at once."""
    model.page.book.add(f"do {name}.", [*map(Act, acts), Say((f"That was {name}.",))])


def results(model: ScriptedModel, name: str) -> list[str]:
    """Return what the model was told last of what came of the acts that a person wanted."""
    for lines in reversed(model.page.asked):
        told = [(one.role, one.text) for one in lines]
        asked = [n for n, (role, text) in enumerate(told) if role == "user" and name in text]
        if asked:
            return [text for role, text in told[asked[0] :] if role == "tool"]
    return []


def acted(folder: Path, what: str) -> int:
    """Return how often the agent did something."""
    file = folder / "done"
    return file.read_text().splitlines().count(what) if file.exists() else 0


@attrs.define(eq=False)
class Desk:
    """What people have of it. Each test takes rooms of its own."""

    wire: Wire
    model: ScriptedModel
    gateway: Gateway
    runtime: str
    """Its plugin."""
    hasty: str
    """The room where questions are open for a second."""
    free: Iterator[str]

    def ask(self, room: str, name: str, *acts: str) -> list[Card]:
        """Let Ada want something done by these acts; return the cards that come, in order."""
        before = len(self.cards(room))
        self.want(room, name, *acts)
        until(lambda: len(self.cards(room)) == before + len(acts))
        return self.cards(room)[before:]

    def want(self, room: str, name: str, *acts: str) -> None:
        """The same without waiting."""
        plan(self.model, name, *acts)
        self.wire.say(room, f"do {name}.")

    def cards(self, room: str) -> list[Card]:
        """Return all messages that ask, or have asked."""
        return [one for one in self.wire.shown(room) if "May I run" in one.text]

    def press(self, room: str, card: Card, label: str, who: int = ADA) -> None:
        """Press a button that a card has, or had."""
        self.wire.press(who, room, card.id, card.buttons[label])

    def until_said(self, room: str, text: str) -> None:
        """Wait until the bot has said something."""
        until(lambda: any(text in one.text for one in self.wire.shown(room)))

    def until_more(self, room: str, messages: int) -> None:
        """Wait until the bot has more messages in a room than these, and all are there."""
        until(lambda: len(self.wire.shown(room)) > messages)
        self.until_sent()

    def until_ended(self, room: str, *outcomes: str) -> None:
        """Wait until the cards of a room say these outcomes, and none has buttons."""

        def ended() -> bool:
            last = [plain(one.text).splitlines()[-1] for one in self.cards(room)]
            return last == list(outcomes) and not any(one.buttons for one in self.cards(room))

        until(ended)

    def until_decided(self, card: Card) -> None:
        """Wait until the store has a decision."""
        name = name_of(card)
        until(
            lambda: self.rows(f"SELECT 1 FROM approvals WHERE id = '{name}' AND verdict <> 'open'")
        )

    def restart(self) -> None:
        """Kill the gateway, and start it again."""
        self.gateway.kill()
        until(lambda: not self.wire.connected())
        self.gateway.start()
        until(self.wire.connected)

    def until_told(self, text: str, who: int = ADA) -> None:
        """Wait until a person was told something that nobody else saw."""
        until(lambda: text in map(plain, self.wire.told(who)))

    def acted(self, what: str) -> int:
        """Return how often the agent did something."""
        return acted(self.gateway.folder, what)

    def results(self, name: str) -> list[str]:
        """Return what the model was told last of what came of the acts."""
        return results(self.model, name)

    def until_sent(self) -> None:
        """Wait until the gateway knows that all it has sent is shown."""
        open_ = "SELECT 1 FROM deliveries WHERE state IN ('pending', 'sending', 'uncertain')"
        until(lambda: not self.rows(open_))

    def rows(self, sql: str) -> list[Any]:
        """Ask the gateway's store."""
        with closing(sqlite3.connect(self.gateway.folder / ".dragoman" / "dragoman.db")) as db:
            return db.execute(sql).fetchall()


def name_of(card: Card) -> str:
    """Return what `/approve` calls a question that is open."""
    return plain(card.text).partition("/approve ")[2][:8]


def plain(text: str) -> str:
    """Return a text as people read it."""
    return text.replace("`", "").strip()


@contextmanager
def desk(folder: Path, wire: Wire, runtime: str, tables: str = "") -> Iterator[Desk]:
    """Run it, with further tables. Ben is an owner, who may decide about what Ada wants."""
    write_agent(folder)
    hasty, *free = wire.rooms
    ada, ben = wire.users
    access = f"[access]\nusers = {json.dumps([ada])}\nowners = {json.dumps([ben])}\n"
    route = f'\n[[routes]]\nchannel = "{hasty}"\nprofile = "hasty"\n'
    with ExitStack() as stack:
        stack.enter_context(wire.fake)
        model = stack.enter_context(SERVERS[runtime]())
        text = manifest(runtime, model.base_url, wire.tables, access + route + tables)
        environment: Mapping[str, str] = wire.environment | {"MODEL_KEY": f"sk-ant-{0:032}"}
        gateway = stack.enter_context(Gateway(folder, text, environment))
        until(wire.connected)
        yield Desk(wire, model, gateway, runtime, hasty, iter(free))
        assert gateway.stop() == 0
