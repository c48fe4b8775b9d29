"""One soak: people, weather, and a gateway that is killed again and again."""

from __future__ import annotations

import json
import logging
import sqlite3
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import attrs

from crash.ledger import read
from peers.gateway import Gateway
from peers.telegram_fake import TelegramFake
from soak.crowd import WORD_DELAY, Crowd, lanes_of
from soak.judge import EMPTY, PREFIX, Answer, Judgement, Lane, judge
from soak.weather import Weather

ATTEMPTS: Final = 3
"""Attempts that a turn gets: a kill waits for those that have their last one."""
BEFORE: Final = 2.0
AFTER: Final = 1.0
"""Seconds around a kill in which a message may arrive whose id the store was never told."""
IN_DOUBT: Final = """
SELECT address, text FROM deliveries
WHERE state = 'sending' AND native_id = '' AND place IS NOT NULL
"""
"""What a dead gateway was about to send."""
KNOWN: Final = """
SELECT address ->> '$.channel', native_id FROM deliveries WHERE native_id <> ''
"""
"""The messages of which the store knows."""
FAIR: Final = 0.95
"""The share of answers after which nothing more goes wrong, so that the end is not all waiting."""

MANIFEST: Final = """
manifest = 1

[platforms.telegram]
token = {{ env = "TELEGRAM_TOKEN" }}
api_url = "{url}"
poll_timeout = 5

[runtimes.echo]
prefix = "{prefix}"
word_delay = {word_delay}

[profiles.default]
runtime = "echo"
recovery = "retry"
trigger = "all"

[limits]
concurrent_turns = 1000
restarts = 1000
person_rate = 0
conversation_rate = 0

[access]
users = [{users}]
channels = [{channels}]
"""


@attrs.frozen(kw_only=True)
class Plan:
    """How much is said, and how often the gateway is killed meanwhile."""

    conversations: int
    messages: int
    """Of all conversations together."""
    kills: int
    in_flight: int = 20
    """Turns that are running at each kill, at least."""
    limit: float
    """Seconds after which the soak counts as stuck."""
    seed: int = 1


@attrs.frozen(kw_only=True)
class Result:
    """What a soak came to."""

    plan: Plan
    seconds: float
    judgement: Judgement
    in_flight: tuple[int, ...]
    """Turns that were running at each kill."""
    turns: Counter[str]
    """Rows of turns by their states."""
    unfinished: Counter[str]
    faults: Counter[str]
    doubts: Counter[Answer]
    """Which answers may be marked as repeats, and how often."""
    orphans: Counter[Lane]
    """How many placeholders may be left over where."""
    memory: tuple[tuple[int, float], ...]
    """The gateway's resident megabytes over its last life, each after so many answers."""
    code: int

    @property
    def growth(self) -> float:
        """By how much memory exceeds in the last quarter that of the second, as a share."""
        quarter = self.plan.messages / 4
        second = [size for count, size in self.memory if quarter <= count < 2 * quarter]
        last = [size for count, size in self.memory if count >= 3 * quarter]
        return statistics.median(last) / statistics.median(second) - 1 if second and last else 0.0

    @property
    def problems(self) -> list[str]:
        """Return what is not as it should be."""
        seen = self.judgement
        found = [*seen.lost, *seen.doubled, *seen.disordered, *seen.strange]
        found += [f"{count} rows {name}" for name, count in self.unfinished.items()]
        found += [
            f"{count} turns {name}" for name, count in self.turns.items() if name != "succeeded"
        ]
        if seen.notices:
            found.append(f"{seen.notices} people were told of an interruption")
        found += [f"marked without a doubt: {each}" for each in seen.marked - self.doubts]
        found += [
            f"a placeholder is left over: {each}" for each in seen.placeholders - self.orphans
        ]
        if len(self.in_flight) < self.plan.kills:
            found.append(f"killed {len(self.in_flight)} times only")
        if self.code:
            found.append(f"the gateway ended with {self.code}")
        return found

    def __str__(self) -> str:
        seen, plan = self.judgement, self.plan
        in_flight = (
            f" (in flight {min(self.in_flight)}-{max(self.in_flight)})" if plan.kills else ""
        )
        faults = ", ".join(f"{count} {name}" for name, count in sorted(self.faults.items()))
        memory = max(size for _, size in self.memory)
        grown = "" if plan.kills else f" ({self.growth:+.1%})"
        return (
            f"soak: {plan.conversations} conversations, {plan.messages} messages, "
            f"{len(self.in_flight)} kills{in_flight}, {self.seconds:.0f} s; lost {len(seen.lost)}, "
            f"doubled {len(seen.doubled)}, out of order {len(seen.disordered)}, "
            f"strange {len(seen.strange)}, notices {seen.notices}; marked as repeats "
            f"{seen.marked.total()} of {self.doubts.total()} in doubt ({seen.twice} shown twice), "
            f"placeholders left {seen.placeholders.total()} of {self.orphans.total()}; "
            f"faults: {faults}; memory {memory:.0f} MB{grown}"
        )


