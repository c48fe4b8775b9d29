"""The hook table: behaviour hooks of all opened objects, frozen into typed calls."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import attrs

from dragoman.clock import Clock
from dragoman.hookspecs import ConversationView, Drop, Observation, Verdict
from dragoman.messages import Attachment, Inbound
from dragoman.plugins.binding import BoundHook, bind
from dragoman.plugins.guard import Guard, HookError
from dragoman.protocols import TurnInfo

FAILURES_TO_DISABLE: Final = 5
"""So many failures without a success between them, and a notify hook is called no more."""


@attrs.define(eq=False)
class _Notified:
    """A hook that is told things, and how often it has failed in a row."""

    hook: BoundHook
    failures: int = 0


@attrs.define(eq=False, kw_only=True)
class HookTable:
    """One method per behaviour hook; shapes and failure rules are those of `hookspecs`.

    Compiled once, when everything is open. The methods may be called from many tasks at once.
    """

    _guard: Guard
    _log: logging.Logger
    _admitting: frozenset[str]
    """Components whose word alone lets people in."""

    _admit: tuple[BoundHook, ...]
    _profile: tuple[BoundHook, ...]
    _inbound: tuple[BoundHook, ...]
    _outbound: tuple[BoundHook, ...]
    _file_text: tuple[BoundHook, ...]
    _started: tuple[_Notified, ...]
    _stopping: tuple[_Notified, ...]
    _observe: tuple[_Notified, ...]

    @classmethod
    def compile(
        cls,
        objects: Sequence[tuple[str, object]],
        *,
        timeout: float,
        clock: Clock,
        log: logging.Logger,
        admit_by: frozenset[str],
    ) -> HookTable:
        """Build the table of opened objects, given in manifest order by their place in it.

        ``timeout`` is seconds for one call. ``admit_by`` holds places (``extensions.gate``) or
        ids (``gate``). Raises `PluginError` for a hook that could not be called.
        """
        hooks = [hook for component, target in objects for hook in bind(component, target)]

        def named(name: str) -> tuple[BoundHook, ...]:
            return tuple(hook for hook in hooks if hook.hook == name)

        def told(name: str) -> tuple[_Notified, ...]:
            return tuple(_Notified(hook) for hook in named(name))

        places = (component for component, _ in objects)
        return cls(
            guard=Guard(timeout, clock, log),
            log=log,
            admitting=frozenset(
                place for place in places if {place, place.partition(".")[2]} & admit_by
            ),
            admit=named("dragoman_admit"),
            profile=named("dragoman_profile"),
            inbound=named("dragoman_inbound"),
            outbound=named("dragoman_outbound"),
            file_text=named("dragoman_file_text"),
            started=told("dragoman_started"),
            stopping=told("dragoman_stopping")[::-1],
            observe=told("dragoman_observe"),
        )

    async def admit(self, event: Inbound, view: ConversationView) -> Verdict | None:
        """Ask all: the first refusal, else the first allowance that counts, else silence."""
        refusal: Verdict | None = None
        allowance: Verdict | None = None
        for hook in self._admit:
            verdict = await self._verdict(hook, event, view)
            if verdict is None:
                continue
            if not verdict.allowed:
                refusal = refusal or verdict
            elif hook.component in self._admitting:
                allowance = allowance or verdict
        return refusal or allowance

    async def _verdict(
        self, hook: BoundHook, event: Inbound, view: ConversationView
    ) -> Verdict | None:
        try:
            verdict: Verdict | None = await self._guard.call(hook, Verdict, event, view)
        except HookError:
            return Verdict.refuse(f"{hook.component} failed")
        if verdict is None:
            return None
        allowed: object = verdict.allowed
        if not isinstance(allowed, bool):  # "no" is true in Python, and would let people in
            self._guard.reject(hook, "answered with a verdict that is neither yes nor no")
            return Verdict.refuse(f"{hook.component} failed")
        return attrs.evolve(verdict, reason=f"plugin {hook.component}: {verdict.reason}")

    async def profile(self, event: Inbound, view: ConversationView) -> str | None:
        """Return the profile chosen among ``view.profiles``; ``None`` keeps the route's."""
        for hook in self._profile:
            try:
                choice: str | None = await self._guard.call(hook, str, event, view)
            except HookError:
                return None
            if choice is None:
                continue
            if choice in view.profiles:
                return choice
            self._guard.reject(hook, "chose a profile that the route does not offer")
            return None
        return None

    async def inbound(self, event: Inbound, view: ConversationView) -> Inbound | Drop:
        """Return the event with the text that the hooks made of it, or who dropped it."""
        for hook in self._inbound:
            try:
                answer = await self._guard.call(hook, (Inbound, Drop), event, view)
            except HookError:
                return Drop(f"{hook.component} failed")
            if isinstance(answer, Drop):
                return _named(hook, answer)
            if answer is not None:
                event = attrs.evolve(event, text=answer.text)
        return event

    @property
    def has_outbound(self) -> bool:
        """Whether answers pass a hook: they are then not shown while they stream."""
        return bool(self._outbound)

    async def outbound(self, text: str, turn: TurnInfo) -> str | Drop:
        """Return what the hooks made of a whole answer, or who dropped it."""
        for hook in self._outbound:
            try:
                answer = await self._guard.call(hook, (str, Drop), text, turn)
            except HookError:
                return Drop(f"{hook.component} failed")
            if isinstance(answer, Drop):
                return _named(hook, answer)
            if answer is not None:
                text = answer
        return text

    async def file_text(self, path: Path, attachment: Attachment) -> str | None:
        """Return a file as the first text that a hook makes of it."""
        for hook in self._file_text:
            try:
                text: str | None = await self._guard.call(hook, str, path, attachment)
            except HookError:
                continue
            if text is not None:
                return text
        return None

    async def started(self) -> None:
        """Tell all, in manifest order, that everything is open."""
        await self._tell(self._started)

    async def stopping(self) -> None:
        """Tell all, in reverse manifest order, that the gateway is about to close."""
        await self._tell(self._stopping)

    async def _tell(self, told: Sequence[_Notified]) -> None:
        for one in told:
            if one.failures < FAILURES_TO_DISABLE:
                try:
                    await self._guard.call(one.hook, object)
                    one.failures = 0
                except HookError:
                    self._count(one)

    def observe(self, observation: Observation) -> None:
        """Tell all what happened. Never raises because of a hook."""
        for one in self._observe:
            if one.failures < FAILURES_TO_DISABLE:
                try:
                    self._guard.call_now(one.hook, observation)
                    one.failures = 0
                except HookError:
                    self._count(one)

    def _count(self, one: _Notified) -> None:
        one.failures += 1
        if one.failures == FAILURES_TO_DISABLE:
            line = "%s failed %d times in a row and is called no more"
            self._log.error(line, one.hook.name, one.failures)


def _named(hook: BoundHook, drop: Drop) -> Drop:
    return Drop(f"plugin {hook.component}: {drop.reason}")
