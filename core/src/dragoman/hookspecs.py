"""The hooks of dragoman. This file is their reference.

Each hook has one colour (``def`` or ``async def``), one call shape and one failure rule:

* **collect** — all implementations are called at start-up; an exception is an error of the plugin.
* **ask** — all are asked in manifest order; each may refuse, an exception refuses.
* **first** — asked in manifest order until one answers.
* **pipe** — the value goes through all in manifest order; `Drop` ends it.
* **notify** — all are called; an exception or a time-out is logged and stops nobody.

*Registration* hooks are functions of a plugin's module, marked with `dragoman.hookimpl`.
*Behaviour* hooks are methods, marked the same way, of any object that a component opened.
An implementation may name fewer arguments than the hook has. Behaviour hooks are compiled into a
table once, after everything is open: registering later has no effect. Each call is given
``hook_timeout`` seconds (manifest, ``[limits]``).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import attrs
import pluggy

from dragoman.components import ChatCommand, CliCommand, Component
from dragoman.messages import Attachment, Inbound
from dragoman.protocols import MemoryStore, Platform, Runtime, Sink, TurnInfo
from dragoman.runevents import RunEnd

if TYPE_CHECKING:
    from dragoman.store.protocol import Store

hookspec = pluggy.HookspecMarker("dragoman")
hookimpl = pluggy.HookimplMarker("dragoman")


@attrs.frozen
class Verdict:
    """An answer to "may this event in?"."""

    allowed: bool
    reason: str

    @classmethod
    def allow(cls, reason: str) -> Verdict:
        """Let it in. Counts only from plugins that ``[access] admit_by`` names."""
        return cls(allowed=True, reason=reason)

    @classmethod
    def refuse(cls, reason: str) -> Verdict:
        """Keep it out, whatever others say."""
        return cls(allowed=False, reason=reason)


@attrs.frozen
class Drop:
    """Ends a pipe: the value goes no further, and ``reason`` is recorded."""

    reason: str


@attrs.frozen
class ConversationView:
    """What a hook may know of the conversation an event belongs to.

    ``profile`` and ``profiles`` are empty before routing: the route's profile, or what people chose
    there, and those that the route offers, among which `Behaviour.dragoman_profile` may choose.
    """

    platform: str
    kind: str
    profile: str = ""
    profiles: tuple[str, ...] = ()


@attrs.frozen
class TurnStarted:
    """A turn holds its session and begins."""

    turn: TurnInfo


@attrs.frozen
class TurnEnded:
    """A turn has ended, and its outcome is durable."""

    turn: TurnInfo
    end: RunEnd


@attrs.frozen
class PlatformStatus:
    """A platform's connection has changed."""

    platform: str
    status: Literal["connecting", "running", "waiting", "stopped"]
    reason: str = ""


Observation = TurnStarted | TurnEnded | PlatformStatus


class Registration:
    """Module-level hooks: synchronous, cheap, without arguments, called once, shape *collect*."""

    @hookspec
    def dragoman_platforms(self) -> Iterable[Component[Any, Platform]]:  # type: ignore[empty-body]
        """Return the platform adapters of this plugin."""

    @hookspec
    def dragoman_runtimes(self) -> Iterable[Component[Any, Runtime]]:  # type: ignore[empty-body]
        """Return the runtimes of this plugin."""

    @hookspec
    def dragoman_memories(self) -> Iterable[Component[Any, MemoryStore]]:  # type: ignore[empty-body]
        """Return the memory stores of this plugin."""

    @hookspec
    def dragoman_sinks(self) -> Iterable[Component[Any, Sink]]:  # type: ignore[empty-body]
        """Return the stream sinks of this plugin."""

    @hookspec
    def dragoman_stores(self) -> Iterable[Component[Any, Store]]:  # type: ignore[empty-body]
        """Return the stores of this plugin. A deployment has one; SQLite's is the default."""

    @hookspec
    def dragoman_extensions(self) -> Iterable[Component[Any, object]]:  # type: ignore[empty-body]
        """Return components whose objects only carry behaviour hooks."""

    @hookspec
    def dragoman_commands(self) -> Iterable[ChatCommand]:  # type: ignore[empty-body]
        """Return commands that people can give in a chat, where a manifest names the plugin."""

    @hookspec
    def dragoman_cli(self) -> Iterable[CliCommand]:  # type: ignore[empty-body]
        """Return commands of the command line. Loaded for manifests that name the plugin."""


class Behaviour:
    """Hooks on opened objects."""

    @hookspec
    async def dragoman_admit(self, event: Inbound, view: ConversationView) -> Verdict | None:
        """Say whether an event may in. Shape *ask*; silence is ``None``.

        Called on the untouched event before routing, and again after it with the profile in
        ``view``. Refusing always counts; allowing counts where ``[access] admit_by`` names the
        component. An exception or a time-out refuses.
        """

    @hookspec
    async def dragoman_profile(self, event: Inbound, view: ConversationView) -> str | None:
        """Choose a profile among ``view.profiles``. Shape *first*; silence keeps ``view.profile``.

        A failure, or a name outside ``view.profiles``, keeps it as well and is logged.
        """

    @hookspec
    async def dragoman_inbound(
        self, event: Inbound, view: ConversationView
    ) -> Inbound | Drop | None:
        """Change the text of an admitted event, or drop it. Shape *pipe*; ``None`` keeps it.

        Only the text is taken over. A failure drops the event: it ends as refused by the plugin.
        """

    @hookspec
    async def dragoman_outbound(self, text: str, turn: TurnInfo) -> str | Drop | None:
        """Change a whole answer before it is shown, or drop it. Shape *pipe*; ``None`` keeps it.

        Sees whole answers, never parts. Where a plugin of the deployment has this hook, answers
        are not shown while they stream. A failure withholds the answer and tells the person.
        """

    @hookspec
    async def dragoman_file_text(self, path: Path, attachment: Attachment) -> str | None:
        """Return a file as text, or ``None`` if it is of no known kind. Shape *first*.

        Called when an agent asks for it, outside the event loop's time where it takes long. Only
        the beginning is shown: 1,000,000 characters are enough. A failure counts as ``None``.
        """

    @hookspec
    async def dragoman_started(self) -> None:
        """All is open, nothing is connected yet. Shape *notify*, in manifest order."""

    @hookspec
    async def dragoman_stopping(self) -> None:
        """The gateway is about to close. Shape *notify*, in reverse manifest order."""

    @hookspec
    def dragoman_observe(self, observation: Observation) -> None:
        """Something happened. Shape *notify*; must not block."""