@attrs.define(eq=False)
class Campaign:
    """A soak under way."""

    plan: Plan
    fake: TelegramFake
    gateway: Gateway
    crowd: Crowd
    weather: Weather
    in_flight: list[int] = attrs.field(factory=list)
    doubts: Counter[Answer] = attrs.field(factory=Counter)
    killed_at: list[float] = attrs.field(factory=list)
    noted: set[tuple[str, str]] = attrs.field(factory=set)
    """The messages of which the store knew when it was left behind."""
    memory: list[tuple[int, float]] = attrs.field(factory=list)
    _began: float = attrs.field(factory=time.monotonic)

    @property
    def store(self) -> Path:
        """The gateway's file."""
        return self.gateway.folder / ".dragoman" / "dragoman.db"

    def run(self) -> Result:
        """Talk, kill, and look at what is shown."""
        share = self.crowd.total * 2 // (3 * (self.plan.kills + 1))  # the rest is for waiting
        with self.gateway:
            self.crowd.begin()
            while len(self.in_flight) < self.plan.kills:
                self._until(partial(self._reached, self.crowd.answered + share))
                self._until(lambda: running(self.store) >= self.plan.in_flight)
                self._kill()
            self.memory.clear()
            self._until(lambda: self.crowd.answered == self.crowd.total)
            self._look()
            seconds = time.monotonic() - self._began
            self._until(lambda: not read(self.store).unfinished)
            code = self.gateway.stop()
        return self._result(seconds, code)

    def _reached(self, goal: int) -> bool:
        return self.crowd.answered >= goal

    def _kill(self) -> None:
        """Kill the gateway and start it again; see what it had under way."""
        self.gateway.kill()
        self.killed_at.append(time.monotonic())
        self.noted.update(ask(self.store, KNOWN))
        count = running(self.store)
        if count >= self.plan.in_flight:
            self.in_flight.append(count)
        for address, text in ask(self.store, IN_DOUBT):
            place = json.loads(address)
            thread = int(place["thread"]) if place["thread"] else None
            self.doubts[self.crowd.at(int(place["channel"]), thread), text] += 1
        self.gateway.start()

    def _orphans(self) -> Counter[Lane]:
        """Return the placeholders whose sending a kill met, so that nobody noted their ids."""
        known = self.noted.union(ask(self.store, KNOWN))
        found: Counter[Lane] = Counter()
        for call in self.fake.calls_of("sendMessage"):
            lane, arrived = self.crowd.lane_of(call), call.stages["arrived"]
            by_weather = call.fate not in ("", "unread")
            if lane is None or by_weather or call.params["text"] not in EMPTY:
                continue
            told = call.ok and (str(lane.chat), str(call.result["message_id"])) in known
            if not told and any(-BEFORE < arrived - at < AFTER for at in self.killed_at):
                found[lane] += 1
        return found

    def _until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition, and look at the memory meanwhile."""
        looked_at = 0.0
        while not condition():
            now = time.monotonic()
            if now - self._began > self.plan.limit:
                raise TimeoutError(
                    f"after {self.plan.limit:g} s {self.crowd.answered} of {self.crowd.total} "
                    f"are answered, waiting: {dict(self.crowd.silent().most_common(5))}\n"
                    + self.gateway.log[-4000:]
                )
            if now - looked_at > 0.25 and self.crowd.answered:
                looked_at = now
                self._look()
            self.weather.fair = self.crowd.answered > FAIR * self.crowd.total
            time.sleep(0.01)

    def _look(self) -> None:
        self.memory.append((self.crowd.answered, resident(self.gateway.pid)))

    def _result(self, seconds: float, code: int) -> Result:
        return Result(
            plan=self.plan,
            seconds=seconds,
            judgement=judge(
                self.crowd.said, {lane: self._shown(lane) for lane in self.crowd.lanes}
            ),
            in_flight=tuple(self.in_flight),
            turns=Counter(state for (state,) in ask(self.store, "SELECT state FROM agent_runs")),
            unfinished=Counter(read(self.store).unfinished),
            faults=self.weather.faults,
            doubts=self.doubts + self.weather.doubts,
            orphans=self._orphans() + self.weather.orphans,
            memory=tuple(self.memory),
            code=code,
        )

    def _shown(self, lane: Lane) -> list[tuple[int, str]]:
        return [
            (one.message_id, one.text)
            for one in self.fake.chat(lane.chat, lane.thread)
            if one.sender == self.fake.bot_id and not one.deleted
        ]


def ask(store: Path, sql: str) -> list[Any]:
    """Return what a store answers, read-only."""
    if not store.exists():
        return []
    with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True, timeout=5)) as db:
        return list(db.execute(sql))


def running(store: Path) -> int:
    """Return how many turns are running; none while one of them has its last attempt."""
    attempts = ask(store, "SELECT attempt FROM agent_runs WHERE state = 'running'")
    return 0 if any(attempt >= ATTEMPTS for (attempt,) in attempts) else len(attempts)


def resident(pid: int) -> float:
    """Return the resident memory of a process, in megabytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0  # it has ended


@contextmanager
def prepared(plan: Plan, folder: Path) -> Iterator[Campaign]:
    """Set the stage in an empty folder."""
    lanes = lanes_of(plan.conversations)
    with _silent("aiohttp.server"), TelegramFake() as fake:  # reports clients that were killed
        crowd = Crowd(fake, lanes, plan.messages, plan.seed)
        weather = Weather(plan.seed, crowd)
        fake.on_call(weather.decide)
        gateway = Gateway(folder, _manifest(fake.url, lanes), {"TELEGRAM_TOKEN": fake.token})
        yield Campaign(plan, fake, gateway, crowd, weather)
        fake.on_call(None)


@contextmanager
def _silent(name: str) -> Iterator[None]:
    logger = logging.getLogger(name)
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def _manifest(url: str, lanes: tuple[Lane, ...]) -> str:
    return MANIFEST.format(
        url=url,
        prefix=PREFIX,
        word_delay=WORD_DELAY,
        users=", ".join(f'"telegram:{lane.user}"' for lane in lanes if lane.thread is None),
        channels=", ".join(
            sorted({f'"telegram:{lane.chat}"' for lane in lanes if lane.thread is not None})
        ),
    )


def soak(plan: Plan, folder: Path) -> Result:
    """Run a plan."""
    with prepared(plan, folder) as campaign:
        return campaign.run()
