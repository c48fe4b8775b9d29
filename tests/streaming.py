"""Answers that grow, and platforms whose calls are watched."""

from __future__ import annotations

import itertools

import attrs

from dragoman import Finished, TextDelta
from dragoman.testing import ScriptedRuntime, StubPlugin, VirtualClock

WORDS = [f"word{number:03} " for number in range(60)]
WHOLE = "".join(WORDS).rstrip()


@attrs.define
class Call:
    at: float
    method: str
    text: str
    plain: bool = False


@attrs.define(eq=False)
class Watch:
    """Keeps every call with its time, and whether two ever ran at once in a channel."""

    clock: VirtualClock
    takes: float = 0.0
    calls: list[Call] = attrs.field(factory=list)
    running: dict[str, int] = attrs.field(factory=dict)
    overlaps: int = 0

    async def __call__(self, method, address, message):
        self.calls.append(Call(self.clock.boot(), method, message.text, message.plain))
        self.running[address.channel] = self.running.get(address.channel, 0) + 1
        self.overlaps += self.running[address.channel] > 1
        try:
            if self.takes:
                await self.clock.sleep(self.takes)
        finally:
            self.running[address.channel] -= 1


def streaming(clock, deltas, *, every=0.1, plugin=None):
    """Return a plugin whose runtime says one delta each ``every`` seconds."""

    async def script(request, host):
        for delta in deltas:
            yield TextDelta("1", delta)
            await clock.sleep(every)
        yield Finished()

    plugin = plugin or StubPlugin()
    plugin.runtimes["scripted"] = ScriptedRuntime(script)
    return plugin


def gaps(calls):
    return [round(b.at - a.at, 6) for a, b in itertools.pairwise(calls)]
