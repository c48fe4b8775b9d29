"""A closed loop through a whole gateway: every client sends again when it was answered.

One process, the same application object, manifest and hooks as ``dragoman run``; a stub platform
takes JSON bodies, the echo runtime answers. Prints one line of JSON.

    python benchmarks/closed_loop.py --clients 32 --messages 40 --store sqlite
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import tempfile
import time
from pathlib import Path

import anyio
import attrs

from dragoman import Address, Outbound, Receipt
from dragoman.application import Application
from dragoman.echo import EchoConfig
from dragoman.manifest.model import Access, ComponentTable, Limits, Manifest, Profile
from dragoman.plugins.catalogue import Catalogue
from dragoman.store.operations import PutValue
from dragoman.testing.platform import StubConfig, StubPlatform
from dragoman.testing.plugin import StubPlugin

TEXT = "please repeat this **word** to me, all of it, now"


@attrs.define(eq=False)
class Client:
    """One person with one direct conversation."""

    number: int
    platform: StubPlatform
    waits: list[float] = attrs.field(factory=list)

    async def talk(self, messages: int) -> None:
        """Send ``messages`` messages, each when the one before was answered."""
        channel = f"client-{self.number}"
        for number in range(messages):
            body = {"id": f"{self.number}:{number}", "thread": channel, "text": TEXT}
            started = time.perf_counter()
            await self.platform.receive(json.dumps(body))
            await self.platform.answered(channel, number + 1)
            self.waits.append(time.perf_counter() - started)


@attrs.define(eq=False)
class CountingPlatform(StubPlatform):
    """A stub that wakes only the client that was answered, and keeps no texts."""

    _counts: dict[str, int] = attrs.field(factory=dict)
    _events: dict[str, anyio.Event] = attrs.field(factory=dict)

    async def send(self, address: Address, message: Outbound) -> Receipt:
        """Count an answer."""
        receipt = await super().send(address, message)
        self.messages.clear()
        self._counts[address.channel] = self._counts.get(address.channel, 0) + 1
        if event := self._events.pop(address.channel, None):
            event.set()
        return receipt

    async def answered(self, channel: str, count: int) -> None:
        """Wait for the ``count``-th answer in a channel."""
        while self._counts.get(channel, 0) < count:
            event = self._events.setdefault(channel, anyio.Event())
            await event.wait()


def manifest(folder: Path, store: str, clients: int) -> Manifest:
    """Return the deployment under test."""
    return Manifest(
        data_dir=folder,
        store=":memory:" if store == "memory" else None,
        components=(
            ComponentTable(kind="runtimes", id="echo", plugin="echo", config=EchoConfig()),
            ComponentTable(kind="platforms", id="stub", plugin="stub", config=StubConfig()),
        ),
        profiles={"default": Profile(runtime="echo")},
        access=Access(users=tuple(f"stub:client-{number}" for number in range(clients))),
        limits=Limits(person_rate=0, conversation_rate=0),
    )


async def single_commit_ms(app: Application) -> float:
    """Return the median time of a single-row durable commit."""
    times = []
    for number in range(30):
        started = time.perf_counter()
        await app.store.apply(PutValue(component="benchmark", name="x", value=str(number)))
        times.append(time.perf_counter() - started)
    return statistics.median(times) * 1000


async def measure(clients: int, messages: int, store: str) -> dict[str, float | int | str]:
    """Run the loop once."""
    with tempfile.TemporaryDirectory() as folder:
        plugin = StubPlugin()
        platform = CountingPlatform()
        plugin.platforms["stub"] = platform
        app = Application(
            manifest(Path(folder), store, clients), Catalogue(objects={"stub": plugin})
        )
        async with anyio.create_task_group() as tasks:
            await tasks.start(lambda *, task_status: app.run(task_status=task_status))
            commit_ms = await single_commit_ms(app)
            people = [Client(number, platform) for number in range(clients)]
            commits, cpu, started = app.store.commits, time.process_time(), time.perf_counter()
            async with anyio.create_task_group() as talks:
                for person in people:
                    talks.start_soon(person.talk, messages)
            elapsed, cpu = time.perf_counter() - started, time.process_time() - cpu
            commits = app.store.commits - commits
            app.stop()
    waits = sorted(wait for person in people for wait in person.waits)
    turns = clients * messages
    return {
        "store": store,
        "clients": clients,
        "messages": messages,
        "turns_per_s": round(turns / elapsed, 1),
        "p50_ms": round(statistics.median(waits) * 1000, 2),
        "p99_ms": round(waits[int(len(waits) * 0.99)] * 1000, 2),
        "cpu_us_per_turn": round(cpu / turns * 1e6, 1),
        "peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        "commit_p50_ms": round(commit_ms, 3),
        "commits_per_turn": round(commits / turns, 3),
    }


def main() -> None:
    """Parse the arguments and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--messages", type=int, default=40)
    parser.add_argument("--store", choices=("sqlite", "memory"), default="sqlite")
    args = parser.parse_args()
    print(json.dumps(anyio.run(measure, args.clients, args.messages, args.store)))


if __name__ == "__main__":
    main()
