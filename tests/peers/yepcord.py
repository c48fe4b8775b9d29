"""A Discord-compatible server that nobody of this project wrote, behind a shim.

YEPCord runs as a process in an environment of its own and is never imported. `Yepcord` starts it,
puts `peers.discord_shim` before it, and makes a guild with two people and a bot. What stays
different from Discord: no forum channels, modals, polls or Components V2; a file must be what its
media type says.
"""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import attrs

from peers.discord_people import Person
from peers.discord_shim import Call, Shim
from peers.process import PeerProcess, free_port

T = TypeVar("T")
HOME = Path(__file__).resolve().parents[2] / ".venv-yepcord"
STAND_IN = Path(__file__).resolve().parent / "discord_shim" / "stand_in"
CONFIG = """
DB_CONNECT_STRING = "sqlite://{folder}/yepcord.sqlite"
MIGRATIONS_DIR = "{folder}/migrations"
KEY = "{key}"
PUBLIC_HOST = "127.0.0.1:{port}"
GATEWAY_HOST = "127.0.0.1:{port}/gateway"
CDN_HOST = "127.0.0.1:{port}/media"
STORAGE = {{"type": "local", "local": {{"path": "{folder}/files"}}}}
MESSAGE_BROKER = {{"type": "ws", "ws": {{"url": "ws://127.0.0.1:{broker}"}}}}
BCRYPT_ROUNDS = 4
"""


def missing() -> str | None:
    """Return why the server cannot be started, or None if it can."""
    if (HOME / ".ready").exists():
        return None
    return "yepcord is not installed: `make peers` does so with Python 3.11 or 3.12"


@attrs.frozen
class Bot:
    """An application and its bot, which have one id."""

    id: str
    token: str = attrs.field(repr=False)


@attrs.define(eq=False)
class Yepcord:
    """The server for the length of a ``with`` block; ``folder`` keeps its files.

    All methods are synchronous and may be called from any thread.
    """

    folder: Path
    shim: Shim = attrs.field(init=False)
    anna: Person = attrs.field(init=False)
    """Owns the guild."""
    ben: Person = attrs.field(init=False)
    """Came by an invitation."""
    bot: Bot = attrs.field(init=False)
    guild_id: str = ""
    channel_id: str = ""
    """The guild's first text channel; `channel` makes more."""
    _process: PeerProcess = attrs.field(init=False)
    _stack: ExitStack = attrs.field(init=False)

    @property
    def api_url(self) -> str:
        """The base of the HTTP interface, version 10."""
        return self.shim.api_url

    @property
    def gateway_url(self) -> str:
        """The gateway's address."""
        return self.shim.gateway_url

    def channel(self, name: str = "room") -> str:
        """Make a text channel for one test alone; return its id."""
        body = {"name": name, "type": 0}
        made = self.anna.ask("POST", f"/guilds/{self.guild_id}/channels", body)
        self.shim.known.guilds[made["id"]] = self.guild_id
        return str(made["id"])

    def add_bot(self, name: str) -> Bot:
        """Make an application with a bot, and let it into the guild."""
        ask = self.anna.ask
        made = ask("POST", "/applications", {"name": name})["id"]
        token = ask("POST", f"/applications/{made}/bot/reset", {})["token"]
        allowed = {"authorize": True, "guild_id": self.guild_id, "permissions": "8"}
        ask("POST", f"/oauth2/authorize?client_id={made}&scope=bot", allowed)
        self.shim.interactions.bots[made] = f"Bot {token}"
        return Bot(made, token)

    def calls(self, method: str, end: str = "") -> list[Call]:
        """Return the bots' answered requests of a method whose path ends so."""
        return self.shim.journal.found(method, end)

    def wait_for(self, condition: Callable[[], T], limit: float = 10.0) -> T:
        """Wait until ``condition`` is true, looked at after each call and event; return its value."""
        return self.shim.journal.wait_for(condition, limit)

    def reset(self) -> None:
        """Leave nothing of one test to the next: no fault, no used-up limit, no session.

        What people see in channels stays, so a test talks in a channel of its own.
        """
        self.shim.reset()

    @property
    def port(self) -> int:
        """The port of YEPCord itself, behind the shim."""
        return self._process.port

    def log(self) -> str:
        """Return what the server has printed: worth showing when a test fails."""
        return self._process.log()

    def __enter__(self) -> Self:
        reason = missing()
        if reason is not None:
            raise RuntimeError(reason)
        environment = {"PYTHONPATH": str(STAND_IN)}
        with ExitStack() as stack:
            self._process = PeerProcess("yepcord", self.folder / "log", environment)
            self._process.start(self._command, "/api/v9/gateway")
            stack.callback(self._process.stop)
            self.shim = Shim(self._process.root, self.folder / "yepcord.sqlite")
            self.shim.start()
            stack.callback(self.shim.stop)
            self.anna, self.ben = Person("anna", self.shim), Person("ben", self.shim)
            stack.callback(self.anna.close)
            stack.callback(self.ben.close)
            self._populate()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            print(f"--- yepcord ---\n{self.log()}")
        self._stack.close()

    def _command(self, port: int) -> list[str]:
        """Make an empty database, and return what serves it."""
        key, config = secrets.token_hex(16), self.folder / "config.py"
        broker = free_port()
        config.write_text(CONFIG.format(folder=self.folder, key=key, port=port, broker=broker))
        program = [str(HOME / "bin" / "python"), "-m", "yepcord.cli"]
        chosen = ["-c", str(config)]
        environment = {"PYTHONPATH": str(STAND_IN), "PATH": os.defpath}
        subprocess.run(
            [*program, "migrate", *chosen], env=environment, check=True, capture_output=True
        )
        return [*program, "run_all", *chosen, "-h", "127.0.0.1", "-p", str(port)]

    def _populate(self) -> None:
        """Make the people, the guild, its first channel and the bot."""
        self.anna.register()
        self.ben.register()
        ask = self.anna.ask
        guild: dict[str, Any] = ask("POST", "/guilds", {"name": "The house", "icon": None})
        self.guild_id = guild["id"]
        self.channel_id = self.channel("general")
        self.bot = self.add_bot("dragoman")
        invitation = ask("POST", f"/channels/{self.channel_id}/invites", {})["code"]
        self.ben.ask("POST", f"/invites/{invitation}")
        for person in (self.anna, self.ben):
            person.application, person.guild = self.bot.id, self.guild_id
