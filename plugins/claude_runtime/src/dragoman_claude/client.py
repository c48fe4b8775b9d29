"""One live program of the SDK: one reader for all its life, and an end by deadlines."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Any, Final

import anyio
import attrs
from anyio.abc import ByteReceiveStream, TaskGroup, TaskStatus
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, Message, SystemMessage

from dragoman import Clock, FailureKind, RuntimeFailed
from dragoman_claude import versions
from dragoman_claude.home import Home

_WORDS: Final = 20
"""Lines that the program said last on stderr, which are kept."""
_INTERRUPT: Final = 1.0
_CLOSE: Final = 2.0
_KILL: Final = 1.0
"""Seconds for an interruption to be taken, for an end in order, and for one by signals."""
_LOOK: Final = 0.01
"""Seconds between two looks whether the SDK has stopped reading."""
_REST: Final = 1.0
"""Seconds behind a result in which the program comes to rest: it takes milliseconds."""


class Lost(Exception):
    """Raised to whoever uses a program that is gone, from what ended it."""


@attrs.define(eq=False)
class Client:
    """A program and its connection. It serves one session, and one turn at a time."""

    home: Home
    clock: Clock
    log: logging.Logger
    turns: int = 0
    listener: Callable[[Message], None] | None = None
    """Who is told each message, on the reader's task: quick, and never raising."""
    failure: Exception | None = None
    _patience: float = _CLOSE
    _sdk: ClaudeSDKClient | None = None
    _begun: anyio.Event = attrs.field(factory=anyio.Event)
    """Set when the program is at work on what it was given last."""
    _rested: anyio.Event = attrs.field(factory=anyio.Event)
    """Set when it has nothing more to do behind that."""
    _missing: set[str] = attrs.field(factory=set)
    """MCP servers that were told to be missing."""
    _said: deque[str] = attrs.field(factory=lambda: deque(maxlen=_WORDS))
    _ending: anyio.Event = attrs.field(factory=anyio.Event)
    _gone: anyio.Event = attrs.field(factory=anyio.Event)

    @property
    def alive(self) -> bool:
        """Whether a prompt would be heard."""
        return self._sdk is not None and not self._ending.is_set() and not self._gone.is_set()

    @property
    def last_words(self) -> tuple[str, ...]:
        """What the program said last on stderr."""
        return tuple(self._said)

    def heard(self, line: str) -> None:
        """Keep a line of stderr."""
        self._said.append(line)

    async def start(self, tasks: TaskGroup, options: ClaudeAgentOptions, timeout: float) -> None:
        """Start the program in a task of its own, which no turn's cancellation reaches.

        Returns when it takes prompts; raises what hindered it, and `TimeoutError`.
        """
        await tasks.start(self._live, options, timeout)
        if self.failure is not None:
            await self._gone.wait()
            raise self.failure

    async def say(self, *prompts: dict[str, Any]) -> None:
        """Write prompts; raises `Lost` where nobody hears them any more."""

        async def all_of_them() -> Any:
            for prompt in prompts:
                yield prompt

        if self._sdk is None or not self.alive:
            raise Lost from self.failure
        self._begun, self._rested = anyio.Event(), anyio.Event()
        try:
            await self._sdk.query(all_of_them())
        except Exception as error:
            self._end(error)
            raise Lost from error

    async def interrupt(self) -> bool:
        """Ask the program to end what it does; return whether it took that.

        It hears that only once it is at work: before, it would do all of its work unasked.
        """
        with anyio.CancelScope(shield=True), self.clock.move_on_after(_INTERRUPT):
            try:
                await self._begun.wait()
                if self._sdk is not None and self.alive:
                    await self._sdk.interrupt()
                    return True
            except Exception as error:  # noqa: BLE001 - whatever it is, the program does not obey
                self.log.warning("a program took no interruption (%s)", type(error).__name__)
        return False

    async def rest(self) -> bool:
        """Wait until the program has nothing more to do; return whether that is so."""
        with self.clock.move_on_after(_REST):
            await self._rested.wait()
        return self.resting

    @property
    def resting(self) -> bool:
        """Whether the program has done all that it was given."""
        return self.alive and self._rested.is_set()

    async def close(self, patience: float = _CLOSE) -> None:
        """End the program and wait until nothing of it is left; ``patience`` in seconds."""
        self._patience = min(self._patience, patience)
        self._end(None)
        await self._gone.wait()

    async def gone(self) -> None:
        """Wait until the program has ended."""
        await self._gone.wait()

    def _end(self, error: Exception | None) -> None:
        if self.failure is None:
            self.failure = error
        self._ending.set()

    async def _live(
        self, options: ClaudeAgentOptions, timeout: float, *, task_status: TaskStatus[None]
    ) -> None:
        sdk = ClaudeSDKClient(options)
        try:
            with self.clock.move_on_after(timeout) as scope:
                await self._connect(sdk)
            if scope.cancelled_caught:
                raise TimeoutError(f"no answer within {timeout:g} s")
            self._sdk = sdk
            task_status.started()
            await self._serve(sdk)
        except Exception as error:  # noqa: BLE001 - told to whoever uses the program
            self._end(error)
            if self._sdk is None:
                task_status.started()
        finally:
            if self._sdk is None or self.failure is not None:
                self._patience = 0  # it has nothing to say that would be heard
            self._ending.set()
            self._begun.set()
            self._rested.set()
            with anyio.CancelScope(shield=True):
                await self._down(sdk)
            self._gone.set()

    async def _connect(self, sdk: ClaudeSDKClient) -> None:
        """Start the program. One whose start is left is killed: the SDK waits for it to end."""
        failure: Exception | None = None
        over = False

        async def kill() -> None:
            try:
                await anyio.sleep_forever()
            finally:
                if not over:
                    await self.home.end(0)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(kill)
            try:
                await sdk.connect()
            except Exception as error:  # noqa: BLE001 - raised again below, outside the group
                failure = error
            over = True
            tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure

    async def _serve(self, sdk: ClaudeSDKClient) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._read, sdk)
            await self._ending.wait()
            tasks.cancel_scope.cancel()

    async def _read(self, sdk: ClaudeSDKClient) -> None:
        try:
            async for message in sdk.receive_messages():
                if isinstance(message, SystemMessage):
                    self._follow(message)
                if self.listener is not None:
                    self.listener(message)
        except Exception as error:  # noqa: BLE001 - a reader that has failed never reads again
            self._end(error)
        else:
            self._end(Lost("the program has ended"))

    def _follow(self, message: SystemMessage) -> None:
        """Learn what the program is about."""
        if message.subtype == "init":
            self._meet(message.data)
        if message.subtype == "session_state_changed":
            if message.data.get("state") == "idle":
                if self._begun.is_set():
                    self._rested.set()
            else:
                self._begun.set()

    def _meet(self, told: dict[str, Any]) -> None:
        """Refuse a program that is too old, and say which MCP servers are missing in it."""
        if why := versions.why_not(told.get("claude_code_version")):
            self._end(RuntimeFailed(FailureKind.INTERNAL, why))
        for server in told.get("mcp_servers", ()):
            name, state = str(server.get("name")), str(server.get("status"))
            if state != "connected" and name not in self._missing:
                self._missing.add(name)
                self.log.warning("MCP server %s is not connected: %s", name, state)

    async def _down(self, sdk: ClaudeSDKClient) -> None:
        """Let the program go in order, and by signals where it does not.

        What it has written is read to the end: before that its end is not seen, and the SDK, which
        reads no more behind what it could not understand, would wait for that in vain.
        """
        output = _output(sdk)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._kill)
            if self.failure is not None:
                tasks.start_soon(self._read_off, output)
            await self._disconnect(sdk)
            tasks.cancel_scope.cancel()
        if await self.home.end(_KILL):
            await self._read_off(output)
        else:
            self.log.error("a program could not be ended")
        await self.home.remove()

    async def _read_off(self, output: ByteReceiveStream | None) -> None:
        """Read what nobody wants any more."""
        while output is not None:
            try:
                await output.receive()
            except RuntimeError:  # the SDK reads still
                await self.clock.sleep(_LOOK)
            except (anyio.EndOfStream, anyio.ClosedResourceError):
                return

    async def _kill(self) -> None:
        await self.clock.sleep(self._patience)
        await self.home.end(_KILL if self._patience else 0)

    async def _disconnect(self, sdk: ClaudeSDKClient) -> None:
        try:
            await sdk.disconnect()
        except Exception as error:  # noqa: BLE001 - it ends either way
            self.log.debug("a program ended with %s", type(error).__name__)


def _output(sdk: ClaudeSDKClient) -> ByteReceiveStream | None:
    """Return what the program writes to, which the SDK keeps to itself and forgets at the end."""
    process = getattr(sdk._transport, "_process", None)  # noqa: SLF001 - there is no other way
    output: ByteReceiveStream | None = getattr(process, "stdout", None)
    return output
