"""What happened and how things stand, in Prometheus' terms. Imported when the extension is opened."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import attrs
from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from dragoman import (
    Cancelled,
    Clock,
    Failed,
    Host,
    Observation,
    Paused,
    PlatformHealth,
    RunEnd,
    StoreUnavailable,
    TurnEnded,
    TurnStarted,
)

SECONDS: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0)
STATES: Final = ("connecting", "running", "waiting", "stopped")


@attrs.frozen(kw_only=True)
class Snapshot:
    """How the gateway stands at one moment. ``now`` is boot time, ages are seconds."""

    now: float
    ready: bool
    loop_lag: float
    platforms: Sequence[PlatformHealth]
    counts: Mapping[str, Mapping[str, int]]
    oldest: Mapping[str, float]


async def snapshot(host: Host) -> Snapshot:
    """Ask the gateway; where the store cannot be read, its rows are left out."""
    gateway = host.gateway
    counts: Mapping[str, Mapping[str, int]] = {}
    oldest: Mapping[str, float] = {}
    try:
        counts, oldest = await gateway.counts(), await gateway.oldest()
    except StoreUnavailable as error:
        host.log.warning("the store was not measured: %s", error)
    return Snapshot(
        now=host.clock.boot(),
        ready=not gateway.troubles,
        loop_lag=gateway.loop_lag,
        platforms=gateway.platforms,
        counts=counts,
        oldest=oldest,
    )


class Metrics:
    """One application's metrics, in a registry of its own."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._begun: dict[str, float] = {}
        self._registry = CollectorRegistry()
        self._standing = _Standing()
        self._registry.register(self._standing)
        who = ("profile", "runtime")
        self._started = Counter(
            "dragoman_turns_started", "Turns that began", who, registry=self._registry
        )
        self._ended = Counter(
            "dragoman_turns_ended", "Turns that ended", (*who, "state"), registry=self._registry
        )
        self._lasted = Histogram(
            "dragoman_turn_duration_seconds",
            "Time from a turn's begin to its end",
            who,
            buckets=SECONDS,
            registry=self._registry,
        )

    def observe(self, observation: Observation) -> None:
        """Count a turn's begin or end."""
        if isinstance(observation, TurnStarted):
            turn = observation.turn
            self._begun[turn.turn_id] = self._clock.boot()
            self._started.labels(turn.profile, turn.runtime).inc()
        elif isinstance(observation, TurnEnded):
            turn = observation.turn
            self._ended.labels(turn.profile, turn.runtime, _state(observation.end)).inc()
            begun = self._begun.pop(turn.turn_id, None)
            if begun is not None:
                seconds = self._clock.boot() - begun
                self._lasted.labels(turn.profile, turn.runtime).observe(seconds)

    def page(self, now: Snapshot, accept: str) -> tuple[bytes, str]:
        """Return the page and its content type, in the form that the reader accepts."""
        self._standing.snapshot = now
        encode, content_type = choose_encoder(accept)
        return encode(self._registry), content_type


class _Standing(Collector):
    """Shows a snapshot, taken anew for each page."""

    snapshot: Snapshot | None = None

    def collect(self) -> Iterable[Metric]:
        """Return the snapshot's metrics."""
        if self.snapshot is None:
            return
        now = self.snapshot
        yield GaugeMetricFamily("dragoman_ready", "1 while messages are taken", float(now.ready))
        yield GaugeMetricFamily(
            "dragoman_loop_lag_seconds", "Longest hold of the loop in the last minute", now.loop_lag
        )
        yield from _rows(now)
        yield from _platforms(now)


def _rows(now: Snapshot) -> Iterable[Metric]:
    for name, table, text in (
        ("events", "inbound_events", "Inbound events in the store by state"),
        ("turns", "agent_runs", "Turns in the store by state"),
        ("deliveries", "deliveries", "Message parts in the store by state"),
    ):
        family = GaugeMetricFamily(f"dragoman_{name}", text, labels=("state",))
        for state, count in sorted(now.counts.get(table, {}).items()):
            family.add_metric((state,), count)
        yield family
    family = GaugeMetricFamily(
        "dragoman_oldest_age_seconds", "Age of what waits longest", labels=("waiting",)
    )
    for waiting in ("events", "deliveries"):
        if now.counts:
            family.add_metric((waiting,), now.oldest.get(waiting, 0.0))
    yield family


def _platforms(now: Snapshot) -> Iterable[Metric]:
    state = GaugeMetricFamily(
        "dragoman_platform_state", "1 for the state of a platform", labels=("platform", "state")
    )
    worked = GaugeMetricFamily(
        "dragoman_platform_worked_seconds",
        "Seconds since a platform last completed a piece of work",
        labels=("platform",),
    )
    for platform in now.platforms:
        for one in STATES:
            state.add_metric((platform.id, one), float(platform.state == one))
        if platform.worked_at is not None:
            worked.add_metric((platform.id,), now.now - platform.worked_at)
    yield state
    yield worked


def _state(end: RunEnd) -> str:
    """Name a turn's end as the store does."""
    if isinstance(end, Failed):
        return "failed"
    if isinstance(end, Cancelled):
        return "cancelled"
    return "waiting" if isinstance(end, Paused) else "succeeded"
