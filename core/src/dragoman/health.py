"""How the gateway does: what the parts say of themselves, for those who show or measure it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar

import anyio
import attrs

from dragoman.clock import Clock
from dragoman.errors import StoreUnavailable
from dragoman.hookspecs import PlatformStatus
from dragoman.hosting import Mount, PlatformHealth
from dragoman.messages import Deliver, Inbound
from dragoman.store.protocol import Store

ValueT = TypeVar("ValueT")

FRESH: Final = 1.0
"""How long an answer of the store is shown again, seconds: whoever asks often costs no more."""

SHARE: Final = 50
"""An answer that took long is shown again for so many times as long: counting a long history takes
no more than a fiftieth of the store's time."""

SETTLED: Final = 15.0
"""How long a connection that was lost has to hold until it counts without a sign of work, seconds.
It is more than an attempt to connect takes, so that attempts alone do not look like recovery."""

Phase: TypeAlias = Literal["starting", "running", "stopping"]


@attrs.define(eq=False)
class _Remembered(Generic[ValueT]):
    """An answer that is asked for again only when it is old, compared to what it costs."""

    _clock: Clock
    _ask: Callable[[], Awaitable[ValueT]]
    _answer: tuple[ValueT] | None = None
    _until: float = 0.0
    _lock: anyio.Lock = attrs.field(factory=anyio.Lock)

    async def get(self) -> ValueT:
        async with self._lock:
            if self._answer is None or self._clock.boot() >= self._until:
                begin = self._clock.boot()
                self._answer = (await self._ask(),)
                end = self._clock.boot()
                self._until = end + max(FRESH, SHARE * (end - begin))
            return self._answer[0]


@attrs.define(eq=False)
class _Line:
    """What is known of one platform's connection."""

    health: PlatformHealth
    lost: bool = False
    """Whether the connection was lost before the present attempt."""
    since: float = 0.0
    """Boot time of the present attempt's begin."""

    def holds(self, now: float) -> bool:
        """Whether it is connected, as far as can be told."""
        if self.health.state != "running":
            return self.health.state != "waiting"
        worked = self.health.worked_at
        if not self.lost or (worked is not None and worked >= self.since):
            return True
        return now - self.since >= SETTLED


