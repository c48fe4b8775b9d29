"""One trial: a gateway that lives, is killed at a point, lives again, and is judged."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

import attrs

from crash import ledger
from crash.conductor import Conductor
from crash.deployments import Deployment, Set
from crash.explain import Explained, Scar, explain
from crash.gate import Gate
from crash.judge import Judgement, judge
from crash.points import Passed, Point
from peers.gateway import Gateway

CALM: Final = 0.25
"""Seconds in which nothing more may happen before a trial counts as over."""


@attrs.frozen(kw_only=True)
class Outcome:
    """What came of a trial."""

    target: Point | None
    killed: bool
    passed: Passed
    judgement: Judgement
    uncertain: int = 0
    explained: tuple[Explained, ...] = ()
    hung: tuple[str, ...] = ()
    """What had not ended when the time was over."""
    found: tuple[str, ...] = ()
    """What people do not see and must not be, either."""
    log: str = attrs.field(default="", repr=False)
    seconds: float = 0.0

    @property
    def faults(self) -> list[str]:
        """What must not be, whatever the point."""
        return [
            *(f"lost: {what}" for what in self.judgement.lost),
            *(f"doubled: {what}" for what in self.judgement.doubled),
            *(f"never ended: {what}" for what in self.hung),
            *(f"behind the scene: {what}" for what in self.found),
            *(f"unexplained: {one.text}" for one in self.explained if not one.allowed),
        ]


@attrs.define(eq=False)
class Trial:
    """One gateway's two lives in a folder of its own."""

    deployment: Deployment
    target: Point | None
    python_path: str
    folder: Path
    limit: float
    """Seconds until everything that was said has come to its end, restart included."""
    _gateway: Gateway = attrs.field(init=False)
    _conductor: Conductor = attrs.field(init=False)
    _scars: list[Scar] = attrs.field(init=False, factory=list)
    _uncertain: int = attrs.field(init=False, default=0)
    _left: list[str] = attrs.field(init=False, factory=list)

    def run(self) -> Outcome:
        """Run it to its end."""
        began = time.monotonic()
        self._conductor = Conductor(self._kill)
        with self.deployment.open(self._conductor) as stage, Gate(self._conductor) as gate:
            self._prepare(stage, gate)
            for said in self.deployment.said:
                if said.text:
                    stage.peer.say(said)
            try:
                hung = self._live(stage, gate)
            finally:
                self._end()
            return self._outcome(stage, hung, time.monotonic() - began)

    def _live(self, stage: Set, gate: Gate) -> tuple[str, ...]:
        """Live and be killed as planned, then live undisturbed; return what has not ended."""
        kills = [point for point in (self.deployment.killed_before, self.target) if point]
        recorded = [] if self.target else [None]
        for target in (*kills, *recorded):
            self._conductor.begin(target)
            self._gateway.start()
            hung = self._until_over(stage, gate)
            if not self._conductor.killed.is_set():
                return hung
            self._scars.append(self._scar(stage))
            self._left += stage.look_dead(self.folder)
        self._conductor.stand_back()
        self._gateway.start()
        return self._until_over(stage, gate)

    def _prepare(self, stage: Set, gate: Gate) -> None:
        self.folder.mkdir(parents=True)
        for name, content in stage.files.items():
            (self.folder / name).write_text(content)
        manifest = f"""
manifest = 1

[stores.main]
plugin = "crash:crashstore"
file = "{self._file}"
gate = "{gate.address}"
{stage.tables}
"""
        environment = {"PYTHONPATH": self.python_path, **stage.environment}
        self._gateway = Gateway(self.folder, manifest, environment)

    @property
    def _file(self) -> Path:
        return self.folder / "dragoman.db"

    def _scar(self, stage: Set) -> Scar:
        return Scar(ledger.read_dead(self._file), tuple(stage.peer.visible()))

    def _until_over(self, stage: Set, gate: Gate) -> tuple[str, ...]:
        """Wait until the gateway is dead, or everything has ended; return what has not."""
        deadline = time.monotonic() + self.limit
        calm_since: float | None = None
        seen = (-1, -1)
        while True:
            if self._conductor.killed.is_set() and not self._conductor.over:
                return ()
            now = ledger.read(self._file)
            self._uncertain = max(self._uncertain, now.uncertain if self._scars else 0)
            waiting = stage.peer.waiting()
            over = not now.unfinished and not waiting and now.received >= self._expected
            state = (gate.committed.number, len(stage.peer.visible()))
            if not over or state != seen:
                seen, calm_since = state, time.monotonic()
            elif calm_since and time.monotonic() - calm_since > CALM:
                return ()
            if time.monotonic() > deadline or self._died():
                reason = ["the gateway ended by itself"] if self._died() else []
                missing = self._expected - now.received
                reason += [f"{missing} messages not received"] if missing else []
                return (*now.unfinished, *reason)
            with gate.committed.bell:
                gate.committed.bell.wait(0.03)

    @property
    def _expected(self) -> int:
        return sum(1 for said in self.deployment.said if said.text)

    def _died(self) -> bool:
        process = self._gateway._process
        if process is None or process.poll() is None:
            return False
        return self._conductor.over or not self._conductor.striking

    def _kill(self) -> None:
        self._gateway.kill()

    def _end(self) -> None:
        process = self._gateway._process
        if process is not None:
            process.kill()
            process.wait(10)

    def _outcome(self, stage: Set, hung: tuple[str, ...], seconds: float) -> Outcome:
        judgement = judge(self.deployment.said, stage.peer.visible())
        explained: list[Explained] = []
        last = self.target or self.deployment.killed_before
        if self._scars and last:
            explained = explain(
                last,
                self._scars,
                certain=self.deployment.certain,
                marked=judgement.marked,
                uncertain=self._uncertain,
                stray=judgement.stray,
            )
        elif judgement.marked or judgement.stray or judgement.interrupted:
            explained = [Explained(f"without any kill: {judgement}", allowed=False)]
        cut, may_be_cut = judgement.interrupted, self.deployment.may_be_cut
        if cut > may_be_cut:
            text = f"{cut} answers were cut, {may_be_cut} may be"
            explained.append(Explained(text, allowed=False))
        return Outcome(
            target=self.target,
            killed=self._conductor.over,
            passed=self._conductor.passed,
            judgement=judgement,
            uncertain=self._uncertain,
            explained=tuple(explained),
            hung=hung,
            found=(*self._left, *stage.look_behind(self.folder, judgement)),
            log=self._gateway.log,
            seconds=seconds,
        )
