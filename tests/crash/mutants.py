"""Seven ways to break the gateway, each of which has to be noticed.

A mutant is one replacement in a copy of core. The text that it replaces has to be there exactly
once: a change of the product that moves it is told about, rather than silently not tested.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import attrs

import dragoman
from crash.points import Point

CORE: Final = Path(dragoman.__file__).parent


@attrs.frozen(kw_only=True)
class Mutant:
    """A broken gateway. A kill at one of ``points`` of a bare wire has to show ``symptom``."""

    name: str
    file: str
    old: str
    new: str
    points: tuple[Point, ...]
    """Where the damage may show; none where only two owners of one session show it."""
    symptom: str

    def write(self, folder: Path, core: Path = CORE) -> Path:
        """Write a copy of core with this mistake in it; return the folder to import from."""
        copy = folder / "dragoman"
        shutil.copytree(core, copy, ignore=shutil.ignore_patterns("__pycache__"))
        file = copy / self.file
        text = file.read_text()
        found = text.count(self.old)
        if found != 1:
            msg = f"mutant {self.name!r}: {found} places in {self.file} read {self.old!r}"
            raise AssertionError(msg)
        file.write_text(text.replace(self.old, self.new))
        return folder


def _sends(stage: str) -> tuple[Point, ...]:
    """Return the sends of a run: which of them is the one that matters is a matter of time."""
    return tuple(Point("call.send", ordinal, stage) for ordinal in (1, 2, 3))


MUTANTS: Final = (
    Mutant(
        name="no dedupe",
        file="flow/intake.py",
        old="attrs.evolve(event, ",
        new="attrs.evolve(event, native_id=f'{event.native_id} {self._clock.boot()}', ",
        points=(Point("commit.Receive", 1, "after"),),
        symptom="doubled",
    ),
    Mutant(
        name="receipt before send",
        file="outbox/outbox.py",
        old="outcome, trial = await attempt(exit_, delivery, trial)",
        new="await self._record(delivery, Outcome(state=DeliveryState.DELIVERED)); "
        "outcome, trial = await attempt(exit_, delivery, trial)",
        points=_sends("arrived"),
        symptom="lost",
    ),
    Mutant(
        name="no fence",
        file="store/transaction.py",
        old="if (lease.turn_id, lease.fence) not in held",
        new="if not held and not lease.fence",
        points=(),
        symptom="accepted",
    ),
    Mutant(
        name="lease not released",
        file="store/endings.py",
        old="UPDATE agent_runs SET state = j.value ->> 2,",
        new="UPDATE agent_runs SET state = iif(j.value ->> 2 = 'succeeded', 'running', j.value ->> 2),",
        points=(Point("commit.PutValue", 1, "after"),),
        symptom="never ended",
    ),
    Mutant(
        name="ack before commit",
        file="flow/intake.py",
        old="    async def deliver(self, event: Inbound) -> None:\n",
        new=(
            "    async def deliver(self, event: Inbound) -> None:\n"
            "        import asyncio\n\n"
            "        later = asyncio.ensure_future(self._deliver_later(event))\n"
            "        later.add_done_callback(lambda done, keep=later: None)\n\n"
            "    async def _deliver_later(self, event: Inbound) -> None:\n"
            "        await anyio.sleep(0.1)\n"
        ),
        points=(Point("call.ack", 1, "answered"),),
        symptom="lost",
    ),
    Mutant(
        name="re-send of sending",
        file="store/endings.py",
        old="CASE native_id WHEN '' THEN 'uncertain' ELSE 'pending' END",
        new="'pending'",
        points=_sends("applied"),
        symptom="doubled",
    ),
    Mutant(
        name="edit replaced by send",
        file="outbox/attempt.py",
        old="return await platform.edit(address, trial.native_id, message)",
        new="return await platform.send(address, message)",
        points=(Point("commit.EndSend", 3, "after"),),
        symptom="stray",
    ),
)