@attrs.define(eq=False)
class Health:
    """The `dragoman.Gateway` of one application. Everything in it is bounded by the manifest.

    ``platforms`` are the ids of all instances, in the order of the manifest. ``lag`` tells how long
    the event loop was held lately. Without a store it knows of no rows.
    """

    _clock: Clock
    _ids: Iterable[str] = ()
    _store: Store | None = None
    _lag: Callable[[], float] = attrs.field(default=lambda: 0.0)
    phase: Phase = "starting"
    served: bool = False
    """Whether a component serves what others mount."""
    commands: Sequence[tuple[str, str]] = ()
    """What people can say to the gateway: commands by name, with a line of help each."""
    command_names: frozenset[str] = frozenset()
    back: Callable[[str], None] = attrs.field(init=False, default=lambda _: None)
    """Told of a platform whose lost connection shows the first sign of work again."""
    _lines: dict[str, _Line] = attrs.field(init=False)
    _mounts: dict[str, Mount] = attrs.field(init=False, factory=dict)
    _store_failure: tuple[str, int] | None = attrs.field(init=False, default=None)
    _counts: _Remembered[Mapping[str, Mapping[str, int]]] = attrs.field(init=False)
    _oldest: _Remembered[Mapping[str, float]] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._lines = {id_: _Line(PlatformHealth(id=id_, state="connecting")) for id_ in self._ids}
        self._counts = _Remembered(self._clock, self._read_counts)
        self._oldest = _Remembered(self._clock, self._read_oldest)

    @property
    def troubles(self) -> Sequence[str]:
        """What keeps the gateway from taking and answering messages; empty when it is ready."""
        found = [] if self.phase == "running" else [f"the gateway is {self.phase}"]
        if self._failing():
            assert self._store_failure
            found.append(f"the store takes nothing: {self._store_failure[0]}")
        platforms = self.platforms
        found += [f"platform {p.id} stopped: {p.reason}" for p in platforms if p.state == "stopped"]
        now = self._clock.boot()
        lost = [line.health for line in self._lines.values() if not line.holds(now)]
        if lost and all(p.state == "stopped" or p in lost for p in platforms):
            found += [f"platform {p.id} is not connected: {p.reason}" for p in lost]
        return found

    @property
    def platforms(self) -> Sequence[PlatformHealth]:
        """Every platform instance, in the order of the manifest."""
        return [line.health for line in self._lines.values()]

    @property
    def mounts(self) -> Sequence[Mount]:
        """What components offer over HTTP, in the order in which they were opened."""
        return list(self._mounts.values())

    @property
    def loop_lag(self) -> float:
        """The longest time in the last minute that the event loop was held, seconds."""
        return self._lag()

    async def counts(self) -> Mapping[str, Mapping[str, int]]:
        """Return how many rows are in which state: by table, then by state."""
        return await self._counts.get()

    async def oldest(self) -> Mapping[str, float]:
        """Return the age of what waits longest, seconds: by ``events`` and ``deliveries``."""
        return await self._oldest.get()

    def status(self, status: PlatformStatus) -> None:
        """Take down a platform's new status."""
        line = self._lines[status.platform]
        if status.status == "running":
            line.since = self._clock.boot()
        elif status.status == "waiting":
            line.lost = True
        reason = status.reason or (line.health.reason if line.lost else "")
        line.health = attrs.evolve(line.health, state=status.status, reason=reason)

    def worked(self, component: str) -> None:
        """Take down that a piece of a platform's work was completed; others' is not followed."""
        kind, _, id_ = component.partition(".")
        line = self._lines.get(id_) if kind == "platforms" else None
        if line is not None:
            lost, line.lost = line.lost, False
            line.health = attrs.evolve(line.health, worked_at=self._clock.boot(), reason="")
            if lost:
                self.back(id_)

    def worked_at(self, platform: str) -> float | None:
        """Return the boot time of a platform's last completed work."""
        return self._lines[platform].health.worked_at

    def mount(self, path: str, app: Callable[..., Any], owner: str) -> None:
        """Offer an ASGI application below a path."""
        if not path.startswith("/"):
            msg = f"{owner}: a path to mount begins with a slash, not as {path!r} does"
            raise ValueError(msg)
        path = path.rstrip("/") or "/"
        if path in self._mounts:
            msg = f"{owner}: {path} is taken by {self._mounts[path].owner}"
            raise ValueError(msg)
        self._mounts[path] = Mount(path=path, app=app, owner=owner)

    def forget(self, component: str) -> None:
        """Leave out an optional component that could not be opened."""
        kind, _, id_ = component.partition(".")
        if kind == "platforms":
            self._lines.pop(id_, None)
        self._mounts = {path: one for path, one in self._mounts.items() if one.owner != component}

    def store_failed(self, reason: str) -> None:
        """Take down that the store could not append; its next commit is the end of it."""
        self._store_failure = (reason, self._store.commits if self._store else 0)

    def store_works(self) -> None:
        """Take down that the store appends."""
        self._store_failure = None

    def watching(self, deliver: Deliver) -> Deliver:
        """Return ``deliver``, whose outcome tells whether the store appends."""

        async def watched(event: Inbound) -> None:
            try:
                await deliver(event)
            except StoreUnavailable as error:
                self.store_failed(str(error))
                raise
            self.store_works()

        return watched

    def _failing(self) -> bool:
        if self._store_failure is None:
            return False
        return self._store is None or self._store.commits <= self._store_failure[1]

    async def _read_counts(self) -> Mapping[str, Mapping[str, int]]:
        return await self._store.read.states() if self._store else {}

    async def _read_oldest(self) -> Mapping[str, float]:
        if self._store is None:
            return {}
        return await self._store.read.oldest(self._clock.now().timestamp())
