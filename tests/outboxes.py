"""The outbox of a running gateway, and a platform that takes down when it is called."""

import gc

import attrs

from dragoman import RateLimited
from dragoman.outbox.outbox import Outbox
from dragoman.testing import ScriptedRuntime, StubPlatform, StubPlugin, VirtualClock
from stage import Stage, can


def outbox_of(stage: Stage) -> Outbox:
    """Return the outbox of a stage's gateway."""
    [found] = [
        one for one in gc.get_objects() if isinstance(one, Outbox) and one._store is stage.app.store
    ]
    return found


@attrs.define(eq=False)
class Watched(StubPlatform):
    """Takes down every call: when, what and where. ``flood`` is what a typing notice raises."""

    clock: VirtualClock = attrs.field(factory=VirtualClock)
    made: list = attrs.field(factory=list)
    flood: RateLimited | None = None
    latency: float = 0.0

    async def _begin(self, method, address, message):
        self.made.append((self.clock.boot(), method, address, message))
        await super()._begin(method, address, message)

    async def typing(self, address):
        self.made.append((self.clock.boot(), "typing", address, None))
        await self.clock.sleep(self.latency)
        if self.flood and address.channel == "1":
            raise self.flood

    def times(self, *methods, channel="1"):
        found = [(at, how) for at, how, where, _ in self.made if where.channel == channel]
        return [at for at, how in found if how in (methods or ("send", "edit"))]


def watched(clock, script=None, **capabilities):
    platform = Watched(clock=clock, capabilities=can(**capabilities))
    plugin = StubPlugin(platforms={"stub": platform})
    if script:
        plugin.runtimes["scripted"] = ScriptedRuntime(script)
    return plugin, platform
