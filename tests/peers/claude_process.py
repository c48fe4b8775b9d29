"""The model server for Claude as a process of its own: ``python -m peers.claude_process PORT PLAN``.

A plan is a JSON object, by what a person has to say for it: lists of steps, each an object with one
key. Keys are ``say`` (a text, or its pieces), ``think``, ``call`` (a tool's name, with the arguments
beside it as ``with``), ``hold``, ``pause`` (seconds), ``cut``, ``fail`` (an HTTP status, with the
error's type beside it as ``type``) and ``spent`` (tokens: input, output, cache read and written).
"""

from __future__ import annotations

import json
import signal
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import attrs
from aiohttp import web

from dragoman import FailureKind
from dragoman.testing.runtime_script import Hold, Say, Think
from peers.claude_server import Call, ClaudeServer, Cut, Spent, Status
from peers.process import PeerProcess, request
from peers.scripted_model import Pause

Plan = Mapping[str, Sequence[Mapping[str, Any]]]
CONTROL = "/_peer/"


def step(told: Mapping[str, Any]) -> Any:
    """Return a step of a plan."""
    match dict(told):
        case {"say": str(text)}:
            return Say((text,))
        case {"say": [*pieces]}:
            return Say(tuple(pieces))
        case {"think": text}:
            return Think(text)
        case {"call": tool, **more}:
            return Call(tool, arguments=more.get("with", {}))
        case {"hold": _}:
            return Hold()
        case {"pause": seconds}:
            return Pause(seconds)
        case {"cut": _}:
            return Cut()
        case {"fail": status, **more}:
            error = more.get("type", "api_error")
            return Status(FailureKind.INTERNAL, "scripted", status=status, error=error)
        case {"spent": counts}:
            return Spent(*counts)
    raise ValueError(f"no step is {told}")


@attrs.define(eq=False)
class ControlledServer(ClaudeServer):
    """The server, which is also told what to do over HTTP."""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        match request.path.removeprefix(CONTROL):
            case "journal":
                return web.json_response(self.page.bodies)
            case "heard":
                told = [[[line.role, line.text] for line in lines] for lines in self.page.asked]
                return web.json_response(told)
            case "busy":
                return web.json_response(self.page.busy)
            case "release":
                self.page.released.set()
            case "hold":
                self.page.released.clear()
            case "plan":
                self.plan(await request.json())
            case "begin":
                self.begin()
            case _:
                return await super().handle(request)
        return web.json_response(None)

    def plan(self, plan: Plan) -> None:
        """Add to what is answered."""
        for said, steps in plan.items():
            self.page.book.add(said, [step(one) for one in steps])


class ClaudePeer:
    """The process, for the length of a ``with`` block."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._folder = tempfile.TemporaryDirectory(prefix="claude-peer-")
        log, code = Path(self._folder.name) / "log", Path(__file__).parents[1]
        self._process = PeerProcess("claude", log, {"PYTHONPATH": str(code)})

    @property
    def base_url(self) -> str:
        """What the program takes as its base URL."""
        return self._process.root

    def journal(self) -> list[dict[str, Any]]:
        """Return the body of every model call so far, oldest first."""
        bodies: list[dict[str, Any]] = self._control("journal")
        return bodies

    def heard(self) -> list[list[tuple[str, str]]]:
        """Return what each of them said, by role: "user", "assistant" and "tool"."""
        return [[(role, text) for role, text in lines] for lines in self._control("heard")]

    def busy(self) -> int:
        """Return how many calls are being answered."""
        return int(self._control("busy"))

    def plan(self, plan: Plan) -> None:
        """Add to what is answered; it replaces what was planned for the same words."""
        self._control("plan", plan)

    def release(self) -> None:
        """Let go on what holds, now and from now on."""
        self._control("release", {})

    def hold(self) -> None:
        """Let hold again what says so."""
        self._control("hold", {})

    def __enter__(self) -> Self:
        path = Path(self._folder.name) / "plan.json"
        path.write_text(json.dumps(self._plan))
        command = [sys.executable, "-m", "peers.claude_process"]
        self._process.start(lambda port: [*command, str(port), str(path)], f"{CONTROL}busy")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            print(f"--- claude ---\n{self._process.log()}")
        self._process.stop()
        self._folder.cleanup()

    def _control(self, what: str, body: object = None) -> Any:
        return request(f"{self._process.root}{CONTROL}{what}", body)


def main(port: str, *plans: str) -> None:
    """Serve until a signal ends it."""
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    with ControlledServer(wanted_port=int(port)) as server:
        for path in plans:
            server.plan(json.loads(Path(path).read_text()))
        ended.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
